"""The names that Python projects import from llm-do.

The runtime itself is the `llm-do` program, which started this process; what stands here declares agents, toolsets,
entries and models to it, and calls back into it. Modules are loaded when a name of theirs is first used.
"""

from ._lazy import lazy_names

__version__ = "0.3.0"

_NAMES = {
    "llm_do.approvals": [
        "ApprovalCallback",
        "ApprovalDecision",
        "ApprovalRequest",
        "ApprovalResult",
        "ApprovalToolset",
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
    "llm_do.runtime.context": ["CallContext"],
    "llm_do.runtime.runtime": ["Runtime"],
}

__getattr__, __all__ = lazy_names(__name__, _NAMES)
