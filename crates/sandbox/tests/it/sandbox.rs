//! The sandbox by itself: what programs in it cannot do, each time beside the same program outside.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use llm_do_capabilities::Capability;
use llm_do_sandbox::{PreparedSandbox, Reads, Sandbox, Writes, sandbox_status};
use llm_do_testing_macros::needs;
use tempfile::TempDir;
use tokio::process::Command;

/// A directory that vanishes with its value, with the directories `inside` and `outside` of the same content.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.fill();
        folder
    }

    /// Begins anew, in the same two directories.
    fn fill(&self) {
        for place in ["inside", "outside"] {
            let place = self.0.path().join(place);
            for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
                let _ = fs::remove_file(entry.path()).or_else(|_| fs::remove_dir_all(entry.path()));
            }
            fs::create_dir_all(place.join("d")).unwrap();
            fs::create_dir_all(place.join("empty")).unwrap();
            for file in ["a", "b", "d/c"] {
                fs::write(place.join(file), "content\n").unwrap();
            }
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Everything about all files, but for when they were read.
    fn snapshot(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.0.path().to_owned()];
        while let Some(path) = open.pop() {
            let data = path.symlink_metadata().unwrap();
            let content = if data.is_file() { fs::read_to_string(&path).unwrap() } else { String::new() };
            let times = (data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec());
            found.push(format!("{} {:o} {} {times:?} {content}", path.display(), data.mode(), data.uid()));
            if data.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        found.sort();
        found
    }
}

fn prepared(reads: Reads, writes: Writes, network: bool) -> PreparedSandbox {
    Sandbox { reads, writes, network }.prepare().unwrap()
}

fn read_only() -> PreparedSandbox {
    prepared(Reads::Anywhere, Writes::Nowhere, false)
}

/// Runs a program to its end, in a sandbox or outside.
async fn run(sandbox: Option<&PreparedSandbox>, place: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(place).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = match sandbox {
        Some(sandbox) => sandbox.spawn(command),
        None => command.spawn(),
    };
    child.unwrap().wait_with_output().await.unwrap()
}

fn said(output: &Output) -> String {
    format!("{} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Ways to change something in the working directory, as scripts.
const WRITES: &[&str] = &[
    "touch new",
    "echo x > new",
    "echo x >> a",
    ": > a",
    "cp a new",
    "cp -a d new",
    "mv a new",
    "mv a d/moved",
    "mv d e",
    "ln a new",
    "ln -s a new",
    "mkdir new",
    "rmdir empty",
    "rm a",
    "rm -r d",
    "truncate -s 0 a",
    "mkfifo new",
    "dd if=b of=a conv=notrunc bs=1 count=1 seek=3",
    "sed -i s/c/d/ a",
    "tee a < b",
    "sort -r -o a b",
    "split -b 1 a",
    "mktemp -p .",
    "perl -e 'use Fcntl; sysopen(F, q(a), O_RDWR) or exit 1; syswrite(F, q(y))'",
    "perl -e 'use Fcntl; sysopen(F, q(a), O_WRONLY|O_APPEND) or exit 1; syswrite(F, q(y))'",
    "perl -e 'use Fcntl; sysopen(F, q(a), O_RDONLY|O_TRUNC) or exit 1'",
    "perl -e 'rename(q(a), q(b)) or exit 1'",
    "perl -e 'unlink(q(a)) or exit 1'",
    "perl -e 'truncate(q(a), 1) or exit 1'",
    "sh -c 'sh -c \"sh -c \\\"touch new\\\"\"'",
    "setsid sh -c 'touch new'",
    "(touch new &) ; sleep 0.2; test -e new",
];

/// Ways to change what is known about a file: its mode and its times.
const MODES_AND_TIMES: &[&str] = &[
    "chmod 600 a",
    "chmod +x a",
    "chmod 700 d",
    "touch a",
    "touch -d 2001-01-01 a",
    "touch -d 2001-01-01 d",
    "perl -e 'chmod(0600, q(a)) or exit 1'",
    "perl -e 'open(F, q(<), q(a)); chmod(0600, *F) or exit 1'",
    "perl -e 'utime(1, 1, q(a)) or exit 1'",
];

/// Ways to change owners.
const OWNERS: &[&str] = &[
    "chown $(id -u):$(id -g) a",
    "chgrp $(id -g) a",
    "perl -e 'open(F, q(<), q(a)); chown($<, $) + 0, *F) or exit 1'",
];

/// Ways to change attributes, which file systems need not know.
const ATTRIBUTES: &[&str] = &[
    #[cfg(target_arch = "x86_64")]
    "perl -e '($a, $b, $c) = qw(a user.x y); exit(syscall(188, $a, $b, $c, 1, 0) != 0)'",
    #[cfg(target_arch = "x86_64")]
    "perl -e 'open(F, q(<), q(a)); ($b, $c) = qw(user.x y); exit(syscall(190, fileno(F), $b, $c, 1, 0) != 0)'",
    "perl -e 'open(F, q(<), q(a)); $f = pack(q(L!), 0x40); ioctl(F, 0x40086602, $f) or exit 1'",
];

/// Runs a script outside, where it must change something, then in a sandbox, where it must fail and change
/// nothing.
async fn is_kept(folder: &Folder, sandbox: &PreparedSandbox, place: &str, script: &str) {
    folder.fill();
    let before = folder.snapshot();
    let outside = run(None, &folder.path(place), &["sh", "-c", script]).await;
    if outside.status.success() && folder.snapshot() != before {
        folder.fill();
        let before = folder.snapshot();
        let output = run(Some(sandbox), &folder.path(place), &["sh", "-c", script]).await;
        assert_eq!(folder.snapshot(), before, "{script}: {}", said(&output));
        assert!(!output.status.success(), "{script}: {}", said(&output));
    } else {
        // Only what file systems need not know may be without effect.
        assert!(script.contains("syscall") || script.contains("ioctl"), "{script}: {}", said(&outside));
        println!("skipped, as it does nothing here: {script}");
    }
}

#[test]
fn the_tests_look_for_a_sandbox_as_the_program_does() {
    assert_eq!(Capability::Sandbox.find().is_ok(), sandbox_status().is_active(), "{:?}", sandbox_status());
}

#[needs(sandbox)]
#[tokio::test]
async fn nothing_can_be_written_where_writes_are_allowed_nowhere() {
    let folder = Folder::new();
    let strict = prepared(Reads::Below(strict_paths(&folder)), Writes::Nowhere, false);
    for script in WRITES.iter().chain(MODES_AND_TIMES).chain(OWNERS).chain(ATTRIBUTES) {
        is_kept(&folder, &read_only(), "inside", script).await;
        is_kept(&folder, &strict, "inside", script).await;
    }
}

#[needs(sandbox)]
#[tokio::test]
async fn writes_below_a_directory_stay_below_it() {
    let folder = Folder::new();
    let sandbox = prepared(Reads::Anywhere, Writes::Below(vec![folder.path("inside")]), false);
    for script in WRITES.iter().chain(ATTRIBUTES) {
        is_kept(&folder, &sandbox, "outside", script).await;
    }
    for script in ATTRIBUTES {
        is_kept(&folder, &sandbox, "inside", script).await;
    }
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        is_kept(&folder, &sandbox, "outside", "chown 12345 a").await;
        is_kept(&folder, &sandbox, "outside", "mknod new c 1 3").await;
    }
    for script in WRITES.iter().chain(MODES_AND_TIMES).chain(OWNERS) {
        folder.fill();
        let before = folder.snapshot();
        let output = run(Some(&sandbox), &folder.path("inside"), &["sh", "-c", script]).await;
        assert!(output.status.success() && folder.snapshot() != before, "{script}: {}", said(&output));
    }
    for script in [
        "ln ../outside/a new",
        "mv ../outside/a new",
        "mv a ../outside/new",
        "ln a ../outside/new",
        "mv -T d ../outside/new",
        "ln -s ../outside/a link && echo x > link",
        "ln -s ../outside link && touch link/new",
    ] {
        folder.fill();
        let before: Vec<String> = outside_of(folder.snapshot());
        let output = run(Some(&sandbox), &folder.path("inside"), &["sh", "-c", script]).await;
        assert!(!output.status.success(), "{script}: {}", said(&output));
        assert_eq!(outside_of(folder.snapshot()), before, "{script}");
    }
}

fn outside_of(snapshot: Vec<String>) -> Vec<String> {
    snapshot.into_iter().filter(|line| line.contains("/outside")).collect()
}

/// What a strict sandbox of a toolset would read.
fn strict_paths(folder: &Folder) -> Vec<PathBuf> {
    let mut paths = Sandbox::system_directories();
    paths.push(folder.path("inside"));
    paths
}

#[needs(sandbox)]
#[tokio::test]
async fn reads_below_directories_stay_below_them() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("../outside/a", folder.path("inside/link")).unwrap();
    let strict = prepared(Reads::Below(strict_paths(&folder)), Writes::Nowhere, false);
    for script in [
        "cat ../outside/a",
        "cat link",
        "ls ../outside",
        "find ../outside -name a -empty",
        "cp ../outside/a /dev/null",
        "sh ../outside/a",
        "perl -e 'open(F, q(../outside/a)) or exit 1'",
        "cd ../outside && cat a",
    ] {
        let output = run(Some(&strict), &folder.path("inside"), &["sh", "-c", script]).await;
        assert!(!output.status.success(), "{script}: {}", said(&output));
        assert!(!said(&output).contains("content"), "{script}");
        if !script.contains("sh ../") {
            let outside = run(None, &folder.path("inside"), &["sh", "-c", script]).await;
            assert!(outside.status.success(), "{script}: {}", said(&outside));
        }
    }
    for script in [
        "cat a d/c",
        "ls -la . d",
        "id -un",
        "ls -l /usr/bin/env /etc/passwd",
        "date",
        "cat < /dev/null > /dev/null 2>&1",
        "head -c 4 /dev/urandom",
        "cat /proc/self/status",
        "find . -fstype nothing",
        "echo x | cat /dev/stdin",
    ] {
        let output = run(Some(&strict), &folder.path("inside"), &["sh", "-c", script]).await;
        assert!(output.status.success() && output.stderr.is_empty(), "{script}: {}", said(&output));
    }
}

/// Where a test listens, and what a program there would reach.
struct Listeners {
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
}

impl Listeners {
    fn new(folder: &Folder) -> Self {
        let listeners = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(folder.path("stream")).unwrap(),
            datagram: UnixDatagram::bind(folder.path("datagram")).unwrap(),
        };
        listeners.tcp.set_nonblocking(true).unwrap();
        listeners.udp.set_nonblocking(true).unwrap();
        listeners.stream.set_nonblocking(true).unwrap();
        listeners.datagram.set_nonblocking(true).unwrap();
        listeners
    }

    /// Returns whether anybody came.
    fn were_reached(&self) -> bool {
        let mut buffer = [0; 16];
        self.tcp.accept().map(|(mut stream, _)| stream.read(&mut buffer)).is_ok()
            | self.udp.recv(&mut buffer).is_ok()
            | self.stream.accept().is_ok()
            | self.datagram.recv(&mut buffer).is_ok()
    }

    fn network(&self) -> Vec<String> {
        let (tcp, udp) = (self.tcp.local_addr().unwrap().port(), self.udp.local_addr().unwrap().port());
        vec![
            format!(
                "socket(S, PF_INET, SOCK_STREAM, 0) or exit 1; \
                 connect(S, sockaddr_in({tcp}, inet_aton(q(127.0.0.1)))) or exit 1"
            ),
            format!(
                "socket(S, PF_INET, SOCK_DGRAM, 0) or exit 1; \
                 send(S, q(x), 0, sockaddr_in({udp}, inet_aton(q(127.0.0.1)))) or exit 1"
            ),
        ]
    }

    fn local(&self, folder: &Folder) -> Vec<String> {
        let (stream, datagram) = (folder.path("stream"), folder.path("datagram"));
        let (stream, datagram) = (stream.display(), datagram.display());
        vec![
            format!(
                "socket(S, PF_UNIX, SOCK_STREAM, 0) or exit 1; connect(S, sockaddr_un(q({stream}))) or exit 1"
            ),
            format!(
                "socket(S, PF_UNIX, SOCK_DGRAM, 0) or exit 1; \
                 send(S, q(x), 0, sockaddr_un(q({datagram}))) or exit 1"
            ),
            format!(
                "socketpair(S, T, PF_UNIX, SOCK_DGRAM, 0) or exit 1; \
                 send(S, q(x), 0, sockaddr_un(q({datagram}))) or exit 1"
            ),
            format!(
                "socketpair(S, T, PF_UNIX, SOCK_DGRAM, 0) or exit 1; \
                 connect(S, sockaddr_un(q({datagram}))) or exit 1; syswrite(S, q(x)) or exit 1"
            ),
        ]
    }
}

async fn perl(sandbox: Option<&PreparedSandbox>, script: &str) -> Output {
    run(sandbox, Path::new("/"), &["perl", "-MSocket", "-e", script]).await
}

#[needs(sandbox)]
#[tokio::test]
async fn the_network_and_local_services_are_out_of_reach_until_they_are_granted() {
    let folder = Folder::new();
    let listeners = Listeners::new(&folder);
    let below = || Writes::Below(vec![folder.path("inside")]);
    let none = [read_only(), prepared(Reads::Anywhere, below(), false)];
    let all_but_network = prepared(Reads::Anywhere, Writes::Anywhere, false);
    let granted = prepared(Reads::Anywhere, below(), true);
    let everything = prepared(Reads::Anywhere, Writes::Anywhere, true);
    let (network, local) = (listeners.network(), listeners.local(&folder));
    for script in network.iter().chain(&local) {
        assert!(perl(None, script).await.status.success() && listeners.were_reached(), "{script}");
        assert!(perl(Some(&everything), script).await.status.success(), "{script}");
        assert!(listeners.were_reached(), "{script}");
        let is_local = local.contains(script);
        for (sandbox, is_open) in
            [(&none[0], false), (&none[1], false), (&all_but_network, false), (&granted, !is_local)]
        {
            let output = perl(Some(sandbox), script).await;
            assert_eq!(output.status.success(), is_open, "{script}: {}", said(&output));
            assert_eq!(listeners.were_reached(), is_open, "{script}");
        }
    }
    // Netlink, packets, virtual machines, kernel crypto; raw, and servers.
    for socket in ["16, 3, 0", "17, 3, 0", "40, 1, 0", "38, 5, 0", "2, 3, 1", "10, 1, 0", "1, 5, 0"] {
        let script = format!("socket(S, {socket}) and exit 0; exit($! + 0)");
        assert_eq!(perl(Some(&none[0]), &script).await.status.code(), Some(1), "{socket}");
    }
    let connected = "socketpair(S, T, PF_UNIX, SOCK_STREAM, 0) or exit 1; syswrite(S, q(x)); sysread(T, $x, 1); \
                     exit($x ne q(x))";
    assert!(perl(Some(&none[0]), connected).await.status.success(), "a pair of its own remains");
}

#[needs(sandbox, sandbox_signals)]
#[tokio::test]
async fn other_processes_cannot_be_signalled_or_looked_into() {
    let me = std::process::id();
    let sandbox = prepared(Reads::Anywhere, Writes::Anywhere, true);
    for script in [
        format!("kill -CONT {me}"),
        format!("kill -0 {me}"),
        format!("cat /proc/{me}/environ"),
        format!("readlink /proc/{me}/fd/1"),
        format!("readlink /proc/{me}/cwd"),
        format!("prlimit --pid {me} --core=0:0"),
    ] {
        let output = run(Some(&sandbox), Path::new("/"), &["sh", "-c", &script]).await;
        assert!(!output.status.success(), "{script}: {}", said(&output));
        let has_program = !script.starts_with("prlimit");
        let harmless = if has_program { script } else { format!("prlimit --pid {me} --core") };
        let outside = run(None, Path::new("/"), &["sh", "-c", &harmless]).await;
        assert!(outside.status.success(), "{harmless}: {}", said(&outside));
    }
    let own = "sleep 100 & kill $!; cat /proc/$$/environ; wait";
    let output = run(Some(&sandbox), Path::new("/"), &["bash", "-c", own]).await;
    assert!(!said(&output).contains("denied") && !said(&output).contains("permitted"), "{}", said(&output));
}

/// Calls that lead around a wall, by their number on x86-64, with arguments; and the error that they give.
#[cfg(target_arch = "x86_64")]
const AROUND: &[(&str, &str, i32)] = &[
    ("ptrace", "101, 0, 0, 0, 0", 1),
    ("process_vm_readv", "310, getppid(), 0, 0, 0, 0, 0", 1),
    ("process_vm_writev", "311, getppid(), 0, 0, 0, 0, 0", 1),
    ("pidfd_getfd", "438, 0, 0, 0", 1),
    ("keyctl", "250, 0, -3, 0, 0, 0", 1),
    ("bpf", "321, 0, 0, 0", 1),
    ("mount", "165, 0, 0, 0, 0, 0", 1),
    ("fsopen", "430, 0, 0", 1),
    ("open_tree", "428, -100, 0, 0", 1),
    ("unshare", "272, 0x10000000", 1),
    ("setns", "308, 0, 0", 1),
    ("clone with a namespace of users", "56, 0x10000011, 0, 0, 0, 0", 1),
    ("clone with a namespace of networks", "56, 0x40000011, 0, 0, 0, 0", 1),
    ("open_by_handle_at", "304, -100, 0, 0", 1),
    ("userfaultfd", "323, 0", 1),
    ("perf_event_open", "298, 0, 0, 0, 0, 0", 1),
    ("chroot", "161, 0", 1),
    ("prlimit64 of another", "302, getppid(), 4, 0, 0", 1),
    ("typing at a terminal", "16, 0, 0x5412, 0", 1),
    ("clone3", "435, 0, 0", 38),
    ("io_uring_setup", "425, 1, 0", 38),
    ("io_uring_enter", "426, 0, 0, 0, 0, 0", 38),
    ("socket by its second number", "0x40000029, 2, 1, 0", 38),
    ("ptrace by its second number", "0x40000209, 0, 0, 0, 0", 38),
];

#[cfg(target_arch = "x86_64")]
#[needs(sandbox)]
#[tokio::test]
async fn calls_that_lead_around_the_wall_fail_with_an_error() {
    let loosest = prepared(Reads::Anywhere, Writes::Anywhere, true);
    for (name, arguments, error) in AROUND {
        for sandbox in [&read_only(), &loosest] {
            let output =
                perl(Some(sandbox), &format!("syscall({arguments}) >= 0 and exit 99; exit($! + 0)")).await;
            assert_eq!(output.status.code(), Some(*error), "{name}: {}", said(&output));
        }
    }
}

/// A program for 32-bit machines that ends with code 7.
#[cfg(target_arch = "x86_64")]
fn foreign_program() -> Vec<u8> {
    const START: u32 = 0x0800_0000;
    let code = [0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80];
    let size = 84 + 12;
    let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves = |bytes: &mut Vec<u8>, numbers: &[u16]| {
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    };
    let words = |bytes: &mut Vec<u8>, numbers: &[u32]| {
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    };
    halves(&mut bytes, &[2, 3]);
    words(&mut bytes, &[1, START + 84, 52, 0, 0]);
    halves(&mut bytes, &[52, 32, 1, 0, 0, 0]);
    words(&mut bytes, &[1, 0, START, START, size, size, 5, 0x1000]);
    bytes.extend(code);
    bytes
}

#[cfg(target_arch = "x86_64")]
#[needs(sandbox)]
#[tokio::test]
async fn a_program_of_a_foreign_architecture_is_ended() {
    let folder = Folder::new();
    let program = folder.path("foreign");
    fs::write(&program, foreign_program()).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("{}; exit $?", program.display());
    let outside = run(None, Path::new("/"), &["sh", "-c", &script]).await;
    if outside.status.code() != Some(7) {
        println!("the kernel runs no 32-bit programs anyway: {}", said(&outside));
        return;
    }
    let output = run(Some(&read_only()), Path::new("/"), &["sh", "-c", &script]).await;
    assert_eq!(output.status.code(), Some(128 + 31), "{}", said(&output));
}

#[needs(sandbox)]
#[tokio::test]
async fn the_process_that_starts_others_is_not_confined() {
    let folder = Folder::new();
    for _ in 0..20 {
        assert!(run(Some(&read_only()), &folder.path("inside"), &["cat", "a"]).await.status.success());
    }
    fs::write(folder.path("outside/new"), "x").unwrap();
    assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
    let spawned = tokio::task::spawn_blocking(move || fs::write(folder.path("outside/newer"), "x")).await;
    assert!(spawned.unwrap().is_ok());
}

/// Prints what a program costs in a sandbox and outside, side by side.
#[tokio::test]
#[ignore = "a measurement"]
async fn cost_of_starting_a_program() {
    const ROUNDS: usize = 500;
    let folder = Folder::new();
    let strict = prepared(Reads::Below(strict_paths(&folder)), Writes::Nowhere, false);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..ROUNDS * 2 {
        let sandbox = (round % 2 == 0).then_some(&strict);
        let start = Instant::now();
        assert!(run(sandbox, &folder.path("inside"), &["true"]).await.status.success());
        times[round % 2].push(start.elapsed());
    }
    let preparing = Instant::now();
    for _ in 0..100 {
        drop(prepared(Reads::Below(strict_paths(&folder)), Writes::Nowhere, false));
    }
    let preparing = preparing.elapsed() / 100;
    times.iter_mut().for_each(|times| times.sort_unstable());
    let [sandboxed, plain] = times.map(|times| (times[ROUNDS / 2], times[ROUNDS * 99 / 100]));
    println!(
        "median and 99th percentile: sandboxed {sandboxed:?}, plain {plain:?}; preparing once {preparing:?}"
    );
}
