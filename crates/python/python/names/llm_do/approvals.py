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

    def __init__(self, approved, note: Optional[str] = None, remember="none", approve_for_session=False):
        self.approved = approved
        self.note = note
        self.remember = "session" if approve_for_session else remember

    @property
    def approve_for_session(self):
        """Whether equal requests need not be asked again."""
        return self.remember == "session"


def approve_all_callback(tool_name, payload, reason=""):
    """Approves everything."""
    return ApprovalDecision(approved=True)


def strict_mode_callback(tool_name, payload, reason=""):
    """Denies everything."""
    return ApprovalDecision(approved=False, note=f"Strict mode: tool '{tool_name}' not pre-approved in worker config")


class ApprovalController:
    """Asks for permission before a function of a tool runs: `maybe_run(tool_name, payload, func)`.

    `tool_rules` maps tools to `{"allowed": .., "approval_required": ..}`. What a rule does not exempt is put to llm-do's
    own gate; a callback can only deny, since nothing in a project may approve for the person who runs it.
    """

    def __init__(self, tool_rules=None, approval_callback=None):
        self.tool_rules = dict(tool_rules or {})
        self.approval_callback = approval_callback

    def maybe_run(self, tool_name, payload, func):
        """Runs a function in a synchronous tool once it is permitted, and returns its result."""
        if self._must_ask(tool_name, payload):
            from .workers import _running_call

            _running_call("maybe_run").ask_from_thread("approve", **self._question(tool_name, payload))
        return func()

    async def maybe_run_async(self, tool_name, payload, func):
        """Runs a function in an async tool once it is permitted, and returns its result."""
        if self._must_ask(tool_name, payload):
            from .workers import _running_call

            await _running_call("maybe_run_async").ask("approve", **self._question(tool_name, payload))
        result = func()
        return await result if hasattr(type(result), "__await__") else result

    def _must_ask(self, tool_name, payload):
        """Returns whether the gate must be asked; raises if a rule or the callback denies."""
        if not self._setting(tool_name, "allowed", True):
            raise ApprovalBlocked(f"Tool '{tool_name}' is disallowed", kind="blocked")
        if not self._setting(tool_name, "approval_required", True):
            return False
        reason = self._setting(tool_name, "description", "")
        decision = self.approval_callback(tool_name, payload, reason) if self.approval_callback else None
        if decision is not None and not decision.approved:
            raise ApprovalDenied(f"User rejected tool call '{tool_name}': {decision.note or 'no reason given'}")
        return True

    def _setting(self, tool_name, key, default):
        """Returns one value of a tool's rule, which is a dict or an object."""
        rule = self.tool_rules.get(tool_name)
        value = rule.get(key) if isinstance(rule, dict) else getattr(rule, key, None)
        return default if value is None else value

    def _question(self, tool_name, payload):
        """Returns the question to llm-do. Names of effects have no dots there."""
        from llm_do_host.results import to_json

        plain, _ = to_json(payload)
        reason = self._setting(tool_name, "description", "")
        return {"name": tool_name.replace(".", "_"), "payload": plain, "reason": reason}


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
    "ApprovalController",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalRequest",
    "ApprovalResult",
    "ApprovalToolset",
    "approve_all_callback",
    "needs_approval_from_config",
    "strict_mode_callback",
]
