//! Answers that do not come from the approver of this process, and questions that are left open for them.
//!
//! Another process answers a question while the run waits for it, or while it is parked. Such an answer holds for exactly
//! what was asked: the digest of the request says what that was.

use std::sync::OnceLock;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use llm_do_core::{
    Answer, AnsweredBy, ApprovalRequest, Approver, ApproverError, Assessment, Digest, ExtensionRequest, Halt,
    Name,
};

use crate::project::plan::TargetKind;
use crate::record::store::GivenAnswer;
use crate::state::broker::GrantQuestion;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;

/// How often the store is asked for an answer while a question is open.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What became of a question while the run was parked.
pub(super) enum EarlierAnswer {
    /// It was answered.
    Given(GivenAnswer),
    /// Nobody answered it in time.
    Expired(Timestamp),
}

/// What exactly is asked about: the arguments, the files that go with them, and what the tool found.
pub(super) fn digest_of(question: &GrantQuestion, assessment: &Assessment) -> Digest {
    let found = assessment.precondition.as_ref().map(ToString::to_string).unwrap_or_default();
    question.arguments.then(&Digest::hash(found))
}

/// Finds what became of a question that an earlier stretch of the run left open.
pub(super) async fn earlier_answer(
    run: &RunState,
    call: &LiveCall,
    request: &ApprovalRequest,
) -> Result<Option<EarlierAnswer>, Halt> {
    let Some(open) = run.replay.as_ref().and_then(|replay| replay.open_request(&request.id)) else {
        return Ok(None);
    };
    if let Some(given) = unused_answer(run, request).await? {
        run.mark_used(&given);
        if Some(given.digest) == request.digest {
            return Ok(Some(EarlierAnswer::Given(given)));
        }
        let name = &request.name;
        run.notice(
            &call.info,
            format!(
                "the answer of {} about `{name}` is void: the call is no longer the one that was asked about",
                given.by
            ),
        );
        return Ok(None);
    }
    let is_same = open.digest.is_some() && open.digest == request.digest;
    Ok(open
        .expires
        .filter(|expires| is_same && *expires <= run.shared.clock.now())
        .map(EarlierAnswer::Expired))
}

/// Returns the newest answer to a question, unless it was used before.
async fn unused_answer(run: &RunState, request: &ApprovalRequest) -> Result<Option<GivenAnswer>, Halt> {
    let answers = run.shared.store.answers(run.id).await.map_err(|error| Halt::Record(error.to_string()))?;
    Ok(answers.into_iter().rev().find(|given| given.question == request.id && !run.was_used(given)))
}

/// Asks the approver of the run, and takes an answer from elsewhere if that comes first.
pub(super) struct AnsweredAnywhere<'a> {
    run: &'a RunState,
    approver: &'a dyn Approver,
    /// Who answered in another process.
    elsewhere: OnceLock<String>,
}

impl<'a> AnsweredAnywhere<'a> {
    pub(super) fn new(run: &'a RunState, approver: &'a dyn Approver) -> Self {
        Self { run, approver, elsewhere: OnceLock::new() }
    }

    /// Returns who gave the answer.
    pub(super) fn answered_by(&self) -> AnsweredBy {
        match self.elsewhere.get() {
            Some(who) => AnsweredBy::other_process(who),
            None => AnsweredBy::approver(self.approver.via()),
        }
    }

    /// Waits for an answer to exactly this request.
    async fn answer_elsewhere(&self, request: &ApprovalRequest) -> Answer {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // A store that cannot be read now may be later; the approver is asked in any case.
            let Ok(Some(given)) = unused_answer(self.run, request).await else { continue };
            self.run.mark_used(&given);
            if Some(given.digest) == request.digest {
                let _ = self.elsewhere.set(given.by);
                return given.answer;
            }
        }
    }
}

impl Approver for AnsweredAnywhere<'_> {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        if self.run.options.reason.is_some() || !self.run.shared.store.is_recording() {
            return self.approver.decide(request);
        }
        async move {
            tokio::select! {
                biased;
                answer = self.approver.decide(request) => answer,
                answer = self.answer_elsewhere(request) => Ok(answer),
            }
        }
        .boxed()
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        self.approver.extend(request)
    }
}

/// Returns why a question about a call cannot be left open; `None` if it can.
///
/// The run is entered again once there is an answer, and with it the code of every tool around the call.
pub(super) fn obstacle_to_parking(run: &RunState, call: &LiveCall, is_inside: bool) -> Option<String> {
    if run.options.reason.is_some() {
        return Some("it is asked outside of a run".to_owned());
    }
    if !run.shared.store.is_recording() {
        return Some("this run is not recorded".to_owned());
    }
    if run.options.agent_state.is_some() {
        return Some("a turn of a conversation cannot be continued later".to_owned());
    }
    let around = tool_around(call, is_inside)?;
    Some(format!("it is made by `{around}`, which must not be begun twice"))
}

/// Finds a tool around the call that must not be begun twice.
fn tool_around(call: &LiveCall, is_inside: bool) -> Option<&Name> {
    let mut around = if is_inside { Some(call) } else { call.parent.as_deref() };
    while let Some(call) = around {
        let target = call.target.as_ref().filter(|target| !matches!(target.kind, TargetKind::Agent));
        if target.is_some_and(|target| !target.definition.effect.may_repeat()) {
            return Some(&call.name);
        }
        around = call.parent.as_deref();
    }
    None
}
