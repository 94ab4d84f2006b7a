"""Approval settings of a toolset."""

from ..approvals import ApprovalConfig, ApprovalResult, needs_approval_from_config

_ATTRIBUTE = "__llm_do_approval_config__"


def set_toolset_approval_config(toolset, config):
    """Says for tools of a toolset whether they are pre-approved or blocked: {"tool": {"pre_approved": True}}."""
    if not isinstance(config, dict):
        raise TypeError(f"the approval config must be a dict, not {type(config).__name__}")
    # Past frozen dataclasses and classes that guard their attributes.
    object.__setattr__(toolset, _ATTRIBUTE, config)


def get_toolset_approval_config(toolset):
    """Returns the approval settings of a toolset, or None."""
    return getattr(toolset, _ATTRIBUTE, None)


__all__ = [
    "ApprovalConfig",
    "ApprovalResult",
    "get_toolset_approval_config",
    "needs_approval_from_config",
    "set_toolset_approval_config",
]
