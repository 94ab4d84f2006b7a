//! Approvals: who is asked about a call, what a rule allows, and what was decided.

pub use llm_do_core::{
    Answer, AnsweredBy, AnsweredVia, Approval, ApprovalMode, ApprovalRequest, ApprovalRule, Approved,
    Approver, ApproverError, Assessment, DecidedBy, Decision, Exhausted, ExtensionRequest, Grant,
    GrantSubject, IntoAnswer, Permit, Quantity, Scope, SecretFile, ShownAttachment, Subject,
};
pub use llm_do_runtime::{
    AgentCallOverride, AgentCallPolicy, ApprovalBuilder, ApprovalController, ApprovalControllerBuilder,
    GrantId, Verdict, VerdictKind,
};
