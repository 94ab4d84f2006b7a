"""Where pydantic_ai has `ApprovalRequiredToolset`."""

from .wrapper import ApprovalRequiredToolset

__all__ = ["ApprovalRequiredToolset"]
