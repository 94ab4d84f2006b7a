"""A toolset made of several."""

from .._records import record, replace
from ..exceptions import UserError
from .abstract import AbstractToolset, ToolsetTool


@record
class CombinedToolsetTool(ToolsetTool):
    """A tool that remembers which of the toolsets it belongs to."""

    source_toolset: AbstractToolset = None
    source_tool: ToolsetTool = None


@record
class CombinedToolset(AbstractToolset):
    """Offers the tools of all its toolsets; their names must differ."""

    toolsets: list

    @property
    def id(self):
        return None

    @property
    def label(self):
        return "%s(%s)" % (type(self).__name__, ", ".join(toolset.label for toolset in self.toolsets))

    async def __aenter__(self):
        entered = []
        try:
            for toolset in self.toolsets:
                await toolset.__aenter__()
                entered.append(toolset)
        except BaseException as problem:
            for toolset in reversed(entered):
                await toolset.__aexit__(type(problem), problem, problem.__traceback__)
            raise
        return self

    async def __aexit__(self, *args):
        for toolset in reversed(self.toolsets):
            await toolset.__aexit__(*args)

    async def get_tools(self, ctx):
        tools = {}
        for toolset in self.toolsets:
            for name, tool in (await toolset.get_tools(ctx)).items():
                if name in tools:
                    raise UserError(conflict(name, toolset, tool, tools[name]))
                tools[name] = combined(toolset, tool)
        return tools

    async def call_tool(self, name, tool_args, ctx, tool):
        source = replace(tool.source_tool, tool_def=tool.tool_def)
        return await tool.source_toolset.call_tool(name, tool_args, ctx, source)

    def apply(self, visitor):
        for toolset in self.toolsets:
            toolset.apply(visitor)

    def visit_and_replace(self, visitor):
        return replace(self, toolsets=[toolset.visit_and_replace(visitor) for toolset in self.toolsets])


def combined(toolset, tool):
    """Makes the entry of a tool that belongs to one of the toolsets."""
    return CombinedToolsetTool(
        toolset=tool.toolset,
        tool_def=tool.tool_def,
        max_retries=tool.max_retries,
        args_validator=tool.args_validator,
        args_validator_func=getattr(tool, "args_validator_func", None),
        source_toolset=toolset,
        source_tool=tool,
    )


def conflict(name, toolset, tool, other):
    """Says that two toolsets have a tool of one name."""
    return "%s defines a tool whose name conflicts with existing tool from %s: %r. %s" % (
        tool.toolset.label,
        other.toolset.label,
        name,
        toolset.tool_name_conflict_hint,
    )
