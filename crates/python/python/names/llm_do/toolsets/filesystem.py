"""llm-do's filesystem toolset."""

from .declared import FileSystemToolset, ReadOnlyFileSystemToolset

__all__ = ["FileSystemToolset", "ReadOnlyFileSystemToolset"]
