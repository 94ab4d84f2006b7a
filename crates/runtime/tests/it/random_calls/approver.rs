//! An approver that answers by chance and keeps a log of its own: what it was shown, what it answered.

use futures::future::{BoxFuture, pending};
use llm_do_core::{Answer, ApprovalRequest, Approver, ApproverError, ExtensionRequest, Scope};
use serde_json::{Value, json};

use crate::random_calls::arguments::{Shape, any, valid};
use crate::random_calls::journal::{What, Whose};
use crate::random_calls::plan::{Temper, inner_payload};
use crate::random_calls::tools::PLANNED_PANIC;
use crate::random_calls::world::{RunSeat, give_way};
use llm_do_testing::Chance;

/// The approver of one run.
pub(crate) struct RandomApprover {
    pub(crate) seat: RunSeat,
    pub(crate) temper: Temper,
}

/// What the approver does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Once,
    Grant,
    /// A scope that was not offered.
    Overreach,
    Deny,
    Edit,
    Spoil,
    Stop,
    Fail,
    Panic,
    PanicLater,
    /// Cancels the run and answers all the same.
    CancelAndAllow,
    /// Cancels the run and never answers.
    CancelAndWait,
    /// Never answers.
    Silence,
}

impl RandomApprover {
    fn choose(&self, chance: &mut Chance, asked_before: usize) -> Act {
        let usual = match self.temper {
            Temper::Trusting => Act::Once,
            Temper::Granting => Act::Grant,
            Temper::Editing => Act::Edit,
            Temper::Denying => Act::Deny,
            Temper::Broken => Act::Fail,
            Temper::Mixed => *chance.one_of(&[Act::Once, Act::Grant, Act::Edit, Act::Deny]),
        };
        if chance.percent(55) {
            return usual;
        }
        let has_limit = self.seat.world.plan.approver_limit.is_some();
        let act = chance.weighted(&[
            (20, Act::Once),
            (16, Act::Grant),
            (10, Act::Edit),
            (8, Act::Spoil),
            (8, Act::Deny),
            (3, Act::Overreach),
            (2, Act::Stop),
            (3, Act::Fail),
            (2, Act::Panic),
            (2, Act::PanicLater),
            (1, Act::CancelAndAllow),
            (1, Act::CancelAndWait),
            (4, Act::Silence),
        ]);
        match act {
            Act::Silence if !has_limit => Act::Once,
            Act::Spoil if asked_before > 2 => Act::Deny,
            act => act,
        }
    }

    fn edit(&self, request: &ApprovalRequest, chance: &mut Chance, valid_one: bool) -> Value {
        let plan = &self.seat.world.plan;
        let agent = plan.agent(&request.agent);
        match plan.resolve(agent, &request.name, false) {
            // An inner effect has the name of its place at the end of its key.
            _ if request.id.ends_with("/gate") => inner_payload(chance),
            Some(target) if valid_one => valid(target.shape(), chance),
            Some(target) if chance.percent(50) => any(target.shape(), chance),
            _ => json!([request.name.as_str(), Shape::Any as u8]),
        }
    }

    fn answered(&self, request: &ApprovalRequest, answer: Option<Answer>) {
        let what = What::Answered { id: request.id.clone(), answer };
        self.seat.world.journal.note(Whose::Number(self.seat.number), what);
    }

    fn allow(&self, request: &ApprovalRequest, answer: Answer) -> Result<Answer, ApproverError> {
        self.answered(request, Some(answer.clone()));
        Ok(answer)
    }

    async fn act(
        &self,
        act: Act,
        request: &ApprovalRequest,
        mut chance: Chance,
    ) -> Result<Answer, ApproverError> {
        give_way(chance.weighted(&[(4, 0), (3, 2), (2, 8), (1, 30)])).await;
        let answer = match act {
            Act::Once => Answer::Once,
            Act::Grant => Answer::Session(scope(request, &mut chance)),
            Act::Overreach => Answer::Session(Scope::Directory(String::new())),
            Act::Deny => Answer::Deny(chance.one_of(&["not today", ""]).to_string()),
            Act::Edit => Answer::Edit(self.edit(request, &mut chance, true)),
            Act::Spoil => Answer::Edit(self.edit(request, &mut chance, false)),
            Act::Stop => Answer::Stop,
            Act::Fail => {
                self.answered(request, None);
                return Err(ApproverError("the terminal is gone".to_owned()));
            }
            Act::Panic | Act::PanicLater => {
                self.answered(request, None);
                panic!("{PLANNED_PANIC}")
            }
            Act::CancelAndAllow => {
                self.seat.cancel();
                Answer::Once
            }
            Act::CancelAndWait => {
                self.seat.cancel();
                pending().await
            }
            Act::Silence => pending().await,
        };
        self.allow(request, answer)
    }
}

fn scope(request: &ApprovalRequest, chance: &mut Chance) -> Scope {
    let narrower = request.scopes.iter().find(|scope| **scope != Scope::Tool);
    match (chance.below(5), narrower) {
        (0, _) => Scope::Exact,
        (1 | 2, _) | (_, None) => Scope::Tool,
        (_, Some(scope)) => scope.clone(),
    }
}

impl Approver for RandomApprover {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let asked_before = self.seat.world.journal.shown(self.seat.number, request);
        let mut chance = self.seat.chance("approver", &format!("{} {asked_before}", request.id));
        let act = self.choose(&mut chance, asked_before);
        if act == Act::Panic {
            self.answered(request, None);
            panic!("{PLANNED_PANIC}");
        }
        Box::pin(self.act(act, request, chance))
    }

    fn extend<'a>(&'a self, request: &'a ExtensionRequest) -> BoxFuture<'a, Option<u64>> {
        let mut chance = self.seat.chance("extend", &request.path);
        let by = chance.percent(10).then(|| chance.between(1, 3) as u64);
        if let Some(by) = by {
            let what = What::Extended { owner: request.exhausted.owner.clone(), by };
            self.seat.world.journal.note(Whose::Number(self.seat.number), what);
        }
        Box::pin(std::future::ready(by))
    }
}
