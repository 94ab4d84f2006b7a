//! The processes of one call: started together, and none of them outlives it.
//!
//! Every program leads a process group of its own, which is killed as soon as the program has ended or must
//! end. A process that left its group still carries the mark of its family in its environment, by which it
//! is found and killed too.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdout, Command};

use crate::sandbox::PreparedSandbox;

/// The variable that marks the processes of a family.
const MARK: &str = "LLM_DO_SHELL_CALL";

/// The processes of one call. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct Family {
    /// The value of the variable, with the sign that ends it.
    mark: String,
    groups: Groups,
    ended: bool,
    sandbox: Option<PreparedSandbox>,
}

/// What the marks of all families of this process begin with. Chance keeps apart the families of several
/// programs on one machine, in whatever namespaces.
fn mark_of_process() -> &'static str {
    static MARK_OF_PROCESS: OnceLock<String> = OnceLock::new();
    MARK_OF_PROCESS.get_or_init(|| format!("{:016x}-", RandomState::new().hash_one(std::process::id())))
}

/// Kills every program that a [`Shell`](super::Shell) of this process has started and that still runs: for a
/// process that leaves at once and waits for nothing.
pub fn end_all_commands() {
    sweep(mark_of_process());
}

/// A program of a family.
#[derive(Debug)]
pub(crate) struct Member {
    child: Child,
    groups: Groups,
}

/// The groups whose leaders were not waited for yet, so that their ids cannot belong to others.
#[derive(Debug, Clone, Default)]
struct Groups(Arc<Mutex<Vec<Pid>>>);

impl Family {
    /// A family without members, which will run in a sandbox where there is one.
    pub(crate) fn new(sandbox: Option<PreparedSandbox>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}{number}\0", mark_of_process());
        Self { mark, groups: Groups::default(), ended: true, sandbox }
    }

    /// Starts a program in a group of its own.
    pub(crate) fn spawn(&mut self, mut command: Command) -> io::Result<Member> {
        let mark = self.mark.trim_end_matches('\0');
        command.env(MARK, mark).process_group(0).kill_on_drop(true);
        let child = match &self.sandbox {
            Some(sandbox) => sandbox.spawn(command)?,
            None => command.spawn()?,
        };
        self.ended = false;
        group_of(&child).into_iter().for_each(|group| self.groups.add(group));
        Ok(Member { child, groups: self.groups.clone() })
    }

    /// Says that all members were waited for and are known to start nothing that stays.
    pub(crate) fn has_ended(&mut self) {
        self.ended = true;
    }

    /// Kills everything that still runs.
    pub(crate) async fn end(&mut self) {
        if self.ended {
            return;
        }
        self.groups.kill();
        let mark = self.mark.clone();
        // A thread that cannot be had leaves the work to the drop.
        self.ended = tokio::task::spawn_blocking(move || sweep(&mark)).await.is_ok();
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if !self.ended {
            self.groups.kill();
            sweep(&self.mark);
        }
    }
}

impl Member {
    /// Takes the end from which the program's output is read, where it is piped.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for the program and kills what it left behind in its group.
    pub(crate) async fn wait(mut self) -> io::Result<ExitStatus> {
        let group = group_of(&self.child);
        let status = self.child.wait().await;
        // The id is not given to another process at once: the kernel counts on until it wraps around.
        group.into_iter().for_each(|group| self.groups.kill_and_forget(group));
        status
    }
}

impl Groups {
    fn change(&self, change: impl FnOnce(&mut Vec<Pid>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn add(&self, group: Pid) {
        self.change(|groups| groups.push(group));
    }

    fn kill(&self) {
        self.change(|groups| groups.drain(..).for_each(kill_group));
    }

    fn kill_and_forget(&self, group: Pid) {
        self.change(|groups| groups.retain(|other| *other != group));
        kill_group(group);
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

fn kill_group(group: Pid) {
    // A group that is gone already is what was wanted.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Kills every process whose mark begins so, until there is none.
#[cfg(target_os = "linux")]
fn sweep(mark: &str) {
    const ROUNDS: u32 = 100;
    let needle = format!("{MARK}={mark}").into_bytes();
    for _ in 0..ROUNDS {
        if !processes().any(|process| kill_marked(process, &needle)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[cfg(not(target_os = "linux"))]
fn sweep(_mark: &str) {}

#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    entries.filter_map(number).filter_map(Pid::from_raw)
}

/// Kills a process that carries the mark, through a handle, so that it cannot be another one by then.
#[cfg(target_os = "linux")]
fn kill_marked(process: Pid, needle: &[u8]) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    if !is_marked(process, needle) {
        return false;
    }
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else { return false };
    is_marked(process, needle) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

#[cfg(target_os = "linux")]
fn is_marked(process: Pid, needle: &[u8]) -> bool {
    let environment =
        std::fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
    let bounded: Vec<u8> = [b"\0", environment.as_slice()].concat();
    let needle: Vec<u8> = [b"\0", needle].concat();
    bounded.windows(needle.len()).any(|window| window == needle)
}
