"""The policy of approvals: offered as names, decided by llm-do itself."""

from ..approvals import ApprovalCallback, ApprovalDecision, ApprovalRequest

_HINT = "llm-do decides about approvals itself: use `runtime.approval_mode` in the manifest, or --approve"


class RunApprovalPolicy:
    """Refuses to be made: the policy of a run is set in the manifest or on the command line."""

    def __init__(self, *_args, **_options):
        raise TypeError(_HINT)


class AgentApprovalPolicy(RunApprovalPolicy):
    """Refuses to be made: the policy for agents is set in the manifest."""


def resolve_approval_callback(*_args, **_options):
    """Refuses: there is no callback to resolve."""
    raise TypeError(_HINT)


__all__ = [
    "AgentApprovalPolicy",
    "ApprovalCallback",
    "ApprovalDecision",
    "ApprovalRequest",
    "RunApprovalPolicy",
    "resolve_approval_callback",
]
