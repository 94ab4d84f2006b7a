"""Results, access levels and the runtime context."""

from .access_control import AccessLevel
from .context import RuntimeContext
from .results import ToolResult

__all__ = ["AccessLevel", "RuntimeContext", "ToolResult"]
