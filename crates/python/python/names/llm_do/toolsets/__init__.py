"""Toolsets that a project declares in Python and llm-do itself makes."""

from .approval import get_toolset_approval_config, set_toolset_approval_config
from .declared import FileSystemToolset, ReadOnlyFileSystemToolset, ShellToolset, declared_kind
from .loader import ToolsetSpec

__all__ = [
    "FileSystemToolset",
    "ReadOnlyFileSystemToolset",
    "ShellToolset",
    "ToolsetSpec",
    "declared_kind",
    "get_toolset_approval_config",
    "set_toolset_approval_config",
]
