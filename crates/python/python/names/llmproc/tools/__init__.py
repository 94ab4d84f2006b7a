"""Tools as decorated functions."""

from llm_do._missing import missing_names

from ..common.results import ToolResult
from .function_tools import register_tool

__all__ = ["ToolResult", "register_tool"]

__getattr__ = missing_names(__name__, __all__)
