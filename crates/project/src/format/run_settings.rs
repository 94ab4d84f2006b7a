//! What a manifest says about runs.

use std::time::Duration;

use llm_do_core::{Approval, ApprovalMode, CallKind, Limits, Money, Name, nearest};
use llm_do_runtime::{AgentCallOverride, AgentCallPolicy, OutlinedCallable, RetryPolicy};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::format::manifest::ManifestFile;
use crate::format::manifest::{ApprovalModeKey, LimitsSection};
use crate::source::{SourceFile, Span};

/// How runs of a project behave.
#[derive(Debug, Default)]
pub(crate) struct RunSettings {
    pub(crate) mode: ApprovalMode,
    pub(crate) limits: Limits,
    pub(crate) policy: AgentCallPolicy,
    pub(crate) denials_end_runs: bool,
    pub(crate) retry: RetryPolicy,
}

impl RunSettings {
    /// What definition, rules, policy and mode come to.
    pub(crate) fn judged(&self, callable: &OutlinedCallable) -> (Approval, &'static str) {
        if callable.kind == CallKind::Agent {
            return self.judged_agent(&callable.name, callable.approval, callable.by_rule);
        }
        let strict = self.mode == ApprovalMode::RejectAll && callable.approval < callable.definition.approval;
        let (approval, by_rule) = if strict {
            (callable.definition.approval, false)
        } else {
            (callable.approval, callable.by_rule)
        };
        self.under_mode(approval, if by_rule { "rule" } else { "definition" })
    }

    /// What they come to for a call of an agent.
    pub(crate) fn judged_agent(
        &self,
        name: &Name,
        approval: Approval,
        by_rule: bool,
    ) -> (Approval, &'static str) {
        let defined = if self.policy.must_ask(name, false) { Approval::Ask } else { Approval::PreApproved };
        // `reject_all` ignores rules that loosen.
        let loosens = self.mode == ApprovalMode::RejectAll && approval < defined;
        match (by_rule && !loosens, defined) {
            (true, _) => self.under_mode(approval, "rule"),
            (false, Approval::Ask) => self.under_mode(Approval::Ask, "policy"),
            (false, _) => self.under_mode(defined, "definition"),
        }
    }

    /// What the mode of the run makes of an approval.
    pub(crate) fn under_mode(&self, approval: Approval, by: &'static str) -> (Approval, &'static str) {
        match (approval, self.mode) {
            (Approval::Ask, ApprovalMode::ApproveAll) => (Approval::PreApproved, "mode"),
            (Approval::Ask, ApprovalMode::RejectAll) => (Approval::Blocked, "mode"),
            (approval, _) => (approval, by),
        }
    }
}

/// Reads what the manifest says about runs.
pub(crate) fn run_settings(file: &ManifestFile, out: &mut Diagnostics) -> RunSettings {
    let runtime = &file.manifest.runtime;
    check_auth(file, &file.source, out);
    let mode = match runtime.approval_mode {
        Some(ApprovalModeKey::ApproveAll) => ApprovalMode::ApproveAll,
        Some(ApprovalModeKey::RejectAll) => ApprovalMode::RejectAll,
        Some(ApprovalModeKey::Prompt) | None => ApprovalMode::Prompt,
    };
    let limits = Limits {
        depth: runtime.max_depth,
        created_agents: runtime.max_created_agents,
        parallel: runtime.max_parallel,
        result_bytes: runtime.max_result_bytes,
        ..runtime.limits.as_ref().map(LimitsSection::limits).unwrap_or_default()
    };
    let overrides = runtime.agent_approval_overrides.iter().map(|(agent, special)| AgentCallOverride {
        agent: agent.as_str().into(),
        calls: special.calls_require_approval,
        attachments: special.attachments_require_approval,
    });
    let policy = AgentCallPolicy {
        calls: runtime.agent_calls_require_approval,
        attachments: runtime.agent_attachments_require_approval,
        overrides: overrides.collect(),
    };
    let denials_end_runs = runtime.return_permission_errors == Some(false);
    let usual = RetryPolicy::default();
    let retry = RetryPolicy { attempts: runtime.model_attempts.unwrap_or(usual.attempts), ..usual };
    RunSettings { mode, limits, policy, denials_end_runs, retry }
}

fn check_auth(file: &ManifestFile, source: &SourceFile, out: &mut Diagnostics) {
    let Some(mode) = file.manifest.runtime.auth_mode.as_deref().filter(|mode| *mode != "oauth_off") else {
        return;
    };
    let span = file.node.field("runtime").map_or(Span::START, |runtime| span_of(&runtime.value, "auth_mode"));
    let known = ["oauth_off", "oauth_auto", "oauth_required"];
    let message = match nearest(mode, known).filter(|near| *near == mode) {
        Some(_) => format!("`auth_mode: {mode}` is not supported"),
        None => format!("`auth_mode` is `{mode}`, expected `oauth_off`"),
    };
    out.push(
        Diagnostic::error_at(source, &span, message)
            .with_hint("write `oauth_off`, and sign in with a key from the environment"),
    );
}

/// Reads a section of limits.
impl LimitsSection {
    /// Returns the limits that are written.
    pub fn limits(&self) -> Limits {
        Limits {
            depth: None,
            turns: self.turns,
            repeats: self.repeats,
            tool_calls: self.tool_calls,
            requests: self.requests,
            created_agents: None,
            parallel: None,
            result_bytes: None,
            tokens: self.tokens,
            cost: self.cost.map(Money::from_dollars),
            time: self.time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }
}
