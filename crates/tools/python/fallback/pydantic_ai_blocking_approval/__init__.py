"""The names of pydantic_ai_blocking_approval, where it is not installed: llm-do itself asks for approvals."""

from llm_do.approvals import (
    ApprovalBlocked,
    ApprovalCallback,
    ApprovalConfig,
    ApprovalDecision,
    ApprovalDenied,
    ApprovalError,
    ApprovalRequest,
    ApprovalResult,
    ApprovalToolset,
    needs_approval_from_config,
)

__all__ = [
    "ApprovalBlocked",
    "ApprovalCallback",
    "ApprovalConfig",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalRequest",
    "ApprovalResult",
    "ApprovalToolset",
    "needs_approval_from_config",
]
