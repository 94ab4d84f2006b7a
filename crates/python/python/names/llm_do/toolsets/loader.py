"""Toolset factories."""

from typing import Any, Callable

ToolsetFactory = Callable[..., Any]
ToolsetDef = Any


class ToolsetSpec:
    """A function that makes a toolset, once for each agent call."""

    def __init__(self, factory):
        if not callable(factory):
            raise TypeError(f"ToolsetSpec needs a function, not a {type(factory).__name__}")
        self.factory = factory

    def __repr__(self):
        return f"ToolsetSpec({self.factory!r})"


__all__ = ["ToolsetDef", "ToolsetFactory", "ToolsetSpec"]
