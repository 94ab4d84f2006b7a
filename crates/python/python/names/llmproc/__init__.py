"""The names that Python tools import from LLMProc."""

from llm_do._missing import missing_names

from .common.access_control import AccessLevel
from .common.results import ToolResult
from .tools.function_tools import register_tool

__all__ = ["AccessLevel", "ToolResult", "register_tool"]

__getattr__ = missing_names(__name__, __all__)
