"""Where toolsets come from, and how they are cleaned up.

What a factory makes belongs to one agent call (see `open_toolsets`) and is cleaned up with it. A toolset that a module
made itself is shared, and cleaned up when the host leaves.
"""

import sys

from .results import MESSAGE_LIMIT, bounded, exception_text
from .targets import awaited


class ToolsetSource:
    """Where instances of a toolset come from: a factory, or an object that a module made."""

    def __init__(self, name, factory=None, takes_context=False, shared=None):
        self.name = name
        self.shared = shared
        self._factory = factory
        self._takes_context = takes_context

    def comes_from(self, value):
        """Says whether this is the source that a module made of an object or factory."""
        factory = getattr(value, "factory", value)
        return value is not None and (value is self.shared or factory is self._factory)

    async def make(self, context):
        """Returns a toolset for one call; None is a toolset without tools."""
        if self.shared is not None:
            return self.shared
        made = self._factory(context) if self._takes_context else self._factory()
        toolset = await awaited(made)
        if toolset is not None and not is_toolset(toolset):
            found = type(toolset).__name__
            raise TypeError(f"the factory of toolset `{self.name}` returned {found}; expected a toolset or None")
        return toolset


async def tools_of(source, toolset, context):
    """Returns the tools of a toolset that is not entered, and lets go of it."""
    try:
        return dict(await awaited(toolset.get_tools(context))) if toolset is not None else {}
    finally:
        if source.shared is None:
            await clean_up(source.name, toolset)


async def clean_up(name, toolset):
    """Calls `cleanup()` of a toolset, where it has one."""
    if callable(getattr(toolset, "cleanup", None)):
        await attempt(name, "cleanup", toolset.cleanup)


async def attempt(name, what, action):
    """Runs a step of closing; what it raises is said and returned, and closing goes on."""
    try:
        await awaited(action())
    except Exception as problem:
        text = bounded(exception_text(problem), MESSAGE_LIMIT)
        print(f"toolset `{name}`: {what} failed: {text}", file=sys.stderr)
        return problem
    return None


def is_toolset(value):
    """Says whether an object speaks the AbstractToolset protocol."""
    return not isinstance(value, type) and callable(getattr(value, "get_tools", None)) and callable(
        getattr(value, "call_tool", None)
    )
