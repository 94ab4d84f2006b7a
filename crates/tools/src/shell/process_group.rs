//! The processes of one call: started together, and none of them outlives it.
//!
//! Every program leads a process group of its own, which is killed as soon as the program has ended or must
//! end. A process that left its group still carries the [mark](ProcessTag) of its family, by which it is found and
//! killed too.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::Pid;
use tokio::process::{Child, ChildStdout, Command};

use crate::children::{ProcessTag, VARIABLE, forget_group, guard_group, kill_group};
use crate::sandbox::PreparedSandbox;

/// The processes of one call. Dropping it kills them.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    tag: ProcessTag,
    groups: Groups,
    ended: bool,
    sandbox: Option<PreparedSandbox>,
}

/// A program of a family.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    groups: Groups,
}

/// The groups whose leaders were not waited for yet, so that their ids cannot belong to others.
#[derive(Debug, Clone, Default)]
struct Groups(Arc<Mutex<Vec<Pid>>>);

impl ProcessGroup {
    /// A family without members, which will run in a sandbox where there is one.
    pub(crate) fn new(sandbox: Option<PreparedSandbox>) -> Self {
        Self { tag: ProcessTag::next(), groups: Groups::default(), ended: true, sandbox }
    }

    /// Starts a program in a group of its own.
    pub(crate) fn spawn(&mut self, mut command: Command) -> io::Result<ChildProcess> {
        command.env(VARIABLE, self.tag.value()).process_group(0).kill_on_drop(true);
        let child = self.tag.while_inherited(|| match &self.sandbox {
            Some(sandbox) => sandbox.spawn(command),
            None => command.spawn(),
        })?;
        self.ended = false;
        if let Some(group) = group_of(&child) {
            self.groups.add(group);
            self.tag.put_on(group);
        }
        Ok(ChildProcess { child, groups: self.groups.clone() })
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
        let (tag, groups) = (self.tag.clone(), self.groups.clone());
        // A thread that cannot be had leaves the work to the drop.
        self.ended = tokio::task::spawn_blocking(move || kill_all(&tag, &groups)).await.is_ok();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.ended {
            kill_all(&self.tag, &self.groups);
        }
    }
}

impl ChildProcess {
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
        guard_group(group);
        self.change(|groups| groups.push(group));
    }

    fn kill(&self) {
        self.change(|groups| {
            groups.drain(..).for_each(|group| {
                kill_group(group);
                forget_group(group);
            });
        });
    }

    fn kill_and_forget(&self, group: Pid) {
        self.change(|groups| groups.retain(|other| *other != group));
        kill_group(group);
        forget_group(group);
    }
}

fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()?).ok()?)
}

/// Kills the groups, and every process that left them. Those are looked for first: with the death of a parent
/// it is forgotten whose child a process was.
fn kill_all(tag: &ProcessTag, groups: &Groups) {
    let found = tag.find();
    groups.kill();
    if found.kill() {
        tag.kill_all();
    }
}
