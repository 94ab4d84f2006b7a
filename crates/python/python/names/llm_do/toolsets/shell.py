"""llm-do's shell toolset."""

from .declared import ShellToolset

__all__ = ["ShellToolset"]
