"""The runtime context, under its other path."""

from ..common.context import RuntimeContext

__all__ = ["RuntimeContext"]
