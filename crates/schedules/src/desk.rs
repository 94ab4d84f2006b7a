//! The cases put to an approver, the desk on which they wait, and the person who answers them.

use std::fmt;
use std::sync::{Arc, Mutex as Notebook, PoisonError};

use futures::future::BoxFuture;
use llm_do_core::{
    Access, Answer, ApprovalRequest, Approver, ApproverError, Digest, Grant, GrantSubject, Key, Payload,
    RunId, Scope, Subject,
};
use serde_json::json;
use shuttle::sync::Condvar;
use tokio::sync::oneshot;

use crate::broker::{Broker, BrokerReply, GrantQuestion};
use crate::dice::{number, one_in};
use crate::sync::Mutex;

/// The run of all cases.
pub(crate) const RUN: RunId = RunId(uuid::Uuid::nil());

/// One call that must ask.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) id: usize,
    tool: &'static str,
    directory: &'static str,
    file: &'static str,
    arguments: Payload,
    grantable: bool,
}

impl Case {
    /// A case like others or unlike them: few tools and few files, so that grants cover several.
    pub(crate) fn any(id: usize) -> Self {
        let tool = ["read", "write"][number(0..2)];
        let (directory, file) = [("a", "a/1"), ("a", "a/2"), ("b", "b/1")][number(0..3)];
        let arguments = Payload::new(json!({ "path": file }));
        Self { id, tool, directory, file, arguments, grantable: !one_in(6) }
    }

    fn subject(&self) -> GrantSubject {
        GrantSubject {
            agent: "main".into(),
            toolset: None,
            name: self.tool.into(),
            definition: Digest::hash(self.tool),
        }
    }

    pub(crate) fn question(&self) -> GrantQuestion {
        GrantQuestion {
            run: RUN,
            subject: self.subject(),
            arguments: self.arguments.digest(),
            touches: vec![Subject::Path(self.file.to_owned())],
            grantable: self.grantable,
        }
    }

    pub(crate) fn request(&self) -> Arc<ApprovalRequest> {
        Arc::new(ApprovalRequest {
            id: Key::from(self.id.to_string().as_str()),
            path: "main".to_owned(),
            agent: "main".into(),
            name: self.tool.into(),
            own_name: None,
            toolset: None,
            arguments: self.arguments.clone(),
            access: Access::Write,
            description: String::new(),
            reason: String::new(),
            preview: None,
            subjects: vec![Subject::Path(self.file.to_owned())],
            attachments: Vec::new(),
            scopes: if self.grantable { vec![Scope::Tool, self.scope_of_directory()] } else { Vec::new() },
            edit_problem: None,
            digest: None,
            expires: None,
        })
    }

    fn scope_of_directory(&self) -> Scope {
        Scope::Directory(self.directory.to_owned())
    }

    /// Returns whether a grant answers this case, in other words than the broker's.
    pub(crate) fn is_covered_by(&self, grant: &Grant) -> bool {
        let fits = match &grant.scope {
            Scope::Exact => grant.arguments == Some(self.arguments.digest()),
            Scope::Tool => true,
            scope => *scope == self.scope_of_directory(),
        };
        self.grantable && grant.subject.name == self.tool && fits
    }

    /// The grant that an answer gives, if it may give one.
    pub(crate) fn grant_of(&self, answer: &Answer) -> Option<Grant> {
        let Answer::Session(scope) = answer else { return None };
        let offered = [Scope::Exact, Scope::Tool, self.scope_of_directory()].contains(scope);
        let arguments = (*scope == Scope::Exact).then(|| self.arguments.digest());
        (self.grantable && offered).then(|| Grant {
            subject: self.subject(),
            scope: scope.clone(),
            arguments,
        })
    }

    /// Some answer, marked as one to this case where words allow; none stands for an approver that fails.
    fn any_answer(&self) -> Option<Answer> {
        Some(match number(0..10) {
            0 => Answer::Once,
            1 => Answer::Stop,
            2 => Answer::Edit(json!(self.id)),
            3 | 4 => Answer::Deny(self.id.to_string()),
            5 => Answer::Session(Scope::Exact),
            6 => Answer::Session(Scope::Tool),
            7 => Answer::Session(self.scope_of_directory()),
            8 => Answer::Session(Scope::Directory("elsewhere".to_owned())),
            _ => return None,
        })
    }
}

/// One thing that happened in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happened {
    /// An asker is about to ask.
    Started(usize),
    /// The approver saw the request.
    Asked(usize),
    /// The person answered a request that was still waited for.
    Answered(usize, Option<Answer>),
    /// The run of an asker was stopped.
    Stopping(usize),
    /// An asker has its reply.
    Ended(usize, BrokerReply),
    /// A grant is about to be revoked.
    Revoking(Grant),
    /// A grant is revoked.
    Revoked(Grant),
    /// A request was seen in the list of the open ones.
    Listed(usize),
}

/// What happened, in order. Its lock is not shuttle's, so that a note is not a point of scheduling: what is
/// noted next to an act happens together with it.
#[derive(Debug, Default)]
pub(crate) struct History(Notebook<Vec<Happened>>);

impl History {
    pub(crate) fn note(&self, happened: Happened) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(happened);
    }

    pub(crate) fn all(&self) -> Vec<Happened> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.all().iter().try_for_each(|happened| writeln!(f, "{happened:?}"))
    }
}

/// Where requests wait for the person.
pub(crate) struct Desk {
    papers: Mutex<Papers>,
    changed: Condvar,
    history: Arc<History>,
}

#[derive(Default)]
struct Papers {
    waiting: Vec<Paper>,
    askers: usize,
}

struct Paper {
    case: usize,
    answer: oneshot::Sender<Answer>,
}

impl Desk {
    pub(crate) fn new(history: Arc<History>) -> Self {
        Self { papers: Mutex::default(), changed: Condvar::new(), history }
    }

    /// Registers an asker for as long as the guard lives.
    pub(crate) fn expect(self: &Arc<Self>) -> Expected {
        self.papers.lock().askers += 1;
        Expected(self.clone())
    }

    /// Takes one of the papers that wait, or none when nobody will come any more.
    fn next(&self) -> Option<Paper> {
        let mut papers = self.papers.lock();
        while papers.waiting.is_empty() && papers.askers > 0 {
            papers = self.changed.wait(papers).unwrap_or_else(PoisonError::into_inner);
        }
        let count = papers.waiting.len();
        (count > 0).then(|| papers.waiting.swap_remove(number(0..count)))
    }

    /// Answers what lies on the desk until everybody has left.
    ///
    /// What a grant covers by now mostly gets no answer: were it not released, its asker would wait for
    /// ever, which shuttle reports.
    pub(crate) fn answer_all(&self, broker: &Broker, cases: &[Case]) {
        let mut unanswered = Vec::new();
        while let Some(paper) = self.next() {
            let case = &cases[paper.case];
            let covered = broker.grants().iter().any(|(_, grant)| case.is_covered_by(grant));
            if covered && !one_in(4) { unanswered.push(paper) } else { self.answer(case, paper) }
        }
    }

    fn answer(&self, case: &Case, paper: Paper) {
        let answer = case.any_answer();
        let heard = match answer.clone() {
            Some(answer) => paper.answer.send(answer).is_ok(),
            None => !paper.answer.is_closed(),
        };
        if heard {
            self.history.note(Happened::Answered(case.id, answer));
        }
    }
}

impl Approver for Desk {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            let case = id_of(request);
            self.history.note(Happened::Asked(case));
            self.papers.lock().waiting.push(Paper { case, answer: sender });
            self.changed.notify_all();
            answer.await.map_err(|_closed| ApproverError("the paper was thrown away".to_owned()))
        })
    }
}

/// The case that a request is about.
pub(crate) fn id_of(request: &ApprovalRequest) -> usize {
    request.id.to_string().parse().expect("requests are named by the number of their case")
}

/// Somebody who may still put a paper on the desk.
pub(crate) struct Expected(Arc<Desk>);

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.papers.lock().askers -= 1;
        self.0.changed.notify_all();
    }
}
