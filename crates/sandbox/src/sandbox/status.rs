//! Which parts of a sandbox the system supports, found out by trying.

use std::sync::OnceLock;

/// The parts of a sandbox that are active on this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxStatus {
    /// The Landlock ABI of the kernel, which confines files, or `None` if it has no Landlock.
    pub landlock_level: Option<u32>,
    /// Whether system calls are filtered, which closes the network.
    pub filters_calls: bool,
    /// What is missing, each as a message.
    pub missing: Vec<String>,
}

impl SandboxStatus {
    /// Returns whether both files and the network are confined.
    pub fn is_active(&self) -> bool {
        self.landlock_level.is_some() && self.filters_calls
    }

    /// Returns whether files or the network are confined.
    pub fn is_partly_active(&self) -> bool {
        self.landlock_level.is_some() || self.filters_calls
    }

    /// Lists what is enforced.
    pub fn covers(&self) -> Vec<&'static str> {
        const BY_LEVEL: [(u32, &str); 5] = [
            (1, "reading and writing files"),
            (2, "moves between directories"),
            (5, "control of devices"),
            (6, "signals"),
            (6, "abstract sockets"),
        ];
        let level = self.landlock_level.unwrap_or_default();
        let by_level = BY_LEVEL.iter().filter(|(since, _)| level >= *since).map(|(_, what)| *what);
        let truncation = (level >= 3 || (level > 0 && self.filters_calls)).then_some("truncation");
        let by_filter: &[&str] = match self.filters_calls {
            true => &[
                "network and local sockets",
                "modes, owners and attributes of files",
                "tracing, mounts and namespaces",
            ],
            false => &[],
        };
        by_level.chain(truncation).chain(by_filter.iter().copied()).collect()
    }
}

/// Returns which parts of a sandbox are active on this system. They are tried once, in a thread of their own.
pub fn sandbox_status() -> &'static SandboxStatus {
    static STATUS: OnceLock<SandboxStatus> = OnceLock::new();
    STATUS.get_or_init(found)
}

#[cfg(target_os = "linux")]
fn found() -> SandboxStatus {
    let landlock =
        tried(super::landlock_rules::try_level).map_err(|error| format!("files are not confined: {error}"));
    let calls = tried(super::seccomp_filter::try_filter)
        .map_err(|error| format!("the network is not closed: {error}"));
    let landlock_level = landlock.as_ref().ok().copied();
    let filters_calls = calls.is_ok();
    let missing = landlock.err().into_iter().chain(calls.err()).collect();
    SandboxStatus { landlock_level, filters_calls, missing }
}

/// Tries something that restricts a thread.
#[cfg(target_os = "linux")]
fn tried<T: Send + 'static>(what: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    let thread = std::thread::Builder::new().spawn(what).map_err(|error| error.to_string())?;
    thread.join().unwrap_or_else(|_| Err("trying it panicked".to_owned()))
}

#[cfg(not(target_os = "linux"))]
fn found() -> SandboxStatus {
    let missing = vec!["this system has no sandbox: it needs Linux".to_owned()];
    SandboxStatus { landlock_level: None, filters_calls: false, missing }
}
