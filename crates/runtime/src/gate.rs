//! The gate: may this call run, and with which arguments?
//!
//! Limits, access, arguments, needs and approval are one decision, recorded for every call and read back
//! on a resume. Whatever fails on the way to an answer is a refusal.
//!
//! This module runs nothing (see [`crate::call::effect`]) and draws no prompts: it asks through the broker.

mod ask;
pub(crate) mod assess;
mod elsewhere;
pub(crate) mod secret_files;
pub(crate) mod verdict;

use std::sync::Arc;

use llm_do_core::{
    Access, AnsweredBy, Approval, ApprovalMode, ApprovalRequest, Assessment, CallOrigin, DecidedBy, Decision,
    Digest, EventBody, Failure, FailureKind, GrantSubject, Halt, HintAudience, Key, Name, Outcome, Payload,
    Permit, Schema, Scope, Step, StepResult, describe_call, join_problems, parse_arguments,
};
use tokio_util::sync::CancellationToken;

use crate::extension;
use crate::gate::assess::{AskTool, assess};
use crate::gate::verdict::Verdict;
use crate::input::attachments::{self, Seen};
use crate::project::plan::{CallTarget, TargetKind};
use crate::record::store::Durability;
use crate::state::broker::GrantQuestion;
use crate::state::live::LiveCall;
use crate::state::run_state::RunState;
use crate::state::step_error::StepError;

/// Calls inside one another, tools included: a tool that calls itself comes to an end.
const MAX_LEVELS: u32 = 256;

/// Decides about a call, or about an inner effect that a tool puts to the gate.
pub(crate) async fn decide(
    run: &Arc<RunState>,
    call: &Arc<LiveCall>,
    step: &Step,
    reason: Option<&str>,
) -> StepResult {
    let mut answered_by = None;
    let considered = match (reason, &call.target) {
        (Some(reason), _) => consider_inner(run, call, step, reason, &mut answered_by).await,
        (None, Some(target)) => consider_call(run, call, target, &mut answered_by).await,
        (None, None) => {
            Err(StepError::Refused(Failure::new(FailureKind::Unknown, "nothing to decide about")))
        }
    };
    let decision = Arc::new(match considered {
        Ok(permit) => Decision::Allow(Arc::new(permit)),
        Err(StepError::Refused(failure)) => Decision::Refuse(failure),
        Err(StepError::Halted(halt)) => return Err(halt),
    });
    let id = if reason.is_some() { step.key.clone() } else { call.info.id.clone() };
    let body = EventBody::ApprovalDecided { id, decision: decision.clone(), answered_by };
    match (reason, &*decision) {
        // No `call_executing` comes between this decision and an inner effect, so it is itself the barrier.
        (Some(_), Decision::Allow(_)) => {
            run.log.commit(&call.info, &step.key, body, Durability::Power).await?;
        }
        _ => run.note(call, &step.key, body),
    }
    end_at_denial(run, &decision)?;
    Ok(Outcome::Decision(decision))
}

/// Ends the run at a denial, where the project says so; otherwise the caller reads it as a result.
pub(crate) fn end_at_denial(run: &RunState, decision: &Decision) -> Result<(), Halt> {
    match decision {
        Decision::Refuse(failure) if run.shared.denials_end_runs && failure.is_denial() => {
            let halt = Halt::Denied(failure.clone());
            run.halt(halt.clone());
            Err(halt)
        }
        _ => Ok(()),
    }
}

/// Steps 2 to 6 of a call.
async fn consider_call(
    run: &Arc<RunState>,
    call: &Arc<LiveCall>,
    target: &CallTarget,
    answered_by: &mut Option<AnsweredBy>,
) -> Result<Permit, StepError> {
    let checked = check(run, call, target).await?;
    Case::new(call, target).approve(run, call, checked, answered_by).await
}

/// What the gate would say to a call. Nobody is asked and nothing runs.
pub(crate) async fn judge(run: &Arc<RunState>, call: &Arc<LiveCall>, target: &CallTarget) -> Verdict {
    let considered = async {
        let checked = check(run, call, target).await?;
        Case::new(call, target).verdict(run, call, checked).await
    };
    match considered.await {
        Ok(verdict) => verdict,
        Err(StepError::Refused(failure)) => Verdict::refused(&failure, call),
        Err(StepError::Halted(Halt::Limit(failure) | Halt::Denied(failure))) => {
            Verdict::refused(&failure, call)
        }
        Err(StepError::Halted(halt)) => {
            Verdict::refused(&Failure::new(FailureKind::Cancelled, halt.to_string()), call)
        }
    }
}

/// Steps 2 to 5: limits, access, arguments, needs.
async fn check(run: &Arc<RunState>, call: &Arc<LiveCall>, target: &CallTarget) -> Result<Checked, StepError> {
    check_limits(run, call, target).await?;
    check_asker(call, target)?;
    check_access(call, target)?;
    let checked = check_arguments(call, target, &call.input)?;
    check_needs(call, target)?;
    Ok(look(run, call, target, checked).await?)
}

/// Looks at what is attached, before anybody is asked about it.
async fn look(
    run: &RunState,
    call: &LiveCall,
    target: &CallTarget,
    checked: Checked,
) -> Result<Checked, Failure> {
    let attached = attachments::look(run, call, target, &checked.arguments).await?;
    Ok(Checked { attached, ..checked })
}

/// An inner effect has no schema and no definition: it asks, unless a rule of the agent says otherwise.
async fn consider_inner(
    run: &Arc<RunState>,
    call: &Arc<LiveCall>,
    step: &Step,
    reason: &str,
    answered_by: &mut Option<AnsweredBy>,
) -> Result<Permit, StepError> {
    let target = call.target.as_ref();
    let case = Case {
        id: step.key.clone(),
        path: path_below(&call.info.path, &step.name),
        name: &step.name,
        target: None,
        access: target.map_or(Access::Write, |target| target.definition.access),
        // An effect inside a tool is not a call of that tool, even where it has the same name.
        definition: target
            .map_or_else(|| Digest::hash(b""), |target| target.digest)
            .then(&Digest::hash(b"inside")),
        reason: Some(reason),
        cancel: call.token_for(&step.key),
    };
    case.approve(run, call, Checked::plain(step.payload.clone()), answered_by).await
}

/// The chain of callers with one more name. The root of a run has no name.
fn path_below(path: &str, name: &Name) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path} > {name}") }
}

async fn check_limits(run: &Arc<RunState>, call: &LiveCall, target: &CallTarget) -> Result<(), StepError> {
    if call.cancel.is_cancelled() {
        return Err(Halt::Interrupted.into());
    }
    let max_depth = run.options.limits.depth.unwrap_or(run.shared.max_depth);
    if matches!(target.kind, TargetKind::Agent) && call.info.depth > max_depth {
        let message = format!(
            "`{}` would be agent {} on the path `{}`, and {max_depth} are permitted",
            call.name, call.info.depth, call.info.path
        );
        let failure = Failure::new(FailureKind::Depth, message);
        return Err(failure
            .with_hint_for(HintAudience::Caller, "do the work here, or answer with what there is")
            .into());
    }
    if call.level > MAX_LEVELS {
        let message = format!(
            "`{}` would be call {} inside another, and {MAX_LEVELS} are permitted",
            call.name, call.level
        );
        return Err(Failure::new(FailureKind::Depth, message).into());
    }
    if call.origin != CallOrigin::Embedder {
        extension::count_tool_call(run, call).await?;
    }
    Ok(())
}

/// No model calls what is for people and code, whether it was offered or not.
fn check_asker(call: &LiveCall, target: &CallTarget) -> Result<(), Failure> {
    if call.origin != CallOrigin::Model || !target.definition.manual_only {
        return Ok(());
    }
    let message = format!("blocked: `{}` is manual-only: only a person or code may call it", call.name);
    Err(Failure::new(FailureKind::Blocked, message).with_hint_for(
        HintAudience::Caller,
        "go on without it, and say in your answer that a person should call it",
    ))
}

fn check_access(call: &LiveCall, target: &CallTarget) -> Result<(), Failure> {
    let callers = call.parent.as_ref().map_or(Access::Admin, |parent| parent.access);
    let (needed, ceiling) = (target.definition.access, callers);
    if matches!(target.kind, TargetKind::Tool(_)) && needed > ceiling {
        let (needed, ceiling) = (needed.as_str(), ceiling.as_str());
        let message = format!("`{}` needs {needed} access, and this call has {ceiling} access", call.name);
        return Err(Failure::new(FailureKind::Access, message));
    }
    Ok(())
}

/// Arguments that fit, and what was repaired on the way.
struct Checked {
    arguments: Payload,
    repairs: Vec<String>,
    /// The files that an agent is given.
    attached: Vec<Seen>,
    /// Whether a person changed the arguments.
    edited: bool,
}

impl Checked {
    fn plain(arguments: Payload) -> Self {
        Self { arguments, repairs: Vec::new(), attached: Vec::new(), edited: false }
    }

    /// What is approved for exactly this call: its arguments, and the content of its files.
    fn digest(&self) -> Digest {
        self.attached.iter().fold(self.arguments.digest(), |digest, seen| digest.then(&seen.digest))
    }
}

fn check_arguments(call: &LiveCall, target: &CallTarget, input: &Payload) -> Result<Checked, Failure> {
    if input.is_unparsed() {
        return Err(unreadable(&call.name, input));
    }
    // Code may give an agent without a schema any object; its JSON becomes the prompt.
    let free = !target.has_own_input && call.origin != CallOrigin::Model;
    let mut checked =
        if free { check_free(input)? } else { check_schema(call, &target.definition.input, input)? };
    checked.repairs.extend(input.repair().map(str::to_owned));
    Ok(checked)
}

fn check_free(input: &Payload) -> Result<Checked, Failure> {
    if input.object().is_none() {
        return Err(Failure::new(FailureKind::Arguments, "the input must be a text or an object"));
    }
    Ok(Checked::plain(input.clone()))
}

fn check_schema(call: &LiveCall, schema: &Schema, input: &Payload) -> Result<Checked, Failure> {
    match schema.accept(input.value().clone()) {
        Ok(accepted) => {
            let unchanged = accepted.value == *input.value();
            let arguments = if unchanged { input.clone() } else { Payload::new(accepted.value) };
            Ok(Checked { repairs: accepted.repairs, ..Checked::plain(arguments) })
        }
        Err(problems) => {
            let message = format!("invalid arguments for `{}`: {}", call.name, join_problems(&problems));
            let failure = Failure::new(FailureKind::Arguments, message);
            // A person or a program knows what to do, and cannot "call it again" in a conversation.
            Err(match call.origin {
                CallOrigin::Model => {
                    failure.with_hint_for(HintAudience::Caller, "fix the named fields and call it again")
                }
                CallOrigin::Code | CallOrigin::Embedder => failure,
            })
        }
    }
}

fn unreadable(name: &str, input: &Payload) -> Failure {
    match parse_arguments(input.text()) {
        Err(error) => {
            let message = format!("invalid arguments for `{name}`: {error}");
            Failure::new(FailureKind::Arguments, message).with_hint(error.hint())
        }
        Ok(_) => {
            Failure::new(FailureKind::Arguments, format!("the arguments for `{name}` could not be read"))
        }
    }
}

fn check_needs(call: &LiveCall, target: &CallTarget) -> Result<(), Failure> {
    let context = &call.callers_frame().context;
    match target.definition.needs.iter().find(|need| !context.meets(need)) {
        Some(need) if need.is_of_conversation() => {
            let name = &target.definition.name;
            let message = format!(
                "`{name}` is about the {} of an agent's conversation, and this call belongs to none",
                need.label()
            );
            Err(Failure::new(FailureKind::Context, message))
        }
        Some(need) => {
            let message = format!(
                "`{}` needs the context value `{}`, which this run does not provide",
                target.definition.name,
                need.label()
            );
            Err(Failure::new(FailureKind::Context, message)
                .with_hint_for(HintAudience::Embedder, need.how_to_provide()))
        }
        None => Ok(()),
    }
}

/// What is to be approved.
struct Case<'a> {
    id: Key,
    path: String,
    name: &'a Name,
    /// The target of a call; none for an inner effect.
    target: Option<&'a CallTarget>,
    access: Access,
    definition: Digest,
    reason: Option<&'a str>,
    /// Ends the waiting for an answer.
    cancel: CancellationToken,
}

/// What rules, assessment and definition come to.
struct Level {
    approval: Approval,
    by: DecidedBy,
}

impl<'a> Case<'a> {
    fn new(call: &'a LiveCall, target: &'a CallTarget) -> Self {
        Self {
            id: call.info.id.clone(),
            path: call.info.path.to_string(),
            name: target.ruled_name(&call.name),
            target: Some(target),
            access: target.definition.access,
            definition: target.digest,
            reason: None,
            cancel: call.cancel.clone(),
        }
    }

    /// Step 6: definition, rules, mode, grants, approver.
    async fn approve(
        &self,
        run: &Arc<RunState>,
        call: &Arc<LiveCall>,
        mut checked: Checked,
        answered_by: &mut Option<AnsweredBy>,
    ) -> Result<Permit, StepError> {
        let mut assessment = self.assess(run, call, &checked).await;
        if self.cancel.is_cancelled() {
            return Err(Halt::Interrupted.into());
        }
        match self.settle(run, call, &assessment)? {
            Some(by) => Ok(permit(&checked, by, &assessment)),
            // Boxed: few decisions ask, and none of the others shall take the memory for it.
            None => Box::pin(self.ask(run, call, &mut checked, &mut assessment, answered_by)).await,
        }
    }

    /// What definition, rules and mode come to: who allows the call, or nobody before somebody is asked.
    fn settle(
        &self,
        run: &RunState,
        call: &LiveCall,
        assessment: &Assessment,
    ) -> Result<Option<DecidedBy>, Failure> {
        let level = self.level(run, call, assessment)?;
        match (level.approval, run.options.mode) {
            (Approval::PreApproved, _) => Ok(Some(level.by)),
            // A mode is not a person who has seen which secret would go to the model.
            (_, ApprovalMode::ApproveAll) if secret_files::must_ask(call, assessment) => {
                Err(self.rejected(run, assessment))
            }
            (_, ApprovalMode::ApproveAll) => Ok(Some(DecidedBy::Mode)),
            (_, ApprovalMode::RejectAll) => Err(self.rejected(run, assessment)),
            (_, ApprovalMode::Prompt | ApprovalMode::Park) => Ok(None),
        }
    }

    /// What the gate would say to the call, without asking anybody.
    async fn verdict(
        &self,
        run: &Arc<RunState>,
        call: &Arc<LiveCall>,
        checked: Checked,
    ) -> Result<Verdict, StepError> {
        let assessment = self.assess_asking(run, call, &checked, AskTool::Always).await;
        let settled = match (self.settle(run, call, &assessment), &assessment.failure) {
            (Ok(_), Some(failure)) => return Err(failure.clone().into()),
            // Blocked by nothing but the failure itself.
            (Err(_), Some(failure)) if assessment.approval == Approval::Blocked => {
                return Err(failure.clone().into());
            }
            (settled, _) => settled?,
        };
        let granted = || run.shared.broker.granted(&self.question(call, &checked, &assessment));
        let by = settled.or_else(|| granted().map(DecidedBy::Grant));
        let request = self.request(call, &checked, &assessment, None);
        Ok(match by {
            Some(by) => Verdict::allowed(&by, &request),
            None => Verdict::asks(&request),
        })
    }

    async fn assess(&self, run: &Arc<RunState>, call: &Arc<LiveCall>, checked: &Checked) -> Assessment {
        self.assess_asking(run, call, checked, AskTool::IfItAssesses).await
    }

    async fn assess_asking(
        &self,
        run: &Arc<RunState>,
        call: &Arc<LiveCall>,
        checked: &Checked,
        ask_tool: AskTool,
    ) -> Assessment {
        match self.target {
            Some(target) => assess(run, call, target, &checked.arguments, &checked.attached, ask_tool).await,
            None => Assessment::new(Approval::Ask, describe_call(self.name, &checked.arguments)),
        }
    }

    /// A block wins over everything; else the agent's strictest rule replaces the assessment. `reject_all`
    /// ignores loosening, and what is protected is never loosened.
    fn level(&self, run: &RunState, call: &LiveCall, assessment: &Assessment) -> Result<Level, Failure> {
        let rules = self.rules_of(call);
        let rule = match self.target {
            Some(target) => rules.strictest_for(self.name, target),
            None => rules.strictest(self.name, None),
        };
        let defined = self.target.map_or(Approval::Ask, |target| target.definition.approval);
        if [Some(defined), Some(assessment.approval), rule].contains(&Some(Approval::Blocked)) {
            return Err(self.blocked(assessment, rule));
        }
        let reads_secrets = secret_files::must_ask(call, assessment);
        let never_loosen =
            assessment.protected || reads_secrets || run.options.mode == ApprovalMode::RejectAll;
        Ok(match rule {
            _ if assessment.protected || reads_secrets => {
                Level { approval: Approval::Ask, by: DecidedBy::Definition }
            }
            Some(rule) if !never_loosen || rule >= assessment.approval => {
                Level { approval: rule, by: DecidedBy::Rule }
            }
            _ => Level { approval: assessment.approval, by: DecidedBy::Definition },
        })
    }

    /// A call is judged by the rules of its caller's agent, an inner effect by those of the tool's own.
    fn rules_of<'c>(&self, call: &'c LiveCall) -> &'c crate::project::rules::Rules {
        match self.target {
            Some(_) => &call.callers_frame().plan.rules,
            None => &call.frame().plan.rules,
        }
    }

    fn blocked(&self, assessment: &Assessment, rule: Option<Approval>) -> Failure {
        let why = match (&assessment.reason, rule) {
            (_, Some(Approval::Blocked)) if assessment.approval != Approval::Blocked => {
                ": a rule blocks it".to_owned()
            }
            (Some(reason), _) => format!(": {reason}"),
            (None, _) => String::new(),
        };
        Failure::new(FailureKind::Blocked, format!("blocked: `{}` may not run{why}", self.name))
    }

    fn rejected(&self, run: &RunState, assessment: &Assessment) -> Failure {
        let why = because(assessment);
        let which = match run.options.mode {
            ApprovalMode::ApproveAll => "no mode allows secret files",
            ApprovalMode::RejectAll | ApprovalMode::Prompt | ApprovalMode::Park => {
                "this run rejects everything that must ask"
            }
        };
        let message = format!("denied: `{}` must ask, and {which}{why}", self.name);
        secret_files::with_way_out(Failure::new(FailureKind::Denied, message), run, assessment)
    }

    fn question(&self, call: &LiveCall, checked: &Checked, assessment: &Assessment) -> GrantQuestion {
        let subject = GrantSubject {
            agent: self.agent_of(call),
            toolset: self.target.and_then(|target| target.definition.toolset.clone()),
            name: self.name.clone(),
            definition: self.definition,
        };
        GrantQuestion {
            run: call.info.run,
            subject,
            arguments: secret_files::with_content(checked.digest(), assessment),
            touches: assessment.subjects.clone(),
            grantable: is_grantable(assessment),
        }
    }

    /// The agent in whose name the call is made: the caller's.
    fn agent_of(&self, call: &LiveCall) -> Name {
        match (self.target, &call.parent) {
            (Some(_), Some(parent)) => parent.info.agent.clone(),
            _ => call.info.agent.clone(),
        }
    }

    fn request(
        &self,
        call: &LiveCall,
        checked: &Checked,
        assessment: &Assessment,
        edit_problem: Option<String>,
    ) -> ApprovalRequest {
        let default_reason = || format!("`{}` must ask before it runs", self.shown_name());
        let reason = self
            .reason
            .map(str::to_owned)
            .or_else(|| secret_files::reason(assessment))
            .unwrap_or_else(default_reason);
        let scopes = match is_grantable(assessment) {
            false => Vec::new(),
            true if secret_files::are_read(assessment) => secret_files::scopes(assessment),
            true => assessment.scopes.clone(),
        };
        ApprovalRequest {
            id: self.id.clone(),
            path: self.shown_path(),
            agent: self.agent_of(call),
            name: self.name.clone(),
            own_name: self.own_name().cloned(),
            toolset: self.target.and_then(|target| target.definition.toolset.clone()),
            arguments: checked.arguments.clone(),
            access: self.access,
            description: self.description(&checked.arguments, assessment),
            reason,
            preview: assessment.preview.clone(),
            subjects: assessment.subjects.clone(),
            attachments: checked.attached.iter().map(|seen| seen.shown.clone()).collect(),
            scopes: scopes.into_iter().filter(|scope| *scope != Scope::Exact).collect(),
            edit_problem,
            digest: None,
            expires: None,
        }
    }

    fn own_name(&self) -> Option<&Name> {
        self.target.and_then(|target| target.own_name.as_ref())
    }

    /// An alias says what the project wants a tool to be called, its own name what it does: a person reads both.
    fn shown_name(&self) -> String {
        match self.own_name() {
            Some(own) => format!("{} ({own})", self.name),
            None => self.name.to_string(),
        }
    }

    fn shown_path(&self) -> String {
        match (self.own_name(), self.path.strip_suffix(self.name.as_str())) {
            (Some(_), Some(callers)) => format!("{callers}{}", self.shown_name()),
            // Code has called the tool by its own name.
            _ => self.path.clone(),
        }
    }

    /// What the call would do: in the words of its tool, else its name and arguments.
    fn description(&self, arguments: &Payload, assessment: &Assessment) -> String {
        match self.target {
            Some(target) if assessment.description.is_empty() => target.definition.describe(arguments),
            _ => assessment.description.clone(),
        }
    }
}

/// Why a call must ask, where its tool says so.
fn because(assessment: &Assessment) -> String {
    secret_files::reason(assessment).map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// A grant for a secret file is about reading it: whatever else asks is asked about each time.
fn is_grantable(assessment: &Assessment) -> bool {
    let only_reads = assessment.approval == Approval::PreApproved || !secret_files::are_read(assessment);
    !assessment.protected && only_reads
}

fn permit(checked: &Checked, by: DecidedBy, assessment: &Assessment) -> Permit {
    Permit {
        digest: checked.arguments.digest(),
        arguments: checked.arguments.clone(),
        by,
        edited: checked.edited,
        repairs: checked.repairs.clone(),
        precondition: assessment.precondition.clone(),
        grant: None,
    }
}
