//! One broker for all approvals of a runtime: grants, open requests, and the way to the approver.
//!
//! A request blocks only its own branch. A new grant also releases the open requests that it covers.
//! Whatever goes wrong on the way to an answer is a denial.
//!
//! This module does not decide whether a call must ask (see [`crate::gate`]).

use std::sync::Arc;

use futures::future::Future;
use futures::{FutureExt, pin_mut};
use llm_do_core::{Answer, ApprovalRequest, Approver, Digest, Grant, GrantSubject, RunId, Scope, Subject};

use crate::sync::{Mutex, oneshot};

/// Grants and open requests.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    state: Mutex<BrokerState>,
}

#[derive(Debug, Default)]
struct BrokerState {
    grants: Vec<GivenGrant>,
    open: Vec<OpenQuestion>,
    /// Grants that were taken back: reading an old record does not bring them to life again.
    revoked: Vec<Grant>,
    /// How many questions were opened.
    opened: u64,
    /// How many grants were given: a number means one of them for ever.
    given: u64,
}

/// A grant, and where it holds.
#[derive(Debug)]
struct GivenGrant {
    id: GrantId,
    grant: Grant,
    /// The run in which it was given, whose record has it.
    run: RunId,
    /// Whether it comes from the record of its run, and holds for no other one.
    is_restored: bool,
}

/// The handle of a grant, for listing and revoking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrantId(pub u64);

/// What is asked, as far as grants are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantQuestion {
    pub(crate) run: RunId,
    pub(crate) subject: GrantSubject,
    pub(crate) arguments: Digest,
    pub(crate) touches: Vec<Subject>,
    /// Whether a grant may answer it. Protected calls ask each time.
    pub(crate) grantable: bool,
}

#[derive(Debug)]
struct OpenQuestion {
    id: u64,
    question: GrantQuestion,
    request: Arc<ApprovalRequest>,
    release: oneshot::Sender<Scope>,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BrokerReply {
    /// By a grant, given earlier or while it waited.
    Granted(Scope),
    /// By the approver. A session answer has already become a grant.
    Answered(Answer, Option<Grant>),
    /// Not at all: the words say why, and mean no.
    Failed(String),
    /// The run was stopped while it waited.
    Stopped,
}

impl Broker {
    /// Finds a grant that covers the question.
    pub(crate) fn granted(&self, question: &GrantQuestion) -> Option<Scope> {
        self.state.lock().granted(question)
    }

    /// Puts a question to the approver. `stop` ends the waiting with the reply it resolves to.
    pub(crate) async fn ask(
        &self,
        question: GrantQuestion,
        request: Arc<ApprovalRequest>,
        approver: &dyn Approver,
        stop: impl Future<Output = BrokerReply>,
    ) -> BrokerReply {
        let (entry, released) = match self.open(question.clone(), request.clone()) {
            Ok(opened) => opened,
            Err(scope) => return BrokerReply::Granted(scope),
        };
        let answer = decide(approver, &request);
        pin_mut!(answer);
        let reply = tokio::select! {
            biased;
            stopped = stop => stopped,
            scope = released => match answer.as_mut().now_or_never() {
                // A person's answer that came before the grant counts: a denial is final for its call.
                Some(answered) => self.accept(answered, &question, &request),
                None => scope.map_or_else(|_| BrokerReply::Failed(CLOSED.to_owned()), BrokerReply::Granted),
            },
            answered = answer.as_mut() => self.accept(answered, &question, &request),
        };
        drop(entry);
        reply
    }

    /// Lists the grants.
    pub(crate) fn grants(&self) -> Vec<(GrantId, Grant)> {
        self.state.lock().grants.iter().map(|given| (given.id, given.grant.clone())).collect()
    }

    /// Lists the open requests, oldest first.
    pub(crate) fn open_requests(&self) -> Vec<Arc<ApprovalRequest>> {
        self.state.lock().open.iter().map(|open| open.request.clone()).collect()
    }

    /// Takes a grant back; returns it with the run in which it was given, if it was there.
    pub(crate) fn revoke(&self, id: GrantId) -> Option<(RunId, Grant)> {
        let mut state = self.state.lock();
        let index = state.grants.iter().position(|given| given.id == id)?;
        let given = state.grants.remove(index);
        state.revoked.push(given.grant.clone());
        Some((given.run, given.grant))
    }

    /// Adds a grant from the record of a run, for that run alone, unless it was taken back since. Returns whether it holds. Both
    /// under one lock, so that it is not taken back between the look and the addition.
    pub(crate) fn restore(&self, grant: Grant, run: RunId) -> bool {
        let mut state = self.state.lock();
        if state.revoked.contains(&grant) && !state.holds(&grant, run) {
            return false;
        }
        state.add(grant, run, true);
        true
    }

    /// Adds a grant and releases what it covers.
    pub(crate) fn grant(&self, grant: Grant, run: RunId) {
        self.state.lock().add(grant, run, false);
    }

    /// Drops the grants that came from the record of a run, which has ended.
    pub(crate) fn forget_restored(&self, run: RunId) {
        self.state.lock().grants.retain(|given| !(given.is_restored && given.run == run));
    }

    /// Registers a question, unless a grant answers it already. Both under one lock, so that no grant is
    /// missed between the look and the wait.
    fn open(
        &self,
        question: GrantQuestion,
        request: Arc<ApprovalRequest>,
    ) -> Result<(OpenEntry<'_>, oneshot::Receiver<Scope>), Scope> {
        let mut state = self.state.lock();
        if let Some(scope) = state.granted(&question) {
            return Err(scope);
        }
        state.opened += 1;
        let id = state.opened;
        let (release, released) = oneshot::channel();
        state.open.push(OpenQuestion { id, question, request, release });
        Ok((OpenEntry { broker: self, id }, released))
    }

    /// Takes an answer, and makes a grant of one for the session.
    pub(crate) fn accept(
        &self,
        answered: Result<Answer, String>,
        question: &GrantQuestion,
        request: &ApprovalRequest,
    ) -> BrokerReply {
        let answer = match answered {
            Ok(answer) => answer,
            Err(message) => return BrokerReply::Failed(message),
        };
        let Answer::Session(scope) = &answer else { return BrokerReply::Answered(answer, None) };
        if !question.grantable {
            return BrokerReply::Failed(
                "this call asks each time and cannot be granted for the session".to_owned(),
            );
        }
        if *scope != Scope::Exact && !request.scopes.contains(scope) {
            return BrokerReply::Failed(format!("the approver chose a scope that was not offered: {scope}"));
        }
        let arguments = (*scope == Scope::Exact).then_some(question.arguments);
        let grant = Grant { subject: question.subject.clone(), scope: scope.clone(), arguments };
        self.grant(grant.clone(), question.run);
        BrokerReply::Answered(answer, Some(grant))
    }
}

const CLOSED: &str = "the request was dropped before it was answered";

/// Asks the approver; an error or a panic becomes words.
async fn decide(approver: &dyn Approver, request: &ApprovalRequest) -> Result<Answer, String> {
    let asked = std::panic::AssertUnwindSafe(async { approver.decide(request).await });
    match asked.catch_unwind().await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(format!("the approver failed: {error}")),
        Err(_panic) => Err("the approver panicked".to_owned()),
    }
}

impl BrokerState {
    fn granted(&self, question: &GrantQuestion) -> Option<Scope> {
        self.grants.iter().find(|given| given.answers(question)).map(|given| given.grant.scope.clone())
    }

    /// Returns whether a grant holds in a run already.
    fn holds(&self, grant: &Grant, run: RunId) -> bool {
        self.grants.iter().any(|given| given.grant == *grant && given.holds_in(run))
    }

    fn add(&mut self, grant: Grant, run: RunId, is_restored: bool) {
        let is_known = |given: &GivenGrant| given.grant == grant && (is_restored || !given.is_restored);
        if self.grants.iter().any(|given| is_known(given) && given.holds_in(run)) {
            return;
        }
        self.given += 1;
        let given = GivenGrant { id: GrantId(self.given), grant, run, is_restored };
        for open in self.open.extract_if(.., |open| given.answers(&open.question)) {
            // Who no longer waits needs no release.
            let _ = open.release.send(given.grant.scope.clone());
        }
        self.grants.push(given);
    }
}

impl GivenGrant {
    fn holds_in(&self, run: RunId) -> bool {
        !self.is_restored || self.run == run
    }

    fn answers(&self, question: &GrantQuestion) -> bool {
        self.holds_in(question.run) && covers(&self.grant, question)
    }
}

fn covers(grant: &Grant, question: &GrantQuestion) -> bool {
    question.grantable
        && grant.subject == question.subject
        && match grant.arguments {
            Some(digest) => digest == question.arguments,
            None => grant.scope.covers(&question.touches),
        }
}

/// Takes an open request off the list, however its waiting ends.
struct OpenEntry<'a> {
    broker: &'a Broker,
    id: u64,
}

impl Drop for OpenEntry<'_> {
    fn drop(&mut self) {
        self.broker.state.lock().open.retain(|open| open.id != self.id);
    }
}
