//! The scripted model: answers with replies that its author wrote.
//!
//! A script is a list of replies. A reply with a condition is given first, whenever its condition holds;
//! otherwise the next reply without one is given. Which one is next depends on how the script was made:
//!
//! - [`Script::new`]: in order, each once, over all calls that share the model. A reply is taken when the
//!   request begins, even if it is abandoned. A run that is entered again goes on after as many replies as it
//!   had; replies with a condition count like others.
//! - [`Script::each_call`]: in order, and every call starts from the first reply again.
//! - [`Script::by_turn`]: the reply with the number of the turn, counted in the conversation. The script keeps
//!   nothing in memory, so a run that is entered again gets the replies that it would have got.
//!
//! This module chooses replies. [`super::reply`] builds them, [`super::script_file`] reads them from YAML
//! and [`super::delivery`] streams them.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{
    Message, Model, ModelError, ModelErrorKind, ModelProfile, ModelRequest, ModelSession, ModelStream, Name,
    Origin,
};
use parking_lot::Mutex;
use serde::Deserialize;

use super::delivery::deliver;
use super::history::TurnCount;
use super::reply::ScriptedReply;
use crate::profiles::offline_profile;

/// A model that answers with prepared replies.
///
/// Clones share their progress: together they give each reply once.
#[derive(Debug, Clone)]
pub struct Script {
    name: Name,
    profile: ModelProfile,
    mode: ScriptMode,
    replies: Arc<Replies>,
    progress: Arc<Mutex<ScriptProgress>>,
}

/// How a script finds the next reply without a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptMode {
    #[default]
    InOrder,
    EachCall,
    ByTurn,
}

#[derive(Debug)]
struct Replies {
    conditional: Vec<ScriptedReply>,
    ordered: Vec<ScriptedReply>,
}

#[derive(Debug, Default)]
struct ScriptProgress {
    /// The next reply without a condition.
    next: usize,
    /// Replies with a condition that were given and may be given only once.
    spent: BTreeSet<usize>,
    /// All replies given.
    given: usize,
}

impl Script {
    /// A script whose replies are given in order, each once, to whoever asks.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::with_mode(ScriptMode::InOrder, replies)
    }

    /// A script that starts from its first reply in every call.
    pub fn each_call(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::with_mode(ScriptMode::EachCall, replies)
    }

    /// A script that gives its n-th reply in the n-th turn of a conversation.
    ///
    /// Replies with a condition are not counted: one whose condition holds replaces that of the turn
    /// reply. [`ScriptedReply::once`] cannot be used, as nothing remembers it, and a failure repeats until the
    /// conversation goes on.
    pub fn by_turn(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        Self::with_mode(ScriptMode::ByTurn, replies)
    }

    pub(crate) fn with_mode(mode: ScriptMode, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let (conditional, ordered) = replies.into_iter().partition(|reply| reply.condition.is_some());
        Self {
            name: "script".into(),
            profile: offline_profile(),
            mode,
            replies: Arc::new(Replies { conditional, ordered }),
            progress: Arc::default(),
        }
    }

    /// Gives the model another name than `script`.
    #[must_use]
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// Lets the model claim other abilities than the usual ones.
    #[must_use]
    pub fn with_profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Chooses the reply to a request and notes that it was given.
    fn choose(&self, request: &ModelRequest<'_>, turns: &mut TurnCount) -> Result<ScriptedReply, ModelError> {
        let mut progress = self.progress.lock();
        let reply = match self.matching(request, &progress) {
            Some(index) => self.take_conditional(index, &mut progress)?,
            None => self.take_next(request, turns, &mut progress)?,
        };
        progress.given += 1;
        Ok(reply.clone())
    }

    fn matching(&self, request: &ModelRequest<'_>, progress: &ScriptProgress) -> Option<usize> {
        let holds = |reply: &ScriptedReply| {
            reply.condition.as_ref().is_some_and(|condition| condition.holds(request))
        };
        let mut replies = self.replies.conditional.iter().enumerate();
        replies.position(|(index, reply)| !progress.spent.contains(&index) && holds(reply))
    }

    fn take_conditional(
        &self,
        index: usize,
        progress: &mut ScriptProgress,
    ) -> Result<&ScriptedReply, ModelError> {
        let reply = &self.replies.conditional[index];
        if reply.once && self.mode == ScriptMode::ByTurn {
            return Err(self.refusal("limits a reply with `once`, which a script by turn cannot remember"));
        }
        if reply.once {
            progress.spent.insert(index);
        }
        Ok(reply)
    }

    fn take_next(
        &self,
        request: &ModelRequest<'_>,
        turns: &mut TurnCount,
        progress: &mut ScriptProgress,
    ) -> Result<&ScriptedReply, ModelError> {
        let index = match self.mode {
            ScriptMode::InOrder | ScriptMode::EachCall => progress.next,
            ScriptMode::ByTurn => turns.count(request.conversation),
        };
        let reply =
            self.replies.ordered.get(index).ok_or_else(|| self.exhausted(request, index, progress))?;
        progress.next += 1;
        Ok(reply)
    }

    /// Says what a test author needs to add the missing reply.
    fn exhausted(&self, request: &ModelRequest<'_>, index: usize, progress: &ScriptProgress) -> ModelError {
        let count = match self.mode {
            ScriptMode::InOrder => format!("{} given so far", counted(progress.given)),
            ScriptMode::EachCall => format!("{} given so far in this call", counted(progress.given)),
            ScriptMode::ByTurn => {
                format!("this is turn {}, it has {}", index + 1, counted(self.replies.ordered.len()))
            }
        };
        let conditions = match self.replies.conditional.len() {
            0 => String::new(),
            1 => ", and its condition does not hold".to_owned(),
            several => format!(", and none of its {several} conditions holds"),
        };
        let last = last_message(request);
        self.refusal(&format!("has no reply for this request: {count}{conditions}; {last}"))
    }

    fn refusal(&self, what: &str) -> ModelError {
        ModelError::new(ModelErrorKind::Invalid, format!("the script `{}` {what}", self.name))
    }

    /// Goes on after so many replies, unless more were given already.
    fn pass_over(&self, answers: u64) {
        let mut progress = self.progress.lock();
        let answers = usize::try_from(answers).unwrap_or(usize::MAX);
        progress.next = progress.next.max(answers);
        progress.given = progress.given.max(answers);
    }

    fn origin(&self) -> Origin {
        Origin { provider: "script".to_owned(), model: self.name.to_string(), data: serde_json::Value::Null }
    }
}

fn counted(count: usize) -> String {
    if count == 1 { "1 reply".to_owned() } else { format!("{count} replies") }
}

fn last_message(request: &ModelRequest<'_>) -> String {
    match request.conversation.messages().last() {
        Some(message) => format!("the last message begins {}", message_start(message)),
        None => "the conversation is empty".to_owned(),
    }
}

fn message_start(message: &Message) -> String {
    match message.tool_results().next() {
        Some(result) => format!("`{}`, the result of `{}`", start(&result.text), result.name),
        None => format!("`{}`", start(&message.text())),
    }
}

fn start(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}

impl Model for Script {
    fn name(&self) -> &Name {
        &self.name
    }

    fn profile(&self) -> ModelProfile {
        self.profile.clone()
    }

    fn open(&self) -> Box<dyn ModelSession> {
        let mut script = self.clone();
        if self.mode == ScriptMode::EachCall {
            script.progress = Arc::default();
        }
        Box::new(ScriptSession { origin: script.origin(), script, turns: TurnCount::default() })
    }

    fn resumed(&self, answers: u64) {
        if self.mode == ScriptMode::InOrder {
            self.pass_over(answers);
        }
    }
}

struct ScriptSession {
    script: Script,
    origin: Origin,
    turns: TurnCount,
}

impl ModelSession for ScriptSession {
    fn resumed(&mut self, answers: u64) {
        if self.script.mode == ScriptMode::EachCall {
            self.script.pass_over(answers);
        }
    }

    fn request<'a>(
        &'a mut self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        Box::pin(async move {
            let reply = self.script.choose(&request, &mut self.turns)?;
            let stream: ModelStream<'a> = deliver(reply.answer(&request), &request, &self.origin).await?;
            Ok(stream)
        })
    }
}
