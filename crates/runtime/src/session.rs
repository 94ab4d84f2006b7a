//! Sessions: several turns with memory.
//!
//! A turn is one run. The top agent keeps its conversation and its toolset instances over the turns;
//! children always start empty. A code entry is called once per turn.

use std::sync::Arc;

use llm_do_core::{Conversation, Input, Message, Name, Output, UsageByModel};

use crate::instances::Instances;
use crate::live::Seat;
use crate::run::{Canceller, Run, RunBuilder, RunError, RunReport};
use crate::runtime::Runtime;

/// A conversation of several runs.
pub struct Session {
    runtime: Runtime,
    entry: Name,
    seat: Arc<Seat>,
    instances: Option<Arc<Instances>>,
    /// The turn in progress. One whose caller gave it up is awaited before anything else happens.
    current: Option<Current>,
    turns: u32,
    usage: UsageByModel,
    stderr: Vec<String>,
}

struct Current {
    run: Run,
    /// How many messages the conversation had before this turn.
    before: usize,
}

impl Session {
    pub(crate) fn new(runtime: Runtime, entry: Name) -> Self {
        let plan = runtime.shared().agent(&entry);
        let instances = plan.map(|plan| Arc::new(Instances::of(&plan)));
        let seat = Arc::new(Seat::new(Conversation::default()));
        Self {
            runtime,
            entry,
            seat,
            instances,
            current: None,
            turns: 0,
            usage: UsageByModel::default(),
            stderr: Vec::new(),
        }
    }

    /// Sends a message and returns the answer of this turn.
    ///
    /// Giving the future up cancels the turn; the next one waits until it has ended in order.
    pub async fn send(&mut self, input: impl Into<Input>) -> Result<RunReport, RunError> {
        self.send_with(input, |run| run).await
    }

    /// Sends a message with options of its own: attachments, approver, subscriber, limits.
    pub async fn send_with(
        &mut self,
        input: impl Into<Input>,
        options: impl FnOnce(RunBuilder) -> RunBuilder,
    ) -> Result<RunReport, RunError> {
        self.send_watched(input, options, |_| ()).await
    }

    /// Sends a message and hands out what cancels its turn, before the turn is over.
    pub async fn send_watched(
        &mut self,
        input: impl Into<Input>,
        options: impl FnOnce(RunBuilder) -> RunBuilder,
        watch: impl FnOnce(Canceller),
    ) -> Result<RunReport, RunError> {
        self.settle().await;
        let turn = options(self.turn(input));
        let before = self.seat.talk.lock().await.conversation.messages().len();
        let run = turn.start();
        watch(run.canceller());
        let guard = CancelOnDrop(Some(run.canceller()));
        self.current = Some(Current { run, before });
        let report = self.finish().await;
        guard.disarm();
        report.unwrap_or_else(|| unreachable!("the turn was just started"))
    }

    /// Calls a tool or agent by name, beside the conversation.
    pub async fn call(&mut self, name: impl Into<Name>, input: impl Into<Input>) -> Result<Output, RunError> {
        let report = self.runtime.run(name, input).await;
        self.count(&report);
        report.map(|report| report.output.unwrap_or_else(|| Output::text("")))
    }

    /// Returns the messages so far.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        self.seat.talk.lock().await.conversation.messages().to_vec()
    }

    /// Returns what all turns and calls used.
    pub fn usage(&self) -> &UsageByModel {
        &self.usage
    }

    /// Returns the lines that calls wrote to their error log.
    pub fn stderr_log(&self) -> &[String] {
        &self.stderr
    }

    /// Ends the conversation and closes its toolset instances.
    pub async fn close(mut self) {
        if let Some(current) = &self.current {
            current.run.cancel();
        }
        self.settle().await;
        if let Some(instances) = self.instances.take() {
            instances.close().await;
        }
    }

    fn turn(&mut self, input: impl Into<Input>) -> RunBuilder {
        self.turns += 1;
        let (seat, instances, ordinal) = (self.seat.clone(), self.instances.clone(), self.turns);
        self.runtime.run(self.entry.clone(), input).with_options(|options| {
            options.seat = Some(seat);
            options.instances = instances;
            options.ordinal = ordinal;
        })
    }

    /// Waits for a turn that was given up, so that nothing works on the conversation beside the next one.
    async fn settle(&mut self) {
        let _ = self.finish().await;
    }

    /// Waits for the turn in progress and takes account of it.
    async fn finish(&mut self) -> Option<Result<RunReport, RunError>> {
        let current = self.current.as_mut()?;
        let (report, before) = ((&mut current.run).await, current.before);
        self.current = None;
        if report.is_err() {
            self.forget_unanswered(before).await;
        }
        self.count(&report);
        Some(report)
    }

    /// A message that got no reply at all is not kept: the next turn would follow it as if it had.
    async fn forget_unanswered(&self, before: usize) {
        let mut talk = self.seat.talk.lock().await;
        if talk.conversation.messages().len() == before + 1 {
            talk.conversation.truncate(before);
            talk.announced = talk.announced.min(before);
        }
    }

    fn count(&mut self, report: &Result<RunReport, RunError>) {
        let report = match report {
            Ok(report) => report,
            Err(error) => &error.report,
        };
        self.usage.merge(&report.usage);
        self.stderr.extend(report.stderr_log());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let (current, instances) = (self.current.take(), self.instances.take());
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.runtime.shared().tasks.spawn(async move {
            if let Some(current) = current {
                current.run.cancel();
                let _ = current.run.await;
            }
            if let Some(instances) = instances {
                instances.close().await;
            }
        });
    }
}

/// Cancels a turn whose caller gave it up.
struct CancelOnDrop(Option<Canceller>);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(canceller) = &self.0 {
            canceller.cancel();
        }
    }
}
