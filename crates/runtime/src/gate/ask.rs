//! Asks about a call: the question, the approver, and what the answer comes to.
//!
//! Whether a call must ask is decided elsewhere (see [`Case::settle`](super::Case)), and so is who answered before or
//! will answer later (see [`super::elsewhere`]).

use std::pin::pin;
use std::sync::Arc;

use jiff::Timestamp;
use llm_do_core::{
    Answer, AnsweredBy, Approval, ApprovalMode, ApprovalRequest, Approver, Assessment, DecidedBy, EventBody,
    Failure, FailureKind, Grant, Halt, HintAudience, Payload, Permit,
};
use serde_json::Value;

use super::{Case, Checked, because, check_arguments, elsewhere, look, permit, secret_files};
use crate::gate::elsewhere::{AnsweredAnywhere, EarlierAnswer};
use crate::record::store::Durability;
use crate::state::broker::{BrokerReply, GrantQuestion};
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;
use crate::state::step_error::StepError;
use crate::state::stopwatch::Activity;

/// How often one call is asked about: whoever answers may change its arguments and see them again.
const MAX_QUESTIONS: u32 = 100;

impl Case<'_> {
    /// Asks until there is a decision: only edited arguments that do not fit are asked about again.
    pub(super) async fn ask(
        &self,
        run: &Arc<RunState>,
        call: &Arc<LiveCall>,
        checked: &mut Checked,
        assessment: &mut Assessment,
        answered_by: &mut Option<AnsweredBy>,
    ) -> Result<Permit, StepError> {
        let mut edit_problem = None;
        for _ in 0..MAX_QUESTIONS {
            let question = self.question(call, checked, assessment);
            if let Some(scope) = run.shared.broker.granted(&question) {
                return Ok(permit(checked, DecidedBy::Grant(scope), assessment));
            }
            let request = self.request(call, checked, assessment, edit_problem.take());
            let request = Arc::new(self.as_recorded(run, &question, assessment, request));
            let (reply, by) = self.reply(run, call, &question, &request, assessment).await?;
            *answered_by = by;
            let edited = match reply {
                BrokerReply::Granted(scope) => {
                    return Ok(permit(checked, DecidedBy::Grant(scope), assessment));
                }
                BrokerReply::Stopped => return Err(Halt::Interrupted.into()),
                BrokerReply::Answered(Answer::Park, _) => Err(self.park(run, call)?),
                BrokerReply::Failed(_) if run.options.mode == ApprovalMode::Park => {
                    return Err(self.park_or_deny(run, call));
                }
                BrokerReply::Failed(message) => {
                    // Whoever was to answer has not: the run shows that, as it shows that nobody was there.
                    run.mark_unasked();
                    return Err(denied(&message).into());
                }
                BrokerReply::Answered(Answer::Once, _) => {
                    return Ok(permit(checked, DecidedBy::Approver, assessment));
                }
                BrokerReply::Answered(Answer::Session(_), grant) => {
                    return Ok(granting(checked, assessment, grant));
                }
                BrokerReply::Answered(Answer::Deny(message), _) => return Err(denied(&message).into()),
                BrokerReply::Answered(Answer::Stop, _) => return Err(self.stopped(run).into()),
                BrokerReply::Answered(Answer::Edit(value), _) => {
                    match self.check_edit(run, call, value).await {
                        Ok(edited) => return self.accept_edit(run, call, edited).await,
                        Err(problem) => Err(problem),
                    }
                }
                BrokerReply::Answered(Answer::Revise(value), _) => self.check_edit(run, call, value).await,
            };
            match edited {
                Ok(edited) => *checked = edited,
                Err(problem) => edit_problem = Some(problem.message),
            }
            *assessment = self.assess(run, call, checked).await;
            // Time has passed: what is blocked by now is not asked about again.
            self.level(run, call, assessment)?;
        }
        Err(denied("the arguments were changed too often").into())
    }

    /// What a record says beside what is shown: what exactly is asked about, and until when.
    fn as_recorded(
        &self,
        run: &RunState,
        question: &GrantQuestion,
        assessment: &Assessment,
        request: ApprovalRequest,
    ) -> ApprovalRequest {
        let digest = Some(elsewhere::digest_of(question, assessment));
        let asked = run.replay.as_ref().and_then(|replay| replay.open_request(&self.id));
        // A question that is put again has no more time than before.
        let expires = match asked.filter(|asked| asked.digest == digest && asked.expires.is_some()) {
            Some(asked) => asked.expires,
            None => {
                run.options.answer_within.and_then(|limit| run.shared.clock.now().checked_add(limit).ok())
            }
        };
        ApprovalRequest { digest, expires, ..request }
    }

    /// Returns the answer to a question, and who gave it: one that was given while the run was parked, or that of somebody who
    /// is asked.
    async fn reply(
        &self,
        run: &RunState,
        call: &LiveCall,
        question: &GrantQuestion,
        request: &Arc<ApprovalRequest>,
        assessment: &Assessment,
    ) -> Result<(BrokerReply, Option<AnsweredBy>), StepError> {
        match elsewhere::earlier_answer(run, call, request).await? {
            Some(EarlierAnswer::Given(given)) => {
                let by = AnsweredBy::other_process(given.by);
                return Ok((run.shared.broker.accept(Ok(given.answer), question, request), Some(by)));
            }
            Some(EarlierAnswer::Expired(at)) => {
                run.mark_unasked();
                return Err(nobody_answered_by(at).into());
            }
            None => {}
        }
        let approver = run.options.approver.clone();
        if approver.is_none() && run.options.mode != ApprovalMode::Park {
            return Err(self.unasked(run, assessment).into());
        }
        let body = EventBody::ApprovalRequested(request.clone());
        run.log.commit(&call.info, &self.id, body, Durability::Process).await?;
        match approver {
            Some(approver) => Ok(self.put(run, call, question, request.clone(), &*approver).await),
            None => Err(self.park_or_deny(run, call)),
        }
    }

    /// Leaves the question open, if the run can be entered again up to here; otherwise, says why it cannot.
    fn park(&self, run: &RunState, call: &LiveCall) -> Result<Failure, Halt> {
        let obstacle = elsewhere::obstacle_to_parking(run, call, self.target.is_none())
            .ok_or_else(|| Halt::Parked { id: self.id.clone(), name: self.name.clone() })?;
        Ok(Failure::new(FailureKind::Unasked, format!("the question cannot be left open: {obstacle}")))
    }

    /// Leaves the question open. What cannot wait is denied, as nobody answers it.
    fn park_or_deny(&self, run: &RunState, call: &LiveCall) -> StepError {
        match self.park(run, call) {
            Err(halt) => halt.into(),
            Ok(obstacle) => {
                run.mark_unasked();
                let message = format!("denied: `{}` must ask, and {}", self.name, obstacle.message);
                Failure { message, ..obstacle }.into()
            }
        }
    }

    /// Waits for an answer. The clocks of the call and its callers are stopped meanwhile.
    async fn put(
        &self,
        run: &RunState,
        call: &LiveCall,
        question: &GrantQuestion,
        request: Arc<ApprovalRequest>,
        approver: &dyn Approver,
    ) -> (BrokerReply, Option<AnsweredBy>) {
        let _waiting = Activity::waiting(call.watch.as_ref());
        let limit = run.shared.approver_limit;
        let stop = pin!(async {
            tokio::select! {
                () = self.cancel.cancelled() => BrokerReply::Stopped,
                () = crate::timing::after(limit) => BrokerReply::Failed("nobody answered in time".to_owned()),
            }
        });
        let approver = AnsweredAnywhere::new(run, approver);
        let reply = run.shared.broker.ask(question.clone(), request, &approver, stop).await;
        let by = matches!(reply, BrokerReply::Answered(..)).then(|| approver.answered_by());
        (reply, by)
    }

    async fn check_edit(&self, run: &RunState, call: &LiveCall, value: Value) -> Result<Checked, Failure> {
        let payload = Payload::new(value);
        let checked = match self.target {
            Some(target) => look(run, call, target, check_arguments(call, target, &payload)?).await?,
            None => Checked::plain(payload),
        };
        Ok(Checked { edited: true, ..checked })
    }

    /// Edited arguments are assessed again: a block refuses them, otherwise the person has answered already.
    async fn accept_edit(
        &self,
        run: &Arc<RunState>,
        call: &Arc<LiveCall>,
        edited: Checked,
    ) -> Result<Permit, StepError> {
        let assessment = self.assess(run, call, &edited).await;
        if assessment.approval == Approval::Blocked {
            return Err(self.blocked(&assessment, None).into());
        }
        Ok(permit(&edited, DecidedBy::Approver, &assessment))
    }

    fn unasked(&self, run: &RunState, assessment: &Assessment) -> Failure {
        run.mark_unasked();
        let why = because(assessment);
        let message = format!("denied: `{}` must ask, and there is nobody to ask{why}", self.name);
        let failure = Failure::new(FailureKind::Unasked, message);
        match secret_files::are_read(assessment) {
            true => secret_files::with_way_out(failure, run, assessment),
            false => failure.with_hint_for(
                HintAudience::Embedder,
                "give the run or the runtime an approver, or a rule or mode that allows it",
            ),
        }
    }

    fn stopped(&self, run: &RunState) -> Halt {
        let halt = Halt::Stopped { name: self.name.clone() };
        run.halt(halt.clone());
        halt
    }
}

fn denied(text: &str) -> Failure {
    let message = if text.trim().is_empty() { "denied".to_owned() } else { format!("denied: {text}") };
    Failure::new(FailureKind::Denied, message)
}

fn nobody_answered_by(time: Timestamp) -> Failure {
    let time = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    Failure::new(FailureKind::Unasked, format!("denied: nobody answered by {time}"))
}

fn granting(checked: &Checked, assessment: &Assessment, grant: Option<Grant>) -> Permit {
    Permit { grant: grant.map(Box::new), ..permit(checked, DecidedBy::Approver, assessment) }
}
