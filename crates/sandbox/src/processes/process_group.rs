//! The processes of one call, none of which outlives it.
//!
//! Every program leads a process group of its own, which is killed as soon as the program has ended or must
//! end. A process that left its group still carries the [tag](ProcessTag), by which it is found and killed too.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::Pid;
use tokio::process::{Child, ChildStdout, Command};

use super::{ProcessTag, TAG_VARIABLE, forget_group, guard_group, kill_group};
use crate::sandbox::PreparedSandbox;

/// Programs that are started and ended together. Dropping the group kills them and everything that they started.
#[derive(Debug)]
pub struct ProcessGroup {
    tag: ProcessTag,
    groups: Groups,
    ended: bool,
    sandbox: Option<PreparedSandbox>,
}

/// A running program of a [`ProcessGroup`].
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    groups: Groups,
}

/// The process groups whose leaders were not waited for yet, so that no other process can have their ids.
#[derive(Debug, Clone, Default)]
struct Groups(Arc<Mutex<Vec<Pid>>>);

impl ProcessGroup {
    /// Makes an empty group, whose programs will run in the sandbox if one is given.
    pub fn new(sandbox: Option<PreparedSandbox>) -> Self {
        Self { tag: ProcessTag::new(), groups: Groups::default(), ended: true, sandbox }
    }

    /// Starts a program in a process group of its own.
    pub fn spawn(&mut self, mut command: Command) -> io::Result<ChildProcess> {
        command.env(TAG_VARIABLE, self.tag.value()).process_group(0).kill_on_drop(true);
        let child = self.tag.while_inherited(|| match &self.sandbox {
            Some(sandbox) => sandbox.spawn(command),
            None => command.spawn(),
        })?;
        self.ended = false;
        if let Some(group) = group_of(&child) {
            self.groups.add(group);
            self.tag.fix_on(group);
        }
        Ok(ChildProcess { child, groups: self.groups.clone() })
    }

    /// Notes that every program was waited for and left no process behind, so that none is searched for.
    pub fn mark_ended(&mut self) {
        self.ended = true;
    }

    /// Kills everything that is still running.
    pub async fn end(&mut self) {
        if self.ended {
            return;
        }
        let (tag, groups) = (self.tag.clone(), self.groups.clone());
        // If no thread can be started, `drop` kills them.
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
    /// Takes the read end of the program's standard output, if it is piped.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for the program, and kills what it left behind in its process group.
    pub async fn wait(mut self) -> io::Result<ExitStatus> {
        let group = group_of(&self.child);
        let status = self.child.wait().await;
        // The id cannot belong to another process yet: the kernel reuses ids only after it has wrapped around.
        group.into_iter().for_each(|group| self.groups.kill_and_forget(group));
        status
    }
}

impl Groups {
    fn change(&self, change: impl FnOnce(&mut Vec<Pid>)) {
        change(&mut self.0.lock());
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

/// Kills the groups, and every process that left them. Those are searched for first, because a process loses its
/// parent when that one is killed.
fn kill_all(tag: &ProcessTag, groups: &Groups) {
    let found = tag.find();
    groups.kill();
    if found.kill() {
        tag.kill_all();
    }
}
