"""The names of the runtime: contexts, inputs, agents and entries."""

from .._lazy import lazy_names

_NAMES = {
    "llm_do.approvals": ["ApprovalCallback"],
    "llm_do.errors": ["ApprovalDenied", "CallError"],
    "llm_do.runtime.approval": ["AgentApprovalPolicy", "RunApprovalPolicy", "resolve_approval_callback"],
    "llm_do.runtime.args": [
        "AgentArgs",
        "Attachment",
        "PromptContent",
        "PromptInput",
        "PromptMessages",
        "WorkerArgs",
        "WorkerInput",
        "get_display_text",
    ],
    "llm_do.runtime.call": ["CallConfig", "CallFrame", "CallScope"],
    "llm_do.runtime.context": ["CallContext", "WorkerContext", "WorkerRuntime"],
    "llm_do.runtime.contracts": [
        "AgentEntry",
        "AgentSpec",
        "Entry",
        "EntrySpec",
        "EventCallback",
        "FunctionEntry",
        "ModelType",
        "ToolDef",
        "ToolEntry",
        "ToolsetDef",
        "ToolsetSpec",
        "WorkerEntry",
        "WorkerSpec",
    ],
    "llm_do.runtime.deps": ["ToolsProxy"],
    "llm_do.runtime.runtime": ["Runtime", "RuntimeConfig"],
    "llm_do.workers": [
        "WorkerCreationDefaults",
        "call_worker",
        "call_worker_async",
        "create_worker",
        "create_worker_async",
    ],
}

__getattr__, __all__ = lazy_names(__name__, _NAMES)
