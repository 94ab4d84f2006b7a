"""Stands in for pydantic_ai where it is not installed: what files of tools need from it.

Tools, toolsets and their contexts work as in the real package; agents of pydantic_ai need the real
one and say so.
"""

from .exceptions import (
    AgentRunError,
    ApprovalRequired,
    CallDeferred,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelHTTPError,
    ModelRetry,
    ToolFailed,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from .tools import (
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    Tool,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)

LLM_DO_FALLBACK = True
__version__ = "0+llm-do"

LATER = {
    "agent": ["Agent", "AgentRunResult"],
    "messages": [
        "AudioUrl",
        "BinaryContent",
        "BinaryImage",
        "DocumentUrl",
        "FileUrl",
        "ImageUrl",
        "ModelMessage",
        "ModelRequest",
        "ModelResponse",
        "RetryPromptPart",
        "SystemPromptPart",
        "TextPart",
        "ThinkingPart",
        "ToolCallPart",
        "ToolReturn",
        "ToolReturnPart",
        "UserContent",
        "UserPromptPart",
        "VideoUrl",
    ],
    "settings": ["ModelSettings"],
    "toolsets": [
        "AbstractToolset",
        "ApprovalRequiredToolset",
        "CombinedToolset",
        "FilteredToolset",
        "FunctionToolset",
        "PrefixedToolset",
        "PreparedToolset",
        "RenamedToolset",
        "ToolsetTool",
        "WrapperToolset",
    ],
    "usage": ["RequestUsage", "RunUsage", "UsageLimits"],
}


def __getattr__(name):
    """Imports the module of a name when the name is used; start-up should not wait for it."""
    import importlib

    for module, names in LATER.items():
        if name in names:
            return getattr(importlib.import_module("." + module, __name__), name)
    raise AttributeError(
        "module 'pydantic_ai' has no %r here: the real pydantic_ai is not installed for this Python" % name
    )


__all__ = [
    "AgentRunError",
    "ApprovalRequired",
    "CallDeferred",
    "DeferredToolRequests",
    "DeferredToolResults",
    "FallbackExceptionGroup",
    "ModelAPIError",
    "ModelHTTPError",
    "ModelRetry",
    "RunContext",
    "Tool",
    "ToolApproved",
    "ToolDefinition",
    "ToolDenied",
    "ToolFailed",
    "UnexpectedModelBehavior",
    "UsageLimitExceeded",
    "UserError",
] + [name for names in LATER.values() for name in names]
