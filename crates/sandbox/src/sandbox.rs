//! Confines child processes: what they may read, write and reach.
//!
//! A [`Sandbox`] lists what is allowed; [`Sandbox::prepare`] turns it into something from which processes are
//! started ([`PreparedSandbox::spawn`]). On Linux the kernel enforces it: Landlock confines files, devices and signals
//! ([`landlock_rules`]), a seccomp filter closes the network and the ways around the sandbox ([`seccomp_filter`]), and
//! privileges of root are dropped ([`capabilities`]). Descendants inherit the restrictions, and nothing removes them.
//!
//! The restrictions apply to one thread, so each process is started by a thread of its own, and no code runs between
//! fork and exec. An older kernel enforces less; [`sandbox_status`] returns what it enforces.

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod enforcement;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod seccomp_filter;
mod status;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use enforcement::Enforcement;
#[cfg(not(target_os = "linux"))]
use unsupported::Enforcement;

pub use status::{SandboxStatus, sandbox_status};

/// What a process and its descendants may do.
///
/// Names, sizes and links of files can always be read, and pipes and files that are already open can always be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The files that may be read and executed, and the directories that may be listed.
    pub reads: Reads,
    /// The files that may be created, changed, moved and removed.
    pub writes: Writes,
    /// Whether the network may be used. Sockets of local services can be used only if writes are unrestricted too,
    /// because a service could write on behalf of the process.
    pub network: bool,
}

/// Which files may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// Everything.
    Anywhere,
    /// These files, and everything below these directories. Paths that do not exist are ignored.
    Below(Vec<PathBuf>),
}

/// Which files may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    /// Only `/dev/null`. Modes, times and attributes of files cannot be changed either.
    Nowhere,
    /// Everything below these directories, and `/dev/null`.
    Below(Vec<PathBuf>),
    /// Everything.
    Anywhere,
}

/// A sandbox from which processes can be started. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PreparedSandbox(Arc<Enforcement>);

impl Sandbox {
    /// Returns the directories of the system: programs, libraries, configuration, and `/proc`. The memory and the
    /// environment of processes outside the sandbox stay unreadable.
    pub fn system_directories() -> Vec<PathBuf> {
        const DIRECTORIES: [&str; 17] = [
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/etc",
            "/opt",
            "/nix/store",
            "/gnu/store",
            "/proc",
            "/sys/devices/system/cpu",
            "/sys/fs/cgroup",
            "/run/systemd/resolve",
            "/run/resolvconf",
            "/run/NetworkManager/resolv.conf",
        ];
        DIRECTORIES.iter().map(PathBuf::from).collect()
    }

    /// Opens the listed paths, once for many processes.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel supports no part of the sandbox, or if a directory to write to cannot be opened.
    pub fn prepare(&self) -> io::Result<PreparedSandbox> {
        Enforcement::new(self, sandbox_status()).map(Arc::new).map(PreparedSandbox)
    }
}

impl PreparedSandbox {
    /// Starts a process inside the sandbox. Must be called within a Tokio runtime.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let enforcement = self.0.clone();
        let start = move || {
            let _entered = runtime.enter();
            enforcement.restrict_thread()?;
            command.spawn()
        };
        // The thread stays restricted, so it must not be reused.
        let thread = std::thread::Builder::new().name("sandbox".to_owned()).spawn(start)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts a program panicked")))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    async fn succeeds(sandbox: &PreparedSandbox, directory: &Path, script: &str) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(directory).stderr(std::process::Stdio::null());
        sandbox.spawn(command).unwrap().wait().await.unwrap().success()
    }

    /// What an older kernel does is what a newer one does with the rights of the older.
    fn at_level(level: u32, writes: Writes) -> Option<PreparedSandbox> {
        let status = sandbox_status();
        if !status.is_active() || status.landlock_level < Some(level) {
            return None;
        }
        let older = SandboxStatus { landlock_level: Some(level), ..status.clone() };
        let sandbox = Sandbox { reads: Reads::Anywhere, writes, network: false };
        Some(PreparedSandbox(Arc::new(Enforcement::new(&sandbox, &older).unwrap())))
    }

    #[tokio::test]
    #[expect(clippy::print_stdout, reason = "what was left out is worth reading")]
    async fn older_kernels_keep_writes_too() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        for directory in [&inside, &outside] {
            fs::create_dir_all(directory.join("d")).unwrap();
            fs::write(directory.join("a"), "content").unwrap();
        }
        for level in 1..=7 {
            let (Some(nowhere), Some(below)) =
                (at_level(level, Writes::Nowhere), at_level(level, Writes::Below(vec![inside.clone()])))
            else {
                println!("skipped: the kernel has no level {level}");
                continue;
            };
            for script in [
                "touch new",
                ": > a",
                "rm a",
                "mv a new",
                "mv a d/a",
                "truncate -s 0 a",
                "perl -e 'truncate(q(a), 1) or exit 1'",
                "perl -e 'use Fcntl; sysopen(F, q(a), O_RDONLY|O_TRUNC) or exit 1'",
            ] {
                assert!(!succeeds(&nowhere, &inside, script).await, "level {level}: {script}");
                assert!(!succeeds(&below, &outside, script).await, "level {level}: {script}");
            }
            for script in
                ["touch new && rm new", "echo x > b && mv b c && rm c", ": > a", "mkdir e && rmdir e"]
            {
                assert!(succeeds(&below, &inside, script).await, "level {level}: {script}");
            }
            assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "content");
        }
    }
}
