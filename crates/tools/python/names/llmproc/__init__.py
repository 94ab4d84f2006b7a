"""The names that Python tools import from LLMProc."""

from .common.access_control import AccessLevel
from .common.results import ToolResult
from .tools.function_tools import register_tool

__all__ = ["AccessLevel", "ToolResult", "register_tool"]
