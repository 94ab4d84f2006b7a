//! Replies of a scripted model, and the small words that build them.
//!
//! A [`ScriptedReply`] is a list of steps (say, think, ask for a tool, wait, fail, be cut) with the condition under
//! which it is given. It is plain data: choosing a reply is the work of [`Script`](crate::Script), turning
//! it into a stream that of `delivery`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use llm_do_core::{ModelError, ModelErrorKind, ModelRequest, Name, StopReason, Usage};
use serde_json::Value;

use super::condition::Condition;

/// One reply of a scripted model.
///
/// Its steps happen in order. Nothing follows a failure or a cut: further steps are never reached.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    steps: Vec<ReplyStep>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    pace: Option<Duration>,
    pub(crate) condition: Option<Condition>,
    pub(crate) once: bool,
}

/// One step of a reply: an act, or a closure that says which acts.
#[derive(Debug, Clone)]
enum ReplyStep {
    Act(Act),
    Compute(Computation),
}

/// One thing that happens in an answer.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Say(Arc<str>),
    Think(Arc<str>),
    Ask {
        tool: Name,
        arguments: Arc<str>,
    },
    Wait(Duration),
    Fail(ModelError),
    /// The stream ends here, without a finished answer.
    Cut,
}

/// A reply to one request: its closures have been asked, its condition has served.
#[derive(Debug, Default)]
pub(crate) struct ScriptedAnswer {
    pub(crate) acts: Vec<Act>,
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) pace: Option<Duration>,
}

/// A closure that answers a request.
#[derive(Clone)]
struct Computation(Arc<dyn Fn(&ModelRequest<'_>) -> ScriptedReply + Send + Sync>);

impl fmt::Debug for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computation")
    }
}

/// A reply of text.
pub fn says(text: impl Into<Arc<str>>) -> ScriptedReply {
    ScriptedReply::from_act(Act::Say(text.into()))
}

/// A reply of thinking; what the model then does is added with [`ScriptedReply::and`].
pub fn thinks(text: impl Into<Arc<str>>) -> ScriptedReply {
    ScriptedReply::from_act(Act::Think(text.into()))
}

/// A reply that asks for one tool.
pub fn asks(tool: impl Into<Name>, arguments: Value) -> ScriptedReply {
    asks_raw(tool, arguments.to_string())
}

/// A reply that asks for several tools at once.
pub fn asks_all<T: Into<Name>>(calls: impl IntoIterator<Item = (T, Value)>) -> ScriptedReply {
    calls
        .into_iter()
        .fold(ScriptedReply::default(), |reply, (tool, arguments)| reply.and(asks(tool, arguments)))
}

/// A reply that asks for a tool with this very argument text, which need not be JSON.
pub fn asks_raw(tool: impl Into<Name>, arguments: impl Into<Arc<str>>) -> ScriptedReply {
    ScriptedReply::from_act(Act::Ask { tool: tool.into(), arguments: arguments.into() })
}

/// A failure of the provider.
///
/// Alone, the request itself fails; after text or thinking, the stream fails in the middle.
pub fn fails(kind: ModelErrorKind, message: impl Into<String>) -> ScriptedReply {
    ScriptedReply::from_act(Act::Fail(ModelError::new(kind, message)))
}

/// A reply of text whose stream ends without a finished answer, as on a broken connection.
pub fn cut(text: impl Into<Arc<str>>) -> ScriptedReply {
    says(text).and(ScriptedReply::from_act(Act::Cut))
}

/// A reply made by a closure when it is given.
///
/// A condition on the reply that the closure returns is not looked at: put it on this one.
pub fn replies(answer: impl Fn(&ModelRequest<'_>) -> ScriptedReply + Send + Sync + 'static) -> ScriptedReply {
    ScriptedReply {
        steps: vec![ReplyStep::Compute(Computation(Arc::new(answer)))],
        ..ScriptedReply::default()
    }
}

impl ScriptedReply {
    fn from_act(act: Act) -> Self {
        Self { steps: vec![ReplyStep::Act(act)], ..Self::default() }
    }

    /// Adds another reply: first this one, then that. Where both set usage, stop, pace or condition, the other wins.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        Self {
            steps: self.steps,
            usage: other.usage.or(self.usage),
            stop: other.stop.or(self.stop),
            pace: other.pace.or(self.pace),
            condition: other.condition.or(self.condition),
            once: self.once || other.once,
        }
    }

    /// Waits before this reply begins, in the time of tokio, so that a paused clock skips it.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.steps.insert(0, ReplyStep::Act(Act::Wait(delay)));
        self
    }

    /// Waits after each piece of what is said and thought, as a model takes its time.
    #[must_use]
    pub fn paced(mut self, pace: Duration) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Sets what the request used, instead of an estimate. A failure reports it too.
    #[must_use]
    pub fn using(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the input and output tokens of one request, instead of an estimate.
    #[must_use]
    pub fn tokens(self, input: u64, output: u64) -> Self {
        self.using(Usage { requests: 1, input, output, ..Usage::default() })
    }

    /// Sets why the model stopped, instead of `EndTurn`, or `ToolUse` where it asks for a tool.
    #[must_use]
    pub fn stops(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// Makes the failures of this reply ask to wait before the next attempt.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        for step in &mut self.steps {
            if let ReplyStep::Act(Act::Fail(error)) = step {
                error.retry_after = Some(wait);
            }
        }
        self
    }

    /// Gives this reply whenever the condition holds, before any reply without one, and as often as it holds.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Limits a reply with a condition to one use.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Returns what is answered to a request: each closure is replaced by the acts of its reply.
    pub(crate) fn answer(self, request: &ModelRequest<'_>) -> ScriptedAnswer {
        let mut answer =
            ScriptedAnswer { acts: Vec::new(), usage: self.usage, stop: self.stop, pace: self.pace };
        for step in self.steps {
            match step {
                ReplyStep::Act(act) => answer.acts.push(act),
                ReplyStep::Compute(Computation(compute)) => answer.append(compute(request).answer(request)),
            }
        }
        answer
    }
}

impl ScriptedAnswer {
    fn append(&mut self, other: Self) {
        self.acts.extend(other.acts);
        self.usage = other.usage.or(self.usage);
        self.stop = other.stop.or(self.stop.take());
        self.pace = other.pace.or(self.pace);
    }
}
