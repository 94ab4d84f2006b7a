"""Toolset instances: one for each agent call that uses a toolset, numbered by llm-do.

What a factory makes is entered, used and cleaned up with that call. A toolset that a module made itself is shared:
it is entered and left with each call, and cleaned up when the host leaves.
"""

import sys

from .context import run_context
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
        return value is not None and (value is self.shared or value is self._factory)

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


class Instance:
    """A toolset that is open for one call."""

    def __init__(self, source, toolset):
        self.toolset = toolset
        self.tools = {}
        self._source = source
        self._left = None

    @classmethod
    async def open(cls, source, toolset, context):
        """Enters a toolset and learns its tools; what was begun is undone where that fails."""
        instance = cls(source, toolset)
        try:
            await instance._enter()
            if instance.toolset is not None:
                instance.tools = dict(await awaited(instance.toolset.get_tools(context)))
        except BaseException:
            await instance.close()
            raise
        return instance

    @classmethod
    async def tools_of(cls, source, toolset, context):
        """Returns the tools of a toolset that is not entered, and lets go of it."""
        try:
            return dict(await awaited(toolset.get_tools(context))) if toolset is not None else {}
        finally:
            await cls(source, toolset).close()

    async def _enter(self):
        """Enters the toolset, where it is a context manager."""
        if hasattr(type(self.toolset), "__aenter__"):
            await self.toolset.__aenter__()
            self._left = self.toolset.__aexit__

    async def close(self):
        """Leaves the toolset and, where it belongs to this call alone, cleans it up."""
        leave, self._left = self._left, None
        if leave is not None:
            await attempt(self._source.name, "__aexit__", lambda: leave(None, None, None))
        if self._source.shared is None:
            await clean_up(self._source.name, self.toolset)


async def clean_up(name, toolset):
    """Calls `cleanup()` of a toolset, where it has one."""
    if callable(getattr(toolset, "cleanup", None)):
        await attempt(name, "cleanup", toolset.cleanup)


async def attempt(name, what, action):
    """Runs a step of closing; what it raises is said, and closing goes on."""
    try:
        await awaited(action())
    except Exception as problem:
        print(f"toolset `{name}`: {what} failed: {type(problem).__name__}: {problem}", file=sys.stderr)


def is_toolset(value):
    """Says whether an object speaks the AbstractToolset protocol."""
    return not isinstance(value, type) and callable(getattr(value, "get_tools", None)) and callable(
        getattr(value, "call_tool", None)
    )


async def open_for_call(source, call):
    """Opens an instance for the context of a call."""
    context = run_context(call)
    return await Instance.open(source, await source.make(context), context)
