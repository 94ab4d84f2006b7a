//! Commands beyond the corpus, in its spirit: features of programs that few people know.

use std::os::unix::fs::symlink;

use llm_do_core::Approval::PreApproved;

use crate::shell::support::{Folder, assess, read_only};

/// Each could write, run something else, change the machine, or read outside: none runs at once.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    // Values that are none: git gives these flags a value only behind `=`.
    "git diff -U --output=x", "git diff --unified --output=x", "git log --min-parents --output=x",
    "git log --max-parents --output=x", "git show -U --output=x", "git log --author --output=x",
    "git log --format --output=x", "git log --skip --ext-diff",
    // Letters behind a number, as they were read before `getopt`.
    "tail -5c /etc/passwd", "head -5c /etc/passwd", "tail -5c ../x", "head -3qc /etc/passwd", "tail -1cf out",
    // Clusters that go on behind a value.
    "tree -Po pattern file", "tree -Io pattern file", "tree -aTo title file", "tree -HoX base file",
    "tree -L2o file", "tree -o file", "tree -ofile", "tree -Pl x",
    // Values behind `=`.
    "rg -f=/etc/passwd", "rg -nf=/etc/passwd x", "rg -f/etc/passwd x", "rg x --file=/etc/passwd",
    // Merges that are done again write objects and run merge drivers.
    "git log --remerge-diff", "git show --remerge-diff HEAD", "git log --diff-merges=remerge",
    "git log --diff-merges=r -p", "git log --diff-merges remerge",
    // find
    "find . -fprintf x y", "find . -fprint x", "find . -fprint0 x", "find . -fls x", "find . -ok rm {} \\;",
    "find . -okdir rm {} \\;", "find . -execdir rm {} +", "find . -exec rm {} +", "find -files0-from x",
    "find -files0-from - -delete", "find . -delete -name x", "find . -newerma /etc/passwd", "find -D all /etc",
    "find / -maxdepth 1", "find ./.. -name x", "find . ../x", "find -L out", "find -H out", "find . -anewer /etc/x",
    "find . -samefile /etc/passwd", "find . -cnewer ../x", "find sub/etc -name passwd", "find sub/etc/",
    "find . -name a -o -delete", "find . \\( -delete \\)", "find . -a -delete", "find . , -delete",
    // ripgrep
    "rg --pre cat x", "rg --pre=cat x", "rg x --pre cat", "rg --pre-glob '*' --pre cat x", "rg --search-zip x",
    "rg -z x", "rg -iz x", "rg --hostname-bin=id x", "rg --hyperlink-format=file://x y", "rg --generate man",
    "rg x ..", "rg x -- ..", "rg -e x /etc", "rg --files /", "rg --ignore-file=/etc/passwd x", "rg --follow x",
    "rg x out", "rg --type-list /etc", "rg -L x",
    // git
    "git grep -O x", "git log --output=x", "git log --output x", "git diff --no-index a /etc/passwd",
    "git diff --no-index a b", "git show --textconv", "git diff --ext-diff", "git log -p --ext-diff",
    "git log --show-signature", "git -c core.pager=x log", "git -ccore.pager=x log", "git --config-env=a=b log",
    "git --exec-path=. log", "git --git-dir=/etc log", "git --git-dir /etc log", "git --work-tree=/ status",
    "git --paginate log", "git -p log", "git --attr-source=HEAD diff", "git --namespace=x log", "git -C .. log",
    "git -C sub/etc status", "git -C/etc log", "git log --stdin", "git log --alternate-refs", "git branch -D x",
    "git config core.pager x", "git status --ignore-submodules=none", "git diff --submodule=diff",
    "git diff --submodule=log", "git log --help", "git diff -h", "git help log", "git stash", "git blame a",
    "git reflog expire --all", "git archive -o x HEAD", "git bundle create x HEAD", "git diff -O/etc/passwd",
    "git diff ../x", "git diff -- /etc/passwd", "git log -- ../x", "git show :../x", "git diff ':(top)../x'",
    "git diff ':/../x'", "git log --diff --outp=x", "git diff --output-directory=x", "git log -- --output=x",
    // coreutils
    "sort -o x a", "sort -ox a", "sort a -o x", "sort -no x a", "sort --output=x a", "sort --ou x a", "sort -T /tmp a",
    "sort -T. a", "sort --temporary-directory=. a", "sort --compress-program=gzip a", "sort --comp gzip a",
    "sort --files0-from=x", "sort --files=-", "sort --random-source=/etc/passwd -R a", "sort /etc/passwd",
    "wc --files0-from=x", "wc --files=x", "wc --files0-from -", "du --files0-from=x", "du --files0-from=-", "du -X/etc/x",
    "du --exclude-from=/etc/x", "du -DL .", "du /", "du out", "uniq a b", "uniq - b", "uniq -c a b", "uniq -- a b",
    "uniq a -c b", "cut -f1 /etc/passwd", "cut -d: -f1 -- /etc/passwd", "cat ../x", "cat out/x", "cat sub/etc/passwd",
    "cat a -- /etc/passwd", "cat /proc/self/environ", "cat /dev/stdin", "cat /dev/sda", "head /dev/zero", "head -c5 /dev/sda",
    "tail -n1 /etc/passwd", "tail -f /etc/passwd", "tail +1 /etc/passwd", "stat /etc", "stat -L out",
    "ls /", "ls out", "ls sub/etc/", "ls -L sub", "ls --dereference", "ls --deref -R", "date -s 12:00",
    "date --set=12:00", "date --se 12:00", "date -us 12:00", "date 010112002030", "date -u 01011200", "date -f /etc/passwd",
    "date -r /etc/passwd", "date +%s 01011200", "file -C", "file -C -m x", "file -m x a", "file --magic-file=x a", "file -f x",
    "file --files-from=x", "file -p a", "file -z a", "file -Z a", "file -s /dev/sda", "file -S a", "file /etc/passwd",
    "grep x /etc/passwd", "grep -r x /etc", "grep -R x", "grep -f /etc/passwd a", "grep --fil=/etc/passwd a",
    "grep --exclude-from=/etc/passwd x a", "grep -e x -f../x a", "grep -rx x out", "grep --dereference-rec x",
    // Not listed, whatever they do.
    "sed -n 'w x' a", "sed 1e a", "awk 'BEGIN{system(\"id\")}'", "xxd -r a b", "tee x", "env ls", "printenv",
    "hostname x", "less '+!id' a", "man -P id ls", "diff --to-file=/etc a", "cmp a /etc/passwd", "test -f a",
    "printf '%n'", "xargs rm", "true", "sh -c ls", "busybox ls", "python3 -c 1", "nice ls", "timeout 1 ls", "stdbuf -o0 ls",
    "ls | xargs rm", "ls && rm x", "ls; ./x", "ls || /tmp/x", "/tmp/ls", "./ls", "../ls", "\\rm x", "'rm' x", "l\"\"s | r''m x",
    "time ls", "! ls", "%1", "exec ls", "command ls", "builtin ls", "eval ls", "ls & ls", "ls |& cat", "a=b ls", "PATH=. ls",
    "/usr/bin/ls", "ls\u{a0}-la", "ｌｓ", "ls -la\u{200b}", "lѕ",
];

/// Everyday commands: all run at once.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "ls", "ls -la", "ls -lahS sub", "ls -1 --sort=time", "ls --group-directories-first", "ls -d sub", "ls -lt | head -5",
    "ls --time-style=+%Y", "ls --ignore='*.o'", "ls -R sub", "ls -- -odd", "cat a", "cat a sub/a.txt", "cat -n a", "cat -A a",
    "cat a | head -n 20 | tail -n 5", "cat -", "head -n 5 a", "head -n5 a", "head -5 a", "head -c 100 a", "head -qn 2 a a",
    "head --lines=-3 a", "tail -n +5 a", "tail -20 a", "tail -c100 a", "tail -fn 3 a", "tail -n 3 -q a a",
    "grep -rn 'TODO' .", "grep -E 'a|b' a", "grep -c '^x$' a", "grep -oP '(?<=a)b' a", "grep -v '^#' a", "grep -A3 -B2 x a",
    "grep -rl --include='*.txt' x sub", "grep 'it'\\''s' a", "grep \"it's\" a", "grep -F '$HOME' a", "grep '`id`' a",
    "grep -- -x a", "grep -e /etc/passwd a", "grep '../x' a", "grep -nH x a", "grep -5 x a", "grep -i5 x a", "grep '>' a",
    "rg TODO", "rg -n 'a b' sub", "rg -g '*.txt' -i x", "rg --type rust 'fn main'", "rg -A 3 -B3 x", "rg --files -g '*.md'",
    "rg -l x | sort", "rg -e -x", "rg '$x' a", "rg --no-ignore --hidden x", "rg -uuu x", "rg -c x sub",
    "find . -name '*.txt'", "find . -type f -size +1k", "find sub -maxdepth 1 -mtime -3", "find . -not -path './.git/*'",
    "find . -name a -print0", "find . -iname '*A*' -o -iname '*b*'", "find . -type d -empty", "find . -newermt yesterday",
    "find . -printf '%s %p\\n' | sort -n | tail -5", "find . -perm -u+x", "find . -regex '.*a'", "find -maxdepth 1",
    "wc -l a", "wc -l a sub/a.txt | tail -n 1", "wc --lines a", "file a", "file -b --mime-type a", "stat a", "stat -c '%s %n' a",
    "stat --format=%a a", "du -sh .", "du -ah --max-depth=1 | sort -h", "du -d 2 sub", "sort a", "sort -u a", "sort -t, -k2,2n a",
    "sort -rn a | uniq -c | sort -rn | head", "sort --key=2 --numeric-sort a", "sort -S 1M a", "uniq -c a", "uniq -d", "uniq -f 1 a",
    "cut -d, -f1,3 a", "cut -c1-10 a", "cut --delimiter=' ' --fields=2 a", "tree", "tree -L 2", "tree -L2 sub", "tree -aI .git",
    "tree -I 'target|.git' -L 3", "tree -P '*.rs' --prune", "tree -dfi", "tree --charset=ascii sub", "pwd", "date", "date +%F", "date -u '+%Y-%m-%d %H:%M'",
    "date -d 'next friday' +%a", "date -d @0", "whoami", "echo hello", "echo 'a; rm -rf /' \"b && c\" d\\|e", "echo -n $", "echo a=b c#d",
    "git status", "git status -sb", "git status --porcelain=v2 --branch", "git log --oneline -n 20", "git log -5", "git log --graph --all --decorate",
    "git log -p -U3 -- a", "git log --since=yesterday --author=me", "git log -S 'x y' --oneline", "git log main..feature", "git log -1 --format='%h %s'",
    "git diff", "git diff --stat HEAD~3", "git diff --cached", "git diff main...HEAD -- sub", "git diff -w -U10 a", "git diff --name-only HEAD",
    "git diff --unified=5", "git show", "git show HEAD:a", "git show --stat HEAD~1", "git show -s --format=%B", "git show 'HEAD@{1}'", "git show HEAD^2",
    "git --no-pager log -3", "git -C sub log --oneline", "git log --merges --min-parents=2", "git log -m --diff-merges=first-parent",
    "git diff | head -n 50", "git log --oneline | wc -l", "ls && git status", "cat missing || echo none", "ls; pwd; date",
];

async fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("a", "x\n").file("sub/a.txt", "x\n").file("-odd", "x\n");
    folder.git("root", &["init", "-q", "-b", "main", "."]);
    symlink("../outside", folder.root().join("out")).unwrap();
    symlink("/etc", folder.root().join("sub/etc")).unwrap();
    folder
}

#[tokio::test]
async fn no_hostile_command_runs_at_once() {
    let folder = folder().await;
    let tool = read_only(&folder.root()).await;
    let mut allowed = Vec::new();
    for command in HOSTILE {
        if assess(&tool, command).await.approval == PreApproved {
            allowed.push(*command);
        }
    }
    println!("{} hostile commands", HOSTILE.len());
    assert_eq!(allowed, Vec::<&str>::new());
}

#[tokio::test]
async fn every_harmless_command_runs_at_once() {
    let folder = folder().await;
    let tool = read_only(&folder.root()).await;
    let mut refused = Vec::new();
    for command in HARMLESS {
        let assessment = assess(&tool, command).await;
        if assessment.approval != PreApproved {
            refused.push((*command, assessment.reason));
        }
    }
    println!("{} harmless commands", HARMLESS.len());
    assert_eq!(refused, Vec::new());
}
