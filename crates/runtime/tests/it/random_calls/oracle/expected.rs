//! What the gate must decide about a call, worked out from the plan alone.
//!
//! This is the order of decision of the engine's design, written down a second time: resolve, depth,
//! access, arguments, needs; then (1) any block blocks, (2) the strictest rule replaces the judgment,
//! (3) `reject_all` ignores loosening and denies what must ask, (4) otherwise what is pre-approved runs and
//! the rest is up to the mode, a grant or the approver. Counted limits depend on what else happens and are
//! checked by [`super::gate`].

use llm_do_core::{
    Approval, ApprovalMode, CallOrigin, FailureKind, Payload, Scope, Subject, ToolCall, canonical_text,
    input_attachments,
};
use serde_json::Value;

use super::view::{CallView, CancelState, InnerView, RunView};
use crate::random_calls::arguments::{Shape, complete};
use crate::random_calls::plan::{Target, Verdict};

/// What must become of a call.
pub(crate) enum Expected {
    /// Its name means nothing to its caller.
    Unknown,
    Refused(FailureKind),
    /// It runs without a question.
    Free {
        arguments: String,
    },
    /// The mode of the run allows it.
    ByMode {
        arguments: String,
    },
    /// A grant or a person decides.
    Asks(Question),
}

/// What a person must be asked.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) subject: Granted,
    pub(crate) path: String,
    /// The canonical text of the arguments.
    pub(crate) arguments: String,
    pub(crate) verdict: Verdict,
}

/// What a grant is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) agent: String,
    pub(crate) toolset: Option<String>,
    pub(crate) name: String,
    /// The tool inside which it happens, for an inner effect.
    pub(crate) inside: Option<String>,
}

/// Works out what must become of a call.
pub(crate) fn expected(run: &RunView<'_>, call: &CallView) -> Expected {
    let caller = run.standing(&call.parent);
    let Some(target) = run.target(call) else { return Expected::Unknown };
    if let Target::Agent(_) = target
        && caller.depth + 1 > max_depth(run)
    {
        return Expected::Refused(FailureKind::Depth);
    }
    if let Target::Tool(tool) = target
        && tool.access > caller.access
    {
        return Expected::Refused(FailureKind::Access);
    }
    let Some(arguments) = given(run, call).and_then(|value| completed(&target, call, &value)) else {
        return Expected::Refused(FailureKind::Arguments);
    };
    if let Target::Tool(tool) = target
        && tool.needs_token
        && !run.plan.has_token
    {
        return Expected::Refused(FailureKind::Context);
    }
    let Some(verdict) = verdict(run, call, &target, &arguments, 0) else {
        return Expected::Refused(FailureKind::Blocked);
    };
    let (defined, toolset) = match target {
        Target::Tool(tool) => (tool.approval, tool.toolset.clone()),
        Target::Agent(_) | Target::Entry => (Approval::PreApproved, None),
    };
    let rule = caller.agent.and_then(|agent| agent.rule(&call.name, toolset.as_deref()));
    let subject =
        Granted { agent: caller.agent_name().to_owned(), toolset, name: call.name.clone(), inside: None };
    let path = run.standing(call.key()).path;
    level(run, defined, rule, Question { subject, path, arguments: canonical_text(&arguments), verdict })
}

/// Works out what must become of an inner effect: it asks, unless a rule says otherwise.
pub(crate) fn expected_inside(run: &RunView<'_>, inner: &InnerView) -> Option<Expected> {
    let standing = run.standing(&inner.outer);
    let asked = inner.asked.as_ref()?;
    let rule = standing.agent.and_then(|agent| agent.rule(&inner.name, None));
    let question = Question {
        subject: granted_inside(&standing, &inner.name),
        path: format!("{} > {}", standing.path, inner.name),
        arguments: canonical_text(asked.value()),
        verdict: plain(Approval::Ask),
    };
    Some(level(run, Approval::Ask, rule, question))
}

fn granted_inside(standing: &CancelState<'_>, name: &str) -> Granted {
    let inside = match standing.tool {
        Some(Target::Tool(tool)) => format!("{:?} {}", tool.toolset, tool.name),
        _ => String::new(),
    };
    let agent = standing.agent_name().to_owned();
    Granted { agent, toolset: None, name: name.to_owned(), inside: Some(inside) }
}

fn level(run: &RunView<'_>, defined: Approval, rule: Option<Approval>, question: Question) -> Expected {
    let judged = question.verdict.approval;
    if defined == Approval::Blocked || judged == Approval::Blocked || rule == Some(Approval::Blocked) {
        return Expected::Refused(FailureKind::Blocked);
    }
    let level = match rule {
        _ if question.verdict.protected => Approval::Ask,
        Some(rule) if run.plan.mode == ApprovalMode::RejectAll => rule.max(judged),
        Some(rule) => rule,
        None => judged,
    };
    let arguments = question.arguments.clone();
    match (level, run.plan.mode) {
        (Approval::PreApproved, _) => Expected::Free { arguments },
        (_, ApprovalMode::ApproveAll) => Expected::ByMode { arguments },
        (_, ApprovalMode::RejectAll) => Expected::Refused(FailureKind::Denied),
        (_, ApprovalMode::Prompt | ApprovalMode::Park) => Expected::Asks(question),
    }
}

/// What a call is judged to do, after it was judged so often before; nothing where it cannot be judged.
pub(crate) fn verdict(
    run: &RunView<'_>,
    call: &CallView,
    target: &Target<'_>,
    arguments: &Value,
    earlier: usize,
) -> Option<Verdict> {
    match target {
        Target::Tool(tool) => {
            let inside = run.standing(&call.parent).agent.is_some();
            let opens = inside || run.case.opens_outside(tool, run.plan.number);
            opens.then(|| tool.judge(arguments, earlier)).flatten()
        }
        Target::Entry => Some(plain(Approval::PreApproved)),
        Target::Agent(agent) => {
            let policy = &run.case.policy;
            let special = policy.overrides.iter().find(|special| special.agent == *agent.name);
            let calls = special.and_then(|special| special.calls).unwrap_or(policy.calls);
            let files = special.and_then(|special| special.attachments).unwrap_or(policy.attachments);
            let attached = !input_attachments(&Payload::new(arguments.clone())).is_empty();
            let asks = call.origin != CallOrigin::Embedder && (calls || (files && attached));
            Some(plain(if asks { Approval::Ask } else { Approval::PreApproved }))
        }
    }
}

fn plain(approval: Approval) -> Verdict {
    Verdict { approval, protected: false, subjects: Vec::new(), scopes: vec![Scope::Tool] }
}

fn max_depth(run: &RunView<'_>) -> u32 {
    run.plan.limits.depth.or(run.case.limits.depth).unwrap_or(5)
}

/// What the call was given, by whoever asked for it; nothing where it cannot be read.
pub(crate) fn given(run: &RunView<'_>, call: &CallView) -> Option<Value> {
    match call.origin {
        CallOrigin::Embedder => Some(run.plan.input.clone()),
        // The key of a call by code holds the digest of its input, which `requests` compares.
        CallOrigin::Code => Some(call.input.value().clone()),
        CallOrigin::Model => {
            let asked = asked_by_model(run, call)?;
            run.evidence.readings.get(&*asked.arguments).cloned().flatten()
        }
    }
}

/// The request of a model to which a call belongs: its key names the turn and the place.
pub(crate) fn asked_by_model(run: &RunView<'_>, call: &CallView) -> Option<ToolCall> {
    let (turn, place) = call.key().rsplit_once("/tool/")?;
    let response = run.responses.get(format!("{turn}/model").as_str())?;
    response.message.tool_calls().nth(place.parse().ok()?).cloned()
}

/// Arguments as the schema completes them.
pub(crate) fn completed(target: &Target<'_>, call: &CallView, value: &Value) -> Option<Value> {
    let free = target.shape() == Shape::Prompt && call.origin != CallOrigin::Model;
    complete(target.shape(), value, free)
}

/// Returns whether a scope covers what a call touches, component by component and word by word.
pub(crate) fn scope_covers(scope: &Scope, subjects: &[Subject]) -> bool {
    let whole = |covers: &dyn Fn(&Subject) -> bool| !subjects.is_empty() && subjects.iter().all(covers);
    match scope {
        Scope::Exact => false,
        Scope::Tool => true,
        Scope::Directory(directory) => whole(&|subject| match subject {
            Subject::Path(path) => {
                let parts: Vec<&str> = path.split('/').collect();
                let above: Vec<&str> = directory.split('/').collect();
                !parts.contains(&"..") && parts.starts_with(&above)
            }
            Subject::Command(_) | Subject::SecretFile(_) => false,
        }),
        Scope::CommandPrefix(prefix) => whole(&|subject| match subject {
            Subject::Command(words) => {
                words.len() >= prefix.len() && words.iter().zip(prefix).all(|(a, b)| a == b)
            }
            Subject::Path(_) | Subject::SecretFile(_) => false,
        }),
        Scope::SecretFiles(_) => false,
    }
}
