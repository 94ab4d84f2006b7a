//! The second wall: what a policy that allows everything still does not let happen.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use llm_do_core::{AgentSpec, Approval, Tool, Toolset};
use llm_do_models::{asks, says};
use llm_do_testing::{Approvals, TestProject, needs, once};
use llm_do_tools::{Operands, SandboxMode, Shell, ShellRule, ShellSettings, WriteScope};
use serde_json::{Value, json};

use crate::shell::support::{Folder, assess, open, output, read_only, run, trusting};

const PROGRAMS: [&str; 14] = [
    "sh", "perl", "touch", "cp", "mv", "ln", "rm", "mkdir", "chmod", "truncate", "sort", "tee", "cat", "git",
];

/// Rules that let everything pass, as no policy should.
fn broken(settings: &mut ShellSettings) {
    settings.rules = PROGRAMS
        .iter()
        .map(|program| {
            let mut rule = ShellRule::new(program, Approval::PreApproved);
            rule.allow_flags = vec!["*".to_owned()];
            rule.operands = Operands::Text;
            rule
        })
        .collect();
}

/// The preset for reading, with a policy that is broken.
async fn broken_read_only(root: &Path) -> Arc<dyn Tool> {
    let mut settings = ShellSettings::default();
    broken(&mut settings);
    let shell = Shell::read_only("shell", root).unwrap().with_settings(settings).unwrap();
    open(&shell, &Value::Null).await.unwrap()
}

#[needs(sandbox)]
#[tokio::test]
async fn a_process_cannot_take_off_the_mark_by_which_it_is_found() {
    let folder = Folder::new();
    let tool = broken_read_only(&folder.root()).await;
    let script = "sh -c 'ulimit -x 0 2>/dev/null || echo kept; (setsid env -i sleep 4711 >/dev/null 2>&1 &); sleep 0.2'";
    let printed = output(&tool, script).await;
    assert!(printed["stdout"].as_str().unwrap().contains("kept"), "{printed}");
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        command == b"sleep\x004711\0"
    });
    assert_eq!(left.count(), 0, "a process outlived its call");
}

fn names_below(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| format!("{:?} {:?}", entry.file_name(), fs::read_to_string(entry.path()).ok()))
        .collect();
    names.sort();
    names
}

#[needs(sandbox)]
#[tokio::test]
async fn with_a_broken_policy_the_preset_for_reading_still_writes_nowhere() {
    let folder = Folder::new();
    folder.file("a", "content").file("d/b", "content");
    fs::write(folder.path("outside/a"), "content").unwrap();
    let tool = broken_read_only(&folder.root()).await;
    let before = (names_below(&folder.root()), names_below(&folder.path("outside")));
    for command in [
        "touch new",
        "touch ../outside/new",
        "sh -c 'echo x > new'",
        "sh -c 'echo x >> a'",
        "sh -c 'echo x > ../outside/a'",
        "sh -c 'sh -c \"echo x > new\"'",
        "cp a new",
        "mv a new",
        "mv a ../outside/new",
        "ln a new",
        "ln -s a new",
        "ln ../outside/a new",
        "rm a",
        "mkdir new",
        "chmod 600 a",
        "truncate -s 0 a",
        "sort -o a a",
        "cat a | tee new",
        "perl -e 'rename(q(a), q(new)) or die $!'",
        "perl -e 'open(F, q(>), q(/tmp/llm-do-escaped)) or die $!'",
        "git init new",
        "git -c core.x=y tag broken",
    ] {
        let printed = output(&tool, command).await;
        assert_ne!(printed["exit_code"], 0, "{command}: {printed}");
        let after = (names_below(&folder.root()), names_below(&folder.path("outside")));
        assert_eq!(after, before, "{command}: {printed}");
    }
    assert!(!Path::new("/tmp/llm-do-escaped").exists());
    let printed = output(&tool, "touch new").await;
    let hint = printed["hint"].as_str().unwrap();
    assert!(hint.starts_with("the sandbox may be the reason: this toolset may not write"), "{hint}");
    assert_eq!(output(&tool, "cat a").await["hint"], Value::Null);
}

#[needs(sandbox)]
#[tokio::test]
async fn with_a_broken_policy_other_shells_write_only_below_their_root() {
    let folder = Folder::new();
    folder.file("a", "content");
    fs::write(folder.path("outside/a"), "content").unwrap();
    let mut settings = ShellSettings::default();
    broken(&mut settings);
    let shell = Shell::file_ops("shell", folder.root()).unwrap().with_settings(settings).unwrap();
    let tool = open(&shell, &Value::Null).await.unwrap();
    let before = names_below(&folder.path("outside"));
    for command in [
        "touch ../outside/new",
        "cp a ../outside/new",
        "sh -c 'mv a ../outside/new'",
        "rm ../outside/a",
        "sh -c 'echo x > ../outside/a'",
        "perl -e 'truncate(q(../outside/a), 1) or die $!'",
    ] {
        let printed = output(&tool, command).await;
        assert_ne!(printed["exit_code"], 0, "{command}: {printed}");
        assert_eq!(names_below(&folder.path("outside")), before, "{command}");
        assert!(printed["hint"].as_str().unwrap().contains("only below"), "{command}: {printed}");
    }
    for command in
        ["touch new", "sh -c 'mv a b'", "mkdir d && sh -c 'mv b d/b'", "sh -c 'echo x > d/c'", "rm -r d new"]
    {
        let printed = output(&tool, command).await;
        assert_eq!((&printed["exit_code"], &printed["stderr"]), (&json!(0), &json!("")), "{command}");
    }
}

type Change = fn(&mut ShellSettings);

#[needs(sandbox)]
#[tokio::test]
async fn what_a_shell_may_do_is_what_its_settings_grant() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) && connect(S, sockaddr_in({}, INADDR_LOOPBACK)) || die $!'",
        listener.local_addr().unwrap().port()
    );
    let secret = "sh -c 'cat ../outside/secret'";
    let write = "touch ../outside/new";
    fs::write(folder.path("outside/secret"), "secret").unwrap();
    let cases: [(&str, Change, [bool; 3]); 5] = [
        ("nothing", |_| (), [false; 3]),
        ("network", |settings| settings.network = true, [true, false, false]),
        ("reads", |settings| settings.reads = llm_do_tools::ReadScope::Anywhere, [false, true, false]),
        ("writes", |settings| settings.writes = Some(WriteScope::Anywhere), [false, false, true]),
        ("off", |settings| settings.sandbox = SandboxMode::Off, [true; 3]),
    ];
    for (name, change, expected) in cases {
        let tool = trusting(&folder.root(), &["perl", "sh", "touch", "cat"], change).await;
        let mut found = Vec::new();
        for command in [connect.as_str(), secret, write] {
            found.push(output(&tool, command).await["exit_code"] == 0);
        }
        assert_eq!(found, expected, "{name}");
        let reason = assess(&tool, "cat a").await.reason;
        assert_eq!(reason.is_some(), name != "nothing", "{name}: {reason:?}");
    }
}

#[tokio::test]
async fn a_command_that_a_person_approved_may_read_outside_the_root() {
    let folder = Folder::new();
    fs::write(folder.path("outside/text"), "from outside").unwrap();
    let approvals = Approvals::new(vec![once()]);
    let run = TestProject::new()
        .toolset(Shell::read_only("shell", folder.root()).unwrap())
        .agent(AgentSpec::new("main", "x").toolset("shell"))
        .model_replies([asks("shell", json!({"command": "cat ../outside/text"})), says("done")])
        .approver(approvals.clone())
        .run("go")
        .await;
    assert_eq!(approvals.requests().len(), 1);
    assert!(run.tool_results()[0].contains("from outside"), "{:?}", run.tool_results());
}

#[tokio::test]
async fn all_programs_of_the_preset_do_the_same_in_the_sandbox_as_outside() {
    let folder = Folder::new();
    folder.file("a.txt", "two\none\ntwo\n").file("sub/b.txt", "one\n").file(".gitignore", "ignored\n");
    folder.git("root", &["init", "-q"]).git("root", &["add", "."]).git("root", &["commit", "-qm", "first"]);
    folder.file("a.txt", "two\none\nthree\n").file("ignored", "x");
    let inside = read_only(&folder.root()).await;
    let mut settings = ShellSettings { sandbox: SandboxMode::Off, ..ShellSettings::default() };
    broken(&mut settings);
    let programs = [
        "ls", "head", "tail", "grep", "rg", "find", "wc", "file", "stat", "du", "uniq", "cut", "tree", "pwd",
        "date", "whoami", "echo",
    ];
    settings.rules.extend(programs.map(|program| ShellRule::new(program, Approval::PreApproved)));
    let shell = Shell::new("shell", folder.root(), settings).unwrap();
    let outside = open(&shell, &Value::Null).await.unwrap();
    let mut compared = 0;
    for command in [
        "ls -la",
        "ls -laR --full-time",
        "cat a.txt sub/b.txt",
        "head -n 1 a.txt",
        "tail -n 1 a.txt",
        "grep -rn one .",
        "rg --sort path one",
        "find . -name '*.txt' -ls",
        "find . -fstype nothing",
        "find . -printf '%p %u %F\n'",
        "wc a.txt sub/b.txt",
        "file a.txt",
        "stat a.txt",
        "stat -f a.txt",
        "du -a --time",
        "sort a.txt",
        "sort -S 1M --parallel=2 a.txt",
        "uniq a.txt",
        "cut -c 1 a.txt",
        "tree",
        "pwd",
        "date +%Z%Y",
        "whoami",
        "echo x",
        "git status",
        "git log --stat",
        "git diff",
        "git show",
        "cat a.txt | sort | uniq -c | head -n 2",
    ] {
        let program = command.split(' ').next().unwrap();
        if !["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|place| Path::new(place).join(program).exists())
        {
            println!("skipped, as it is not installed: {program}");
            continue;
        }
        let (mut inside, mut outside) = (output(&inside, command).await, output(&outside, command).await);
        for printed in [&mut inside, &mut outside] {
            // How full the disk is changes while others use it.
            if command == "stat -f a.txt" {
                printed["stdout"] = json!(printed["stdout"].as_str().unwrap().lines().count());
                printed["stdout_bytes"] = Value::Null;
            }
        }
        assert_eq!(inside, outside, "{command}");
        assert_eq!(inside["exit_code"], 0, "{command}: {inside}");
        compared += 1;
    }
    println!("{compared} commands compared");
}

#[needs(sandbox)]
#[tokio::test]
async fn a_program_that_cannot_be_executed_in_the_sandbox_says_why() {
    let folder = Folder::new();
    fs::copy("/bin/true", folder.path("outside/tool")).unwrap();
    // Not in a temporary directory, to which everybody could add programs.
    let bin = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandbox-bin");
    let _ = fs::remove_dir_all(&bin);
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(folder.path("outside/tool"), bin.join("tool")).unwrap();
    let tool = trusting(&folder.root(), &["tool"], |settings| {
        settings.program_directories.push(bin.clone());
    })
    .await;
    let error = run(&tool, "tool").await.error();
    fs::remove_dir_all(&bin).unwrap();
    assert!(error.contains("the sandbox may be the reason") && error.contains("setting `reads`"), "{error}");
}

#[test]
fn two_shells_have_tools_of_different_names_by_their_prefix() {
    let settings = ShellSettings { prefix: "own_".to_owned(), ..ShellSettings::default() };
    let shell = Shell::file_ops("own", std::env::temp_dir()).unwrap().with_settings(settings).unwrap();
    assert_eq!(shell.definitions()[0].name.as_str(), "own_shell");
}

#[tokio::test]
async fn settings_of_an_agent_cannot_loosen_a_preset_that_only_reads() {
    let shell = Shell::read_only("shell", std::env::temp_dir()).unwrap();
    for settings in [
        json!({"network": true}),
        json!({"writes": "root"}),
        json!({"reads": "anywhere"}),
        json!({"sandbox": "off"}),
        json!({"prefix": "x_"}),
    ] {
        assert!(open(&shell, &settings).await.is_err(), "{settings}");
    }
    assert!(open(&shell, &json!({"sandbox": "required", "writes": "nowhere"})).await.is_ok());
}
