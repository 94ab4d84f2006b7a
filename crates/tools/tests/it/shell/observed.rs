//! Commands that the policy lets run at once, run without privileges and under the eyes of strace: nothing is
//! written, nothing else is run, nothing is connected, and nothing outside the root is opened.
//!
//! The test starts its own binary again as a worker: as nobody where the tests are run by the super-user, and
//! traced where there is strace. The worker makes a directory full of bait, and commands by chance. Whatever
//! watches, the bait and a file outside must be the same afterwards, and what that file says never be printed.
//!
//! `LLM_DO_SHELL_EXECUTIONS` says how many commands are run, `LLM_DO_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use llm_do_core::Approval::PreApproved;
use llm_do_testing::{Chance, TestCall};
use serde_json::json;

use crate::shell::support::{Folder, assess, number, read_only, unprivileged};

const CANARY: &str = "canary-7f3a-never-printed";

/// What a program may be given besides letters by chance: flags that are known, shortened, risky or wrong.
#[rustfmt::skip]
const FLAGS: &[(&str, &[&str])] = &[
    ("ls", &["-la", "-R", "--color=always", "--rec", "-L", "--time-style=full-iso", "-I a", "--hyperlink=always", "-Z"]),
    ("cat", &["-n", "-A", "--show-a", "-"]),
    ("head", &["-n 2", "-5", "-c3", "--lines=1", "-5c", "-qn1", "-3v"]),
    ("tail", &["-n 2", "-5", "-c3", "+2", "-5c", "--lines=1", "-cf", "--retry"]),
    ("grep", &["-r", "-R", "-rn", "-e x", "-f patterns", "-P", "--include='*.txt'", "-5", "-z", "-D read", "--exclude-from=patterns", "-d recurse"]),
    ("find", &["-name '*.txt'", "-type f", "-L", "-H", "-follow", "-newer a.txt", "-ls", "-printf '%p %l\\n'", "-empty",
        "-maxdepth 2", "-delete", "-exec true {} +", "-fprint out", "-samefile a.txt", "-xtype l", "-user root", "-O3", "!", "-o", "-prune"]),
    ("wc", &["-l", "--files0-from=patterns", "-L", "--words"]),
    ("file", &["-b", "-i", "-L", "-k", "-z", "-C", "-m patterns", "--ext", "-d", "-s"]),
    ("stat", &["-c %N", "-L", "-f", "--printf='%n\\n'", "-t"]),
    ("du", &["-a", "-L", "-sh", "-X patterns", "--files0-from=patterns", "--time", "--inodes", "-D"]),
    ("sort", &["-u", "-k2", "-o out", "-R", "-S 1k", "-m", "--batch-size=2", "-T .", "--par=2", "--deb", "-c", "--random-source=a.txt"]),
    ("uniq", &["-c", "-5", "-f 1", "--group", "-D"]),
    ("cut", &["-c1", "-f 1", "-d ' '", "--output-delimiter=x", "-b1-"]),
    ("pwd", &["-L", "-P"]),
    ("date", &["-u", "+%s", "-r a.txt", "-f patterns", "-d now", "-Iseconds", "--debug", "-R"]),
    ("whoami", &["--version"]),
    ("echo", &["-e", "-n", "--help", "'$x'"]),
    ("git status", &["-sb", "--porcelain=v2", "-v", "-vv", "--ignored", "-uall", "--column", "--renames", "--show-stash"]),
    ("git log", &["-p", "-m", "--stat", "--graph", "-S x", "-G x", "--all", "--format='%G? %(describe) %(trailers)'", "-L 1,1:a.txt", "-g",
        "--remerge-diff", "--diff-merges=on", "--diff-merges=r", "--cc", "--follow", "-U", "--output=out", "--no-walk", "--notes", "--dd", "-c", "--check"]),
    ("git diff", &["--stat", "HEAD", "HEAD~1", "--cached", "-U", "-U1", "-w", "--word-diff", "--output=out", "--ext-diff", "--no-index", "--submodule",
        "--color-moved", "--quiet", "--exit-code", "--merge-base", "--dirstat", "-M", "-R", "--relative", "-O patterns", "--binary"]),
    ("git show", &["HEAD", "HEAD:a.txt", "HEAD^2", "--stat", "-m", "-c", "--remerge-diff", "--textconv", "--show-signature", "'--format=%G?'", "HEAD:.gitattributes", "--raw"]),
];

/// Operands: bait in the root, ways out of it, and words that look like something else.
#[rustfmt::skip]
const OPERANDS: &[&str] = &[
    "a.txt", "sub", "sub/b.txt", ".", "./-odd", "-odd", "--", "'sp ace'", "--output=x", "link-in", "link-in/b.txt", "link-out",
    "link-out/canary", "link-file", "link-etc/hostname", "../outside/canary", "/etc/hostname", "patterns", ".git", ".git/config",
    ".rgrc", ".gitconfig", "inner", "-", "missing", "sub/../a.txt", "sub/../../outside", "/dev/null", "x", "*.txt", "''", "'new\nline'",
];

/// Makes the bait: in the root what might tempt a program, outside what must not be read.
fn bait(folder: &Folder) {
    let root = folder.root();
    fs::write(folder.path("outside/canary"), CANARY).unwrap();
    folder
        .file("a.txt", "one\ntwo\n")
        .file("sub/b.txt", "x y\nx y\n")
        .file("patterns", "x\n")
        .file("-odd", "x\n");
    folder
        .file("sp ace", "x\n")
        .file("new\nline", "x\n")
        .file("--output=x", "x\n")
        .file("same.txt", "same\n");
    folder
        .file(".rgrc", "--pre=./evil\n")
        .file(".gitconfig", "[core]\n\tpager = ./evil\n")
        .file(".lessfilter", "x\n");
    fs::write(root.join(OsStr::from_bytes(b"\xff\xfe")), "x\n").unwrap();
    for (target, link) in [
        ("sub", "link-in"),
        ("../outside", "link-out"),
        ("../outside/canary", "link-file"),
        ("/etc", "link-etc"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    folder.file("evil", "#!/bin/sh\ntouch ../outside/marker\ncat\n");
    fs::set_permissions(root.join("evil"), PermissionsExt::from_mode(0o755)).unwrap();
    repository(folder);
}

/// A repository with a merge, changes, a file that only looks changed, hooks, and every hostile setting that
/// is made harmless without a question.
fn repository(folder: &Folder) {
    let git = |arguments: &[&str]| folder.git("root", arguments);
    git(&["init", "-q", "-b", "main", "."]);
    git(&["add", "a.txt", "sub", "same.txt", "link-in", "link-out"]).git("root", &["commit", "-qm", "first"]);
    git(&["checkout", "-qb", "side"]);
    folder.file("a.txt", "one\ntwo\nside\n").git("root", &["commit", "-qam", "side"]);
    git(&["checkout", "-q", "main"]);
    folder.file("sub/b.txt", "main\n").git("root", &["commit", "-qam", "main"]);
    git(&["merge", "-q", "--no-edit", "side"]);
    folder.file("a.txt", "changed\n").file(".gitattributes", "* diff=x filter=x merge=x text eol=crlf\n");
    let program = folder.root().join("evil").display().to_string();
    for key in [
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.hooksPath",
        "pager.log",
        "pager.diff",
        "alias.log",
        "alias.status",
        "credential.helper",
        "sequence.editor",
        "interactive.diffFilter",
        "difftool.x.cmd",
        "mergetool.x.cmd",
        "browser.x.cmd",
        "man.viewer",
        "core.gitProxy",
        "uploadpack.packObjectsHook",
    ] {
        git(&["config", key, &program]);
    }
    for (key, value) in [
        ("log.showSignature", "true"),
        ("log.diffMerges", "remerge"),
        ("diff.autoRefreshIndex", "true"),
        ("core.untrackedCache", "true"),
        ("index.threads", "2"),
        ("core.splitIndex", "true"),
        ("gc.auto", "1"),
        ("status.submoduleSummary", "true"),
        ("diff.submodule", "diff"),
    ] {
        git(&["config", key, value]);
    }
    for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc"] {
        fs::copy(&program, folder.root().join(".git/hooks").join(hook)).unwrap();
    }
    // Written again with the same content: git would note the new time in its index.
    fs::write(folder.root().join("same.txt"), "same\n").unwrap();
    let later = fs::FileTimes::new()
        .set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000));
    fs::File::options().write(true).open(folder.root().join("same.txt")).unwrap().set_times(later).unwrap();
}

fn generate(chance: &mut Chance) -> String {
    let mut text = command(chance);
    while chance.percent(15) {
        text.push_str(chance.one_of::<&str>(&[" | ", " && ", " ; ", " || "]));
        text.push_str(&command(chance));
    }
    text
}

fn command(chance: &mut Chance) -> String {
    let (program, flags) = chance.one_of(FLAGS);
    let mut words: Vec<String> = Vec::new();
    for _ in 0..chance.below(4) {
        words.push(match chance.below(8) {
            0 => letters(chance),
            1..=4 => (*chance.one_of(flags)).to_owned(),
            _ => (*chance.one_of(OPERANDS)).to_owned(),
        });
    }
    // Most often something that is there, so that programs have something to do.
    if chance.percent(50) {
        words.push((*chance.one_of(&["a.txt", "sub/b.txt", "sub", "."])).to_owned());
    }
    std::iter::once((*program).to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn letters(chance: &mut Chance) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let letters: String = (0..=chance.below(3)).map(|_| char::from(*chance.one_of(LETTERS))).collect();
    format!("-{letters}")
}

/// All that can be seen of a directory: names, kinds, sizes, times and contents.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, (u32, u64, i64, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let data = path.symlink_metadata().unwrap();
        let content = if data.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if data.is_dir() {
            seen.extend(snapshot(&path));
        }
        seen.insert(path, (data.mode(), data.len(), data.mtime_nsec() ^ data.mtime(), content));
    }
    seen
}

/// The directory of a worker; none where it was not started by the test.
fn place_of_worker() -> Option<Folder> {
    std::env::var("LLM_DO_OBSERVED").ok().map(|directory| Folder::at(Path::new(&directory)))
}

#[test]
#[ignore = "started by the test below, without privileges"]
fn preparer() {
    if let Some(folder) = place_of_worker() {
        bait(&folder);
    }
}

/// Runs commands and counts them; what it finds wrong it panics about.
#[tokio::test]
#[ignore = "started by the test below, without privileges"]
async fn worker() {
    let Some(folder) = place_of_worker() else { return };
    let wanted = number("LLM_DO_SHELL_EXECUTIONS", 80);
    let tool = read_only(&folder.root()).await;
    let before = snapshot(&folder.path("."));
    let (mut seed, mut executed) = (number("LLM_DO_SEED", 0), 0);
    while executed < wanted {
        seed += 1;
        let text = generate(&mut Chance::new(seed));
        if assess(&tool, &text).await.approval != PreApproved {
            continue;
        }
        let input = json!({"command": text, "timeout": 1});
        let reply = TestCall::new().run(tool.clone(), input).await;
        executed += 1;
        let said = format!("{:?}", reply.reply());
        assert!(!said.contains(CANARY), "seed {seed}: {text:?} printed what lies outside: {said}");
        if executed % 50 == 0 || executed == wanted {
            let after = snapshot(&folder.path("."));
            let differs = |path: &&PathBuf| before.get(*path) != after.get(*path);
            let changed: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).filter(differs).collect();
            assert!(changed.is_empty(), "up to seed {seed}: {text:?}: {changed:?} changed");
        }
    }
    println!("{executed} commands run of {seed} made");
}

#[test]
fn what_runs_at_once_writes_nothing_runs_nothing_else_and_stays_inside() {
    let folder = Folder::new();
    assert!(unprivileged().is_some(), "as the super-user, this test needs `setpriv` (package util-linux)");
    let place = folder.path("observed");
    for directory in [&place, &folder.path("traces")] {
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, PermissionsExt::from_mode(0o777)).unwrap();
    }
    fs::copy(std::env::current_exe().unwrap(), folder.path("worker")).unwrap();
    let traced = Command::new("strace").arg("--version").output().is_ok_and(|output| output.status.success());
    let trace = folder.path("traces/trace").display().to_string();
    let strace = ["strace", "-ff", "--seccomp-bpf", "-y", "-s", "300", "-e", CALLS, "-o", &trace];
    if !traced {
        println!("without strace only changes and what is printed are watched");
    }
    start(&folder, &[], "preparer");
    let said = start(&folder, if traced { &strace } else { &[] }, "worker");
    println!("{}", said.lines().find(|line| line.contains("commands run of")).unwrap());
    if traced {
        let traces = Traces::read(&folder.path("traces"));
        let (violations, programs) = traces.check(&place.join("root"));
        println!("{} processes traced: {programs:?}", traces.observed().len());
        assert!(programs.len() > 10, "the traces show too few programs: {programs:?}");
        assert_eq!(violations, Vec::<String>::new(), "{} violations", violations.len());
    }
}

/// Runs a part of this binary without privileges, and returns what it said.
fn start(folder: &Folder, tracer: &[&str], part: &str) -> String {
    let place = folder.path("observed");
    let mut command = unprivileged().unwrap();
    command.args(tracer).arg(folder.path("worker"));
    command.args([&format!("shell::observed::{part}"), "--exact", "--include-ignored", "--nocapture"]);
    command.env("LLM_DO_OBSERVED", &place).env("HOME", "/nowhere").current_dir(&place);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    said
}

/// Every call with which a program could write, run, connect or open something.
const CALLS: &str = "trace=open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,\
    symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate,mknod,mknodat,utime,utimes,\
    utimensat,futimesat,setxattr,fsetxattr,lsetxattr,removexattr,mount,socket,connect,bind,sendto,execve,execveat,clone,\
    clone3,fork,vfork,settimeofday,clock_settime,adjtimex,sethostname,ptrace,kill";

/// What strace wrote, one list of lines for each thread.
struct Traces(BTreeMap<u32, Vec<String>>);

impl Traces {
    fn read(directory: &Path) -> Self {
        let traces = fs::read_dir(directory).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let id = path.extension().unwrap().to_str().unwrap().parse().unwrap();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            (id, text.lines().map(str::to_owned).collect())
        });
        Self(traces.collect())
    }

    /// The processes that the worker started, and all that those started.
    fn observed(&self) -> BTreeSet<u32> {
        let children = |id: &u32| self.0[id].iter().filter_map(|line| started(line));
        let first =
            self.0.keys().find(|id| self.0[id].iter().any(|line| line.contains("observed::worker"))).unwrap();
        let (mut threads, mut observed) = (vec![*first], Vec::new());
        let mut next = 0;
        while let Some(id) = threads.get(next).copied() {
            next += 1;
            for (child, is_thread) in children(&id).filter(|(child, _)| self.0.contains_key(child)) {
                if is_thread {
                    threads.push(child);
                } else if !self.is_guardian(child) {
                    observed.push(child);
                }
            }
        }
        let mut next = 0;
        while let Some(id) = observed.get(next).copied() {
            next += 1;
            observed.extend(children(&id).map(|(child, _)| child).filter(|child| self.0.contains_key(child)));
        }
        observed.into_iter().collect()
    }

    /// Returns whether a process is not a command, but the one that would end commands.
    fn is_guardian(&self, id: u32) -> bool {
        self.0[&id]
            .iter()
            .any(|line| line.starts_with("execve(\"/bin/sh\"") && line.contains("\"llm-do-guardian\""))
    }

    /// What was done that must not be done, and which programs were seen.
    fn check(&self, root: &Path) -> (Vec<String>, BTreeMap<String, u32>) {
        let (mut violations, mut programs) = (Vec::new(), BTreeMap::new());
        for id in self.observed() {
            let lines = &self.0[&id];
            // Until it becomes another program, a child is the worker still.
            let begin = lines.iter().position(|line| line.starts_with("execve(")).unwrap_or(0);
            let command = lines.get(begin).cloned().unwrap_or_default();
            for (number, line) in lines[begin..].iter().enumerate() {
                if let Some(program) = program_of(line) {
                    *programs.entry(program.to_owned()).or_default() += 1;
                }
                if let Some(reason) = violation(line, number == 0, root) {
                    violations.push(format!("{reason}: {line}\n    in {command}"));
                }
            }
        }
        violations.dedup();
        (violations, programs)
    }
}

/// The thread or process that a call started, and whether it is a thread.
fn started(line: &str) -> Option<(u32, bool)> {
    let call = ["clone(", "clone3(", "fork(", "vfork("].iter().any(|call| line.starts_with(call));
    let id = line.rsplit_once("= ")?.1.split_whitespace().next()?.parse().ok()?;
    call.then_some((id, line.contains("CLONE_THREAD")))
}

fn program_of(line: &str) -> Option<&str> {
    line.strip_prefix("execve(\"")?.split('"').next()?.rsplit('/').next()
}

fn violation(line: &str, is_first: bool, root: &Path) -> Option<&'static str> {
    let (call, rest) = line.split_once('(')?;
    match call {
        "execve" => (!may_run(rest, is_first)).then_some("runs another program"),
        "open" | "openat" | "openat2" if writes(rest) => Some("opens to write"),
        "open" | "openat" | "openat2" => (!may_read(rest, root)).then_some("opens outside"),
        "clone" | "clone3" | "fork" | "vfork" => None,
        "socket" => (!rest.starts_with("AF_UNIX")).then_some("opens a socket"),
        // The names of users and groups are first asked for here.
        "connect" => (!rest.contains("/nscd/socket\"")).then_some("connects"),
        // What strace says of signals and ends.
        call if call.starts_with(['-', '+']) || call.contains(' ') => None,
        _ => Some("changes something"),
    }
}

/// A listed program, once; and git, which asks itself to describe a commit.
fn may_run(rest: &str, is_first: bool) -> bool {
    let Some(path) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) else { return false };
    let name = path.rsplit('/').next().unwrap_or_default();
    let listed = FLAGS.iter().any(|(program, _)| program.split(' ').next() == Some(name));
    let system =
        ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|directory| path == format!("{directory}/{name}"));
    let of_git = name == "git" && path.ends_with("/git-core/git");
    (listed && system && is_first) || of_git
}

/// Below `/dev/null`, where `sort` is told to keep its temporary files, nothing can be.
fn writes(rest: &str) -> bool {
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE", "O_APPEND"];
    let nowhere = rest.contains("\"/dev/null\"") || rest.contains("\"/dev/null/");
    writes.iter().any(|flag| rest.contains(flag)) && !nowhere
}

/// What was opened lies in the root, or is something of the system that every program may read.
fn may_read(rest: &str, root: &Path) -> bool {
    #[rustfmt::skip]
    const SYSTEM: &[&str] = &[
        "/usr/", "/lib/", "/lib64/", "/proc/", "/sys/", "/dev/null", "/dev/urandom", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/nsswitch.conf",
        "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/magic", "/etc/mtab", "/etc/gitconfig", "/etc/locale", "/etc/selinux",
    ];
    let Some((call, result)) = rest.rsplit_once(") = ") else { return true };
    let named = call.split('"').nth(1).unwrap_or_default();
    let reached = match result.split_once('<') {
        Some((_, path)) => path.trim_end_matches('>').to_owned(),
        // What was not opened only shows what was wanted; a name that is not there tells nothing.
        None if result.contains("EACCES") && named.starts_with('/') => named.to_owned(),
        None => return true,
    };
    // `find` opens the top to learn how files are opened, and reads nothing; a listing would say so.
    let only_tried = reached == "/" && !rest.contains("O_DIRECTORY");
    only_tried
        || Path::new(&reached).starts_with(root)
        || SYSTEM.iter().any(|place| reached.starts_with(place))
}
