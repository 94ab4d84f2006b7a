"""Approvals, under the oldest path of their module."""

from ._missing import missing_names
from .approvals import ApprovalController, ApprovalDecision, approve_all_callback, strict_mode_callback

__all__ = ["ApprovalController", "ApprovalDecision", "approve_all_callback", "strict_mode_callback"]

__getattr__ = missing_names(__name__, __all__)
