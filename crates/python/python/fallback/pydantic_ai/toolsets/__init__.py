"""Collections of tools."""

import typing

from .abstract import AbstractToolset, ToolsetTool
from .combined import CombinedToolset
from .function import FunctionToolset
from .wrapper import (
    ApprovalRequiredToolset,
    FilteredToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    WrapperToolset,
)

ToolsetFunc = typing.Callable[..., typing.Any]
AgentToolset = typing.Any

__all__ = [
    "AbstractToolset",
    "AgentToolset",
    "ApprovalRequiredToolset",
    "CombinedToolset",
    "FilteredToolset",
    "FunctionToolset",
    "PrefixedToolset",
    "PreparedToolset",
    "RenamedToolset",
    "ToolsetFunc",
    "ToolsetTool",
    "WrapperToolset",
]
