"""The vocabulary of approvals.

Decisions are made by llm-do itself. A toolset takes part with a method `needs_approval(name, args, ctx, config)`
that returns an `ApprovalResult`.
"""

from typing import Any, Callable, Dict, Optional

from .errors import ApprovalBlocked, ApprovalDenied, ApprovalError

ApprovalConfig = Dict[str, Dict[str, Any]]
ApprovalCallback = Callable[..., Any]


class ApprovalResult:
    """A toolset's word on one call: blocked, pre-approved, or to be asked for."""

    def __init__(self, status, block_reason=None):
        if status not in ("blocked", "pre_approved", "needs_approval"):
            raise ValueError(f"unknown approval status: {status!r}")
        self.status = status
        self.block_reason = block_reason

    def __repr__(self):
        return f"ApprovalResult({self.status!r}, block_reason={self.block_reason!r})"

    def __eq__(self, other):
        if not isinstance(other, ApprovalResult):
            return NotImplemented
        return (self.status, self.block_reason) == (other.status, other.block_reason)

    __hash__ = None

    @classmethod
    def blocked(cls, reason):
        """The call must not be made."""
        return cls("blocked", reason)

    @classmethod
    def pre_approved(cls):
        """The call needs no permission."""
        return cls("pre_approved")

    @classmethod
    def needs_approval(cls):
        """The call needs permission."""
        return cls("needs_approval")

    @property
    def is_blocked(self):
        """Whether the call must not be made."""
        return self.status == "blocked"

    @property
    def is_pre_approved(self):
        """Whether the call needs no permission."""
        return self.status == "pre_approved"

    @property
    def is_needs_approval(self):
        """Whether the call needs permission."""
        return self.status == "needs_approval"


class ApprovalRequest:
    """A call for which permission is asked."""

    def __init__(self, tool_name, tool_args, description=""):
        self.tool_name = tool_name
        self.tool_args = tool_args
        self.description = description


class ApprovalDecision:
    """The answer to a request."""

    def __init__(self, approved, note: Optional[str] = None, remember="none"):
        self.approved = approved
        self.note = note
        self.remember = remember


class ApprovalToolset:
    """Refuses to be made: every call passes llm-do's own gate, so toolsets need no wrapper."""

    def __init__(self, *_args, **_options):
        raise TypeError(
            "ApprovalToolset is not needed: llm-do asks for every call itself; "
            "use set_toolset_approval_config, or a method needs_approval of the toolset"
        )


def needs_approval_from_config(name, config=None):
    """Returns what the approval settings of a toolset say about one of its tools."""
    settings = (config or {}).get(name) or {}
    if settings.get("blocked"):
        return ApprovalResult.blocked(settings.get("reason") or f"{name} is blocked by its settings")
    return ApprovalResult.pre_approved() if settings.get("pre_approved") else ApprovalResult.needs_approval()


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
