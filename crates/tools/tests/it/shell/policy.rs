//! Decisions beyond the corpus: flags in every disguise, paths that lead out, rules of the settings.

use std::os::unix::fs::symlink;

use llm_do_core::Approval::{Ask, Blocked, PreApproved};
use llm_do_core::{Access, Approval, Scope, Subject, Toolset};
use llm_do_tools::{Shell, ShellSettings};
use serde_json::{Value, json};

use crate::shell::support::{Folder, assess, decide, open, read_only};

async fn all(folder: &Folder, expected: Approval, commands: &[&str]) {
    let tool = read_only(&folder.root()).await;
    for command in commands {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, expected, "{command}: {:?}", assessment.reason);
    }
}

#[tokio::test]
async fn harmless_uses_of_the_listed_programs_run_at_once() {
    let commands = [
        "ls --rec --auth src",
        "ls -w80 -I '*.o'",
        "ls --color=auto -1",
        "head -20 a",
        "head -qn5 a b",
        "tail -5f a",
        "tail --lines=3 a",
        "grep -rniE 'a|b' src docs",
        "grep -e /etc/passwd a",
        "grep '../x' a",
        "grep --include='*.rs' -A3 -B 2 x .",
        "grep -f patterns a",
        "rg -g '!target' --type rust x",
        "rg --files src",
        "rg -uu -tpy -A3 'x' a",
        "rg -- -x a",
        "find . -maxdepth 2 -type d -print0",
        "find src docs \\( -name a -o -name b \\) ! -empty",
        "find . -newer a -printf '%p\\n'",
        "find -name a",
        "find . -name -delete",
        "wc -lc a b",
        "file -bi a",
        "stat -c %s a",
        "du -hd1 .",
        "sort -k2,2n -t: -u a",
        "sort -S 10M a",
        "sort --rev a",
        "uniq -cf1 a",
        "uniq -",
        "cut -d: -f1 a",
        "tree -aL 2 -I target",
        "date -u +%s",
        "date -d yesterday",
        "date -d 'TZ=\"Europe/Paris\" 9:00'",
        "date -r a",
        "echo -n --output=x > /dev/null".split_at(18).0,
        "git status -sb",
        "git log -5 --stat -p --author x",
        "git log -S'foo bar' -- a b",
        "git -C . log -1",
        "git diff --stat --cached HEAD -- a",
        "git diff -U5 a...b",
        "git show HEAD~3:src/a.rs",
        "git show -s --format=%B",
        "git log '--pretty=%h %(trailers:only)'",
        "git log --since='2 weeks ago' @{u}..",
        "git diff ':!vendor'",
        "cat /dev/null",
        "cat a | sort | uniq -c | sort -rn",
        "cat -- --help",
        "ls; pwd",
        "cat a || echo none",
        "pwd -P",
        "whoami --version",
        "echo \"a'b\" '' \\$x",
    ];
    all(&Folder::new(), PreApproved, &commands).await;
}

#[tokio::test]
async fn flags_that_do_more_than_look_ask_in_every_disguise() {
    let commands = [
        "sort -uo out a",
        "sort a -o out",
        "sort -uoout a",
        "sort --outp=x a",
        "sort --o x a",
        "sort -T . a",
        "sort --compress-prog=x a",
        "sort --files0-from=list",
        "wc --files0-from list",
        "du --files0=list",
        "sort -y a",
        "uniq a b",
        "uniq -c -- a b",
        "uniq -f 1 a b",
        "tree -ao x",
        "tree -R",
        "tree --fromfile a",
        "date 01010101",
        "date --set=x",
        "date -us x",
        "file -f list",
        "file -C",
        "file -m x a",
        "file -z a",
        "file --comp",
        "rg --pre x y",
        "rg -z x",
        "rg -nz x",
        "rg --search-zip x",
        "find . -delete",
        "find . -name x -fprint0 y",
        "find -files0-from x",
        "find . ! -exec x {} \\;",
        "find . -name a x",
        "ls --bogus",
        "cat -X a",
        "grep --unknown x",
        "git -c a=b log",
        "git --bogus status",
        "git --git-dir=x log",
        "git log --outp=x",
        "git log --output=x",
        "git log --ext-diff",
        "git diff --no-index a b",
        "git show --textconv",
        "git log --show-signature",
        "git log '--format=%G?'",
        "git log --pretty=format:%h%+GS",
        "git show -s '--format=%(describe:tags)'",
        "git log --author -- --output=x",
        "git diff -- --output=x",
        "git log --help",
        "git -p log",
        "git --exec-path=x status",
        "git diff --submodule=diff",
    ];
    all(&Folder::new(), Ask, &commands).await;
}

#[tokio::test]
async fn reads_outside_the_root_ask() {
    let folder = Folder::new();
    folder.file("sub/a", "x");
    symlink("../outside", folder.root().join("out")).unwrap();
    symlink("/etc", folder.root().join("sub/etc")).unwrap();
    let commands = [
        "cat out/x",
        "ls out",
        "ls sub/etc/",
        "grep x sub/../../outside",
        "grep -f /etc/passwd a",
        "grep -f../x a",
        "grep -e x /etc/passwd",
        "grep --file=/etc/passwd a",
        "rg x /etc",
        "rg --files /etc",
        "rg -f/etc/passwd",
        "rg --ignore-file /etc/x y",
        "find .. -name x",
        "find -L . -name x",
        "find . -follow",
        "find . -newer /etc/passwd",
        "find . -samefile ../x",
        "date -r /etc/passwd",
        "date -f /etc/passwd",
        "date -d 'TZ=\"/etc/hosts\" now'",
        "date -ud 'TZ=\":/etc/hosts\" now'",
        "date --date=' TZ=\"../../../../etc/hosts\" now'",
        "du -X /etc/x .",
        "du -L .",
        "tree -l",
        "grep -R x .",
        "grep -rR x sub",
        "rg -L x",
        "ls -LR",
        "sort --random-source=/etc/passwd a",
        "uniq /etc/passwd",
        "git diff /etc/passwd a",
        "git -C .. status",
        "git -C/ status",
        "git log -- ../x",
        "git diff -O/etc/passwd",
        "git diff ':(top)../../x'",
        "cat a /etc/passwd",
        "ls | cat /etc/passwd",
        "echo a && cat ../b",
        "head -n 1 -- /x",
        "wc -l -- ../x",
        "stat /",
        "file ../x",
        "cut -f1 /etc/passwd",
        "cat /proc/self/cwd/../../../etc/passwd",
        "cat /proc/self/cwd/a",
        "cat /dev/stdin",
        "cat /dev/fd/0",
    ];
    all(&folder, Ask, &commands).await;
    let tool = read_only(&folder.root()).await;
    let inside = format!("cat {}", folder.root().join("sub/a").display());
    assert_eq!(decide(&tool, &inside).await, PreApproved);
}

#[tokio::test]
async fn following_links_runs_at_once_where_none_leads_out() {
    let folder = Folder::new();
    folder.file("sub/a", "x");
    symlink("sub", folder.root().join("in")).unwrap();
    all(&folder, PreApproved, &["grep -R x .", "find -L . -name a", "du -L in", "ls -L"]).await;
}

#[tokio::test]
async fn what_is_not_listed_is_blocked_with_words_that_help() {
    let folder = Folder::new();
    let tool = read_only(&folder.root()).await;
    for (command, words) in [
        ("rm x", "listed are: ls, cat"),
        ("git push", "`git push` is not listed"),
        ("git", "`git` is not listed"),
        ("cd sub", "name paths instead, such as `ls sub`"),
        ("./ls", "bare name"),
        ("ls && rm x", "`rm` is not listed"),
        ("ls 2>/dev/null", "captured anyway"),
        ("ls *.rs", "quote it"),
        ("ls\u{a0}-la", "use a plain space"),
    ] {
        let assessment = assess(&tool, command).await;
        assert_eq!(assessment.approval, Blocked, "{command}");
        assert!(assessment.reason.as_ref().unwrap().contains(words), "{command}: {:?}", assessment.reason);
    }
}

#[tokio::test]
async fn an_assessment_says_what_runs_and_what_may_be_granted() {
    let folder = Folder::new();
    let tool = read_only(&folder.root()).await;
    let assessment = assess(&tool, "sort -o 'a b' x | uniq").await;
    assert_eq!(
        assessment.description,
        format!("run sort -o 'a b' x and uniq in {}", folder.root().display())
    );
    assert_eq!(assessment.preview.unwrap(), "/usr/bin/sort -o 'a b' x\n/usr/bin/uniq");
    let command = |words: &[&str]| Subject::Command(words.iter().map(|word| (*word).to_owned()).collect());
    assert_eq!(assessment.subjects, [command(&["sort", "-o", "a b", "x"]), command(&["uniq"])]);
    assert_eq!(assessment.scopes, [Scope::Tool]);
    let alone = assess(&tool, "cat /etc/hostname").await;
    assert!(alone.scopes.contains(&Scope::CommandPrefix(vec!["cat".into()])), "{:?}", alone.scopes);
    assert_eq!(alone.reason.unwrap(), "`/etc/hostname` lies outside the root");
}

async fn with_settings(folder: &Folder, settings: Value, command: &str) -> Approval {
    let settings: ShellSettings = serde_json::from_value(settings).unwrap();
    let shell = Shell::new("shell", folder.root(), settings).unwrap();
    decide(&open(&shell, &Value::Null).await.unwrap(), command).await
}

#[tokio::test]
async fn rules_decide_and_the_strictest_wins() {
    let folder = Folder::new();
    let settings = json!({
        "rules": [
            {"program": "cargo", "subcommand": "test", "allow_flags": ["-q", "--package=", "-p="], "approval": "pre_approved"},
            {"program": "cargo", "refuse_flags": ["--config", "-Z"], "approval": "pre_approved"},
            {"program": "cargo", "subcommand": "publish", "approval": "blocked"},
            {"program": "make", "allow_flags": ["*"], "approval": "pre_approved"},
            {"program": "mv", "approval": "ask"},
            {"program": "say", "operands": "text", "approval": "pre_approved"},
            {"program": "sort", "allow_flags": ["-o@"], "approval": "pre_approved"},
        ],
    });
    for (command, expected) in [
        ("cargo test -qp core", PreApproved),
        ("cargo test --package=core", PreApproved),
        ("cargo test --release", Ask),
        ("cargo test --conf x", Blocked),
        ("cargo test -qZ x", Blocked),
        ("cargo publish", Blocked),
        ("cargo test -p ../x", Ask),
        ("make -j2 --anything all", PreApproved),
        ("make -C/etc", Ask),
        ("make --directory=../x", Ask),
        ("make -f /etc/x", Ask),
        ("make -kC/etc", Ask),
        ("make -ksf../x", Ask),
        ("make PREFIX=/etc", Ask),
        ("make -kj2 PREFIX=out", PreApproved),
        ("mv a b", Ask),
        ("say /etc/passwd", PreApproved),
        ("say -x", Ask),
        ("sort -o a b", PreApproved),
        ("sort -o ../a b", Ask),
        ("rm a", Blocked),
        ("/usr/bin/mv a b", Ask),
        ("/opt/mv a b", Blocked),
    ] {
        assert_eq!(with_settings(&folder, settings.clone(), command).await, expected, "{command}");
    }
    assert_eq!(with_settings(&folder, json!({"default": "ask"}), "rm a").await, Ask);
    assert_eq!(with_settings(&folder, json!({"default": "ask"}), "./rm a").await, Blocked);
    assert_eq!(with_settings(&folder, json!({"default": "ask"}), "rm $x").await, Blocked);
}

#[tokio::test]
async fn a_stricter_rule_for_a_subcommand_holds_wherever_its_word_stands() {
    let folder = Folder::new();
    let settings = json!({
        "rules": [
            {"program": "cargo", "allow_flags": ["*"], "approval": "pre_approved"},
            {"program": "cargo", "subcommand": "publish", "approval": "blocked"},
            {"program": "cargo", "subcommand": "run", "approval": "ask"},
            {"program": "npm", "subcommand": "test", "allow_flags": ["*"], "approval": "pre_approved"},
        ],
    });
    for (command, expected) in [
        ("cargo build", PreApproved),
        ("cargo publish", Blocked),
        ("cargo -q publish", Blocked),
        ("cargo +nightly publish", Blocked),
        ("cargo --color always publish", Blocked),
        ("cargo --locked run", Ask),
        ("npm test", PreApproved),
        ("npm exec test", Blocked),
    ] {
        assert_eq!(with_settings(&folder, settings.clone(), command).await, expected, "{command}");
    }
    let shell = Shell::new("shell", folder.root(), serde_json::from_value(settings).unwrap()).unwrap();
    let assessment = assess(&open(&shell, &Value::Null).await.unwrap(), "cargo -q publish").await;
    assert_eq!(assessment.reason.unwrap(), "a rule says that `cargo publish` is blocked");
}

#[tokio::test]
async fn refused_flags_are_understood_in_the_notation_of_allowed_ones() {
    let folder = Folder::new();
    let refused = ["-l=", "-g@", "-c?", "--group=", "-="];
    let settings = json!({
        "rules": [{"program": "x", "allow_flags": ["*"], "refuse_flags": refused, "approval": "pre_approved"}],
    });
    for command in
        ["x -l a", "x -la", "x -vl=a", "x -g a", "x -vc", "x --group a", "x --group=a", "x --gr a", "x -="]
    {
        assert_eq!(with_settings(&folder, settings.clone(), command).await, Blocked, "{command}");
    }
    assert_eq!(with_settings(&folder, settings, "x -v --other=a").await, PreApproved);
}

#[tokio::test]
async fn the_preset_for_files_lists_at_once_and_asks_before_it_moves() {
    let folder = Folder::new();
    let tool = open(&Shell::file_ops("files", folder.root()).unwrap(), &Value::Null).await.unwrap();
    assert_eq!(decide(&tool, "ls -la").await, PreApproved);
    assert_eq!(decide(&tool, "mv a b").await, Ask);
    assert_eq!(decide(&tool, "cat a").await, Blocked);
}

#[tokio::test]
async fn an_agent_gives_settings_of_its_own_and_a_preset_keeps_its_rules() {
    let folder = Folder::new();
    let shell = Shell::read_only("shell", folder.root()).unwrap();
    let own = json!({"rules": [{"program": "make", "approval": "pre_approved"}, {"program": "cat", "approval": "blocked"}]});
    let tool = open(&shell, &own).await.unwrap();
    assert_eq!(decide(&tool, "make").await, PreApproved);
    assert_eq!(decide(&tool, "ls").await, PreApproved);
    assert_eq!(decide(&tool, "cat a").await, Blocked);
    let error = open(&shell, &json!({"rule": []})).await.err().unwrap();
    assert!(error.contains("unknown field `rule`"), "{error}");
}

#[tokio::test]
async fn wrong_settings_are_refused_by_name() {
    let folder = Folder::new();
    for (settings, word) in [
        (json!({"rules": [{"program": "a/b", "approval": "ask"}]}), "bare name"),
        (json!({"rules": [{"program": "a", "approval": "ask", "allow_flags": ["x"]}]}), "`x` is not a flag"),
        (json!({"rules": [{"program": "a", "approval": "ask", "refuse_flags": ["x"]}]}), "`x` is not a flag"),
        (json!({"timeout": 601}), "`timeout`"),
        (json!({"timeout": 0}), "`timeout`"),
        (json!({"root": ".."}), "lies outside"),
        (json!({"root": "missing"}), "missing"),
        (json!({"environment": {"LD_PRELOAD": "x"}}), "LD_PRELOAD"),
        (json!({"program_directories": ["bin"]}), "not absolute"),
    ] {
        let settings: ShellSettings = serde_json::from_value(settings).unwrap();
        let error = Shell::new("shell", folder.root(), settings).err().unwrap();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(Shell::read_only("shell", folder.path("nowhere")).is_err());
}

#[tokio::test]
async fn the_definition_is_careful_and_takes_a_command_and_a_time() {
    let shell = Shell::read_only("look", Folder::new().root()).unwrap();
    let definition = shell.definitions().remove(0);
    assert_eq!((definition.name.as_str(), definition.toolset.as_deref()), ("shell", Some("look")));
    assert_eq!((definition.access, definition.approval), (Access::Write, Ask));
    assert!(definition.input.fits(&json!({"command": "ls", "timeout": 600})));
    for wrong in [json!({"command": "ls", "timeout": 601}), json!({}), json!({"command": "ls", "cwd": "/"})] {
        assert!(!definition.input.fits(&wrong), "{wrong}");
    }
}
