//! Confines child processes, whatever they are: what they may read, write and reach.
//!
//! A [`Sandbox`] says what is allowed; [`Sandbox::prepare`] turns it into something from which processes are
//! started ([`PreparedSandbox::spawn`]). On Linux the kernel keeps it: Landlock files, devices and signals
//! ([`files`]), a seccomp filter the network and what would lead around the wall ([`calls`]); rights of the
//! super-user are given up ([`rights`]). Children of a child inherit all of it, and nothing undoes it.
//!
//! It binds one thread, so each process is started by a thread that lives just for it; no code runs between
//! fork and exec. Where the kernel has less, less is kept, and [`sandbox_status`] says what.
//!
//! The sandbox does not decide who may run what, and does not know toolsets.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(target_os = "linux")]
mod rights;
mod status;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use linux::Walls;
#[cfg(not(target_os = "linux"))]
use other::Walls;

pub use status::{SandboxStatus, sandbox_status};

/// What a process and all its children may do.
///
/// Looking at names, sizes and links is always possible; so are pipes, and files that were open before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The files that may be read and executed, and the directories that may be listed.
    pub reads: Reads,
    /// The files that may be created, changed, moved and removed.
    pub writes: Writes,
    /// Whether the network may be used. Sockets of local services only where writes are free too: through them
    /// a service could be made to write.
    pub network: bool,
}

/// What may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// Everything.
    Anywhere,
    /// These files, and what lies below these directories. What does not exist is left out.
    Below(Vec<PathBuf>),
}

/// What may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    /// Nothing but `/dev/null`; modes, times and attributes of files neither.
    Nowhere,
    /// What lies below these directories, and `/dev/null`.
    Below(Vec<PathBuf>),
    /// Everything.
    Anywhere,
}

/// A sandbox from which processes can be started. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PreparedSandbox(Arc<Walls>);

impl Sandbox {
    /// The directories of the system: programs, libraries, configuration, and what the kernel tells about
    /// itself. The memory and the variables of processes outside a sandbox are closed to it all the same.
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

    /// Opens what is named, once for many processes. Fails where the kernel has nothing to keep it with, and
    /// where a directory to write to cannot be opened.
    pub fn prepare(&self) -> io::Result<PreparedSandbox> {
        Walls::new(self, sandbox_status()).map(Arc::new).map(PreparedSandbox)
    }
}

impl PreparedSandbox {
    /// Starts a process inside. Takes little longer than starting one outside, and must be called where a
    /// Tokio runtime is.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let walls = self.0.clone();
        let start = move || {
            let _entered = runtime.enter();
            walls.enter()?;
            command.spawn()
        };
        // The thread is bound from then on, so it is never used again.
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

    async fn succeeds(sandbox: &PreparedSandbox, place: &Path, script: &str) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(place).stderr(std::process::Stdio::null());
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
        Some(PreparedSandbox(Arc::new(Walls::new(&sandbox, &older).unwrap())))
    }

    #[tokio::test]
    #[expect(clippy::print_stdout, reason = "what was left out is worth reading")]
    async fn older_kernels_keep_writes_too() {
        let place = std::env::temp_dir().join(format!("llm-do-levels-{}", std::process::id()));
        let (inside, outside) = (place.join("inside"), place.join("outside"));
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
        fs::remove_dir_all(place).unwrap();
    }
}
