//! An approver that answers from a list.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::future::BoxFuture;
use llm_do_core::{Answer, ApprovalRequest, Approver, ApproverError, Scope};
use parking_lot::Mutex;
use serde_json::Value;

/// Allows the call once.
pub fn once() -> Answer {
    Answer::Once
}

/// Denies the call, with words for the model.
pub fn deny(message: &str) -> Answer {
    Answer::Deny(message.to_owned())
}

/// Allows the call with other arguments.
pub fn edit(arguments: Value) -> Answer {
    Answer::Edit(arguments)
}

/// Allows what the scope covers until the session ends.
pub fn for_session(scope: Scope) -> Answer {
    Answer::Session(scope)
}

/// Stops the run.
pub fn stop() -> Answer {
    Answer::Stop
}

/// Answers requests from a list, in the order in which they arrive, and keeps them.
///
/// A request beyond the end of the list fails, which denies it.
#[derive(Debug, Clone, Default)]
pub struct Approvals {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<Answer>,
    requests: Vec<ApprovalRequest>,
}

impl Approvals {
    /// An approver with these answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let state = State { answers: answers.into_iter().collect(), requests: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the requests that arrived.
    pub fn requests(&self) -> Vec<ApprovalRequest> {
        self.state.lock().requests.clone()
    }
}

impl Approver for Approvals {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let mut state = self.state.lock();
        state.requests.push(request.clone());
        let answer = state.answers.pop_front().ok_or_else(|| ApproverError("no answer is left".to_owned()));
        Box::pin(std::future::ready(answer))
    }
}
