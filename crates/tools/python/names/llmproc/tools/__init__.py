"""Tools as decorated functions."""

from ..common.results import ToolResult
from .function_tools import register_tool

__all__ = ["ToolResult", "register_tool"]
