"""Toolsets that change what another toolset offers."""

import typing

from .._records import record, replace
from ..exceptions import ApprovalRequired, UserError
from .abstract import AbstractToolset


@record
class WrapperToolset(AbstractToolset):
    """A toolset that does what another one does; its subclasses change some of it."""

    wrapped: AbstractToolset

    @property
    def id(self):
        return None

    @property
    def label(self):
        return "%s(%s)" % (type(self).__name__, self.wrapped.label)

    async def __aenter__(self):
        await self.wrapped.__aenter__()
        return self

    async def __aexit__(self, *args):
        return await self.wrapped.__aexit__(*args)

    async def get_instructions(self, ctx):
        return await self.wrapped.get_instructions(ctx)

    async def get_tools(self, ctx):
        return await self.wrapped.get_tools(ctx)

    async def call_tool(self, name, tool_args, ctx, tool):
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)

    def apply(self, visitor):
        self.wrapped.apply(visitor)

    def visit_and_replace(self, visitor):
        return replace(self, wrapped=self.wrapped.visit_and_replace(visitor))


class Renaming(WrapperToolset):
    """Calls the wrapped toolset by the names that it knows."""

    def original(self, name):
        """Returns the name that the wrapped toolset knows."""
        raise NotImplementedError

    async def call_tool(self, name, tool_args, ctx, tool):
        original = self.original(name)
        known = replace(tool, tool_def=replace(tool.tool_def, name=original))
        return await self.wrapped.call_tool(original, tool_args, context_named(ctx, original), known)


def context_named(ctx, name):
    """Returns the context with the name of the tool that is called."""
    return ctx if ctx is None else replace(ctx, tool_name=name)


def renamed(tool, name, toolset):
    """Returns a tool under another name."""
    return replace(tool, toolset=toolset, tool_def=replace(tool.tool_def, name=name))


@record
class PrefixedToolset(Renaming):
    """Puts a prefix before the name of each tool."""

    prefix: str

    @property
    def tool_name_conflict_hint(self):
        return "Change the `prefix` attribute to avoid name conflicts."

    async def get_tools(self, ctx):
        tools = await self.wrapped.get_tools(ctx)
        names = {name: "%s_%s" % (self.prefix, name) for name in tools}
        return {names[name]: renamed(tool, names[name], self) for name, tool in tools.items()}

    def original(self, name):
        prefix = self.prefix + "_"
        return name[len(prefix) :] if name.startswith(prefix) else name


@record
class RenamedToolset(Renaming):
    """Gives tools other names: `name_map` leads from the new names to the old ones."""

    name_map: dict

    async def get_tools(self, ctx):
        new_names = {old: new for new, old in self.name_map.items()}
        tools = {}
        for name, tool in (await self.wrapped.get_tools(ctx)).items():
            new_name = new_names.get(name, name)
            if new_name in tools:
                raise UserError("Renaming tool %r to %r conflicts with existing tool." % (name, new_name))
            tools[new_name] = tool if new_name == name else renamed(tool, new_name, self)
        return tools

    def original(self, name):
        return self.name_map.get(name, name)


@record
class FilteredToolset(WrapperToolset):
    """Offers only the tools that a function of the context and the definition lets through."""

    filter_func: typing.Any

    async def get_tools(self, ctx):
        kept = {}
        for name, tool in (await self.wrapped.get_tools(ctx)).items():
            if await awaited(self.filter_func(ctx, tool.tool_def)):
                kept[name] = tool
        return kept


@record
class PreparedToolset(WrapperToolset):
    """Lets a function change or drop the definitions of all tools."""

    prepare_func: typing.Any

    async def get_tools(self, ctx):
        tools = await self.wrapped.get_tools(ctx)
        prepared = await awaited(self.prepare_func(ctx, [tool.tool_def for tool in tools.values()])) or []
        for definition in prepared:
            if definition.name not in tools:
                raise UserError("Prepare function cannot add or rename tools: %r" % definition.name)
        return {
            definition.name: replace(tools[definition.name], tool_def=definition) for definition in prepared
        }


@record
class ApprovalRequiredToolset(WrapperToolset):
    """Asks for approval before the tools that a function names."""

    approval_required_func: typing.Any = staticmethod(lambda ctx, tool_def, tool_args: True)

    async def call_tool(self, name, tool_args, ctx, tool):
        decide = getattr(self.approval_required_func, "__func__", self.approval_required_func)
        approved = getattr(ctx, "tool_call_approved", False)
        if not approved and await awaited(decide(ctx, tool.tool_def, tool_args)):
            raise ApprovalRequired()
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)


async def awaited(value):
    """Returns a value, or what it gives when it is awaited."""
    return await value if hasattr(value, "__await__") else value
