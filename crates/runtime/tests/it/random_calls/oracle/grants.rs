//! The oracle's own ledger of grants: what people gave, what it covers, when it was taken back.

use llm_do_core::{Answer, Grant, Key, Payload, Scope, canonical_text};

use super::Findings;
use super::expected::{Expected, Granted, Question, expected, expected_inside, scope_covers};
use super::view::{Ask, RunView};
use crate::random_calls::arguments::attached;
use crate::random_calls::case::Evidence;
use crate::random_calls::journal::What;

/// All grants of a case.
pub(crate) struct Ledger(Vec<Given>);

/// A grant that a person gave.
struct Given {
    subject: Granted,
    scope: Scope,
    /// The canonical text of the arguments, where exactly one call is covered.
    arguments: Option<String>,
    /// When the person answered.
    answered: usize,
    /// When the decision stood in the record.
    decided: Option<usize>,
    /// When it was taken back.
    revoked: usize,
}

impl Ledger {
    /// Reads the ledger from the approvers' own logs.
    pub(crate) fn of(evidence: &Evidence, runs: &[RunView<'_>]) -> Self {
        let mut grants = Vec::new();
        for run in runs {
            for call in &run.calls {
                let decided = call.decided.first().map(|decided| decided.place);
                if let (Some(asks), Expected::Asks(question)) =
                    (run.asks.get(call.key()), expected(run, call))
                {
                    grants.extend(asks.iter().filter_map(|ask| given(ask, &question, decided)));
                }
            }
            for inner in &run.inner {
                let decided = Some(inner.decided.place);
                let question = expected_inside(run, inner);
                if let (Some(asks), Some(Expected::Asks(question))) = (run.asks.get(&inner.key), question) {
                    grants.extend(asks.iter().filter_map(|ask| given(ask, &question, decided)));
                }
            }
        }
        let mut ledger = Self(grants);
        for (place, entry) in evidence.entries.iter().enumerate() {
            if let What::Revoked(grant) = &entry.what {
                ledger.revoke(place, grant);
            }
        }
        ledger
    }

    fn revoke(&mut self, place: usize, grant: &Grant) {
        let held = self.0.iter_mut().filter(|given| given.answered < place && given.looks_like(grant));
        held.for_each(|given| given.revoked = given.revoked.min(place));
    }

    /// Returns whether a grant may have covered a question in this span of time.
    pub(crate) fn may_cover(&self, question: &Question, from: usize, to: usize) -> bool {
        self.0.iter().any(|given| given.answered < to && given.revoked > from && given.covers(question))
    }

    /// Returns whether a grant covers a question that is put at this place, without any doubt.
    pub(crate) fn must_cover(&self, question: &Question, at: usize) -> bool {
        let stands = |given: &Given| given.decided.is_some_and(|place| place < at) && given.revoked > at;
        self.0.iter().any(|given| stands(given) && given.covers(question))
    }

    /// Compares the ledger with what the runtime lists at the end.
    pub(crate) fn check(&self, evidence: &Evidence, findings: &mut Findings) {
        let held = || self.0.iter().filter(|given| given.revoked == usize::MAX);
        for grant in &evidence.grants {
            if !held().any(|given| given.looks_like(grant)) && !was_answered(evidence, grant) {
                findings.0.push(format!("a grant is listed that nobody gave: {grant:?}"));
            }
        }
        for given in held().filter(|given| given.decided.is_some()) {
            if !evidence.grants.iter().any(|grant| given.looks_like(grant)) {
                findings.0.push(format!("a grant is not listed: {:?} {:?}", given.subject, given.scope));
            }
        }
    }
}

/// Returns whether a person gave a grant whose decision a broken record does not hold.
fn was_answered(evidence: &Evidence, grant: &Grant) -> bool {
    let asked = |id: &Key| {
        evidence.entries.iter().any(|entry| match &entry.what {
            What::Shown(request) => {
                request.id == *id
                    && request.agent == grant.subject.agent
                    && request.name == grant.subject.name
            }
            _ => false,
        })
    };
    let is_broken = evidence.plan.store_breaks_at.is_some();
    is_broken
        && evidence.entries.iter().any(|entry| match &entry.what {
            What::Answered { id, answer: Some(Answer::Session(scope)) } => *scope == grant.scope && asked(id),
            _ => false,
        })
}

/// The grant that an answer gives. A protected call cannot be granted, nor a scope that was not offered.
fn given(ask: &Ask<'_>, question: &Question, decided: Option<usize>) -> Option<Given> {
    let (answered, Some(Answer::Session(scope))) = ask.answer? else { return None };
    is_grantable(question, scope).then(|| Given {
        subject: question.subject.clone(),
        scope: scope.clone(),
        arguments: (*scope == Scope::Exact).then(|| question.arguments.clone()),
        answered,
        decided,
        revoked: usize::MAX,
    })
}

/// Returns whether a person may grant this scope for this question.
pub(crate) fn is_grantable(question: &Question, scope: &Scope) -> bool {
    !question.verdict.protected && (*scope == Scope::Exact || question.verdict.scopes.contains(scope))
}

impl Given {
    fn covers(&self, question: &Question) -> bool {
        !question.verdict.protected
            && self.subject == question.subject
            && match &self.arguments {
                Some(arguments) => *arguments == question.arguments,
                None => scope_covers(&self.scope, &question.verdict.subjects),
            }
    }

    fn looks_like(&self, grant: &Grant) -> bool {
        let digest = self.arguments.as_ref().and_then(|text| serde_json::from_str(text).ok());
        let digest = digest.map(|value: serde_json::Value| {
            debug_assert_eq!(Some(canonical_text(&value)), self.arguments);
            let files = attached(&value);
            files.iter().fold(Payload::new(value).digest(), |digest, file| digest.then(file))
        });
        self.subject.agent == *grant.subject.agent
            && self.subject.name == *grant.subject.name
            && self.subject.toolset.as_deref() == grant.subject.toolset.as_deref()
            && self.scope == grant.scope
            && digest == grant.arguments
    }
}
