"""The names that Python projects import from llm-do.

The runtime itself is the `llm-do` program, which started this process; what stands here declares agents, toolsets,
entries and models to it, and calls back into it. Modules are loaded when a name of theirs is first used.
"""

from ._lazy import lazy_names

__version__ = "0.3.0"

_NAMES = {
    "llm_do.approvals": [
        "ApprovalCallback",
        "ApprovalController",
        "ApprovalDecision",
        "ApprovalRequest",
        "ApprovalResult",
        "ApprovalToolset",
        "approve_all_callback",
        "strict_mode_callback",
    ],
    "llm_do.errors": [
        "ApprovalBlocked",
        "ApprovalDenied",
        "ApprovalError",
        "CallError",
        "InvalidCompatibleModelsError",
        "ModelCompatibilityError",
        "NoModelError",
    ],
    "llm_do.models": ["ModelInput", "register_model_factory", "resolve_model"],
    "llm_do.runtime.contracts": ["AgentEntry", "AgentSpec", "Entry", "EntrySpec", "FunctionEntry", "WorkerSpec"],
    "llm_do.runtime.context": ["CallContext", "WorkerContext"],
    "llm_do.runtime.runtime": ["Runtime"],
    "llm_do.workers": [
        "WorkerCreationDefaults",
        "call_worker",
        "call_worker_async",
        "create_worker",
        "create_worker_async",
    ],
}

__getattr__, __all__ = lazy_names(__name__, _NAMES)
