"""Results, access levels and the runtime context."""

from llm_do._missing import missing_names

from .access_control import AccessLevel
from .context import RuntimeContext
from .results import ToolResult

__all__ = ["AccessLevel", "RuntimeContext", "ToolResult"]

__getattr__ = missing_names(__name__, __all__)
