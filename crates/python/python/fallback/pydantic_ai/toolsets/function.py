"""A toolset of plain functions."""

import typing

from llm_do_host import schema

from .._calls import with_time_limit
from .._records import record, replace
from ..exceptions import UserError
from ..tools import AgentDepsT, Tool
from .abstract import AbstractToolset, ToolsetTool

DEFAULT_RETRIES = 1


@record
class FunctionToolsetTool(ToolsetTool):
    """A tool that calls a function."""

    call_func: typing.Any = None
    is_async: bool = False
    timeout: typing.Optional[float] = None


class FunctionToolset(AbstractToolset[AgentDepsT]):
    """A toolset that Python functions are put into."""

    def __init__(
        self,
        tools=(),
        *,
        max_retries=None,
        timeout=None,
        id=None,
        docstring_format="auto",
        require_parameter_descriptions=False,
        schema_generator=None,
        strict=None,
        sequential=False,
        requires_approval=False,
        metadata=None,
        instructions=None,
        **later_options,
    ):
        self.tools = {}
        self.max_retries = max_retries
        self.timeout = timeout
        self._id = id
        self.instruction_texts = [instructions] if instructions is not None else []
        self.defaults = {
            "docstring_format": docstring_format,
            "require_parameter_descriptions": require_parameter_descriptions,
            "strict": strict,
            "sequential": sequential,
            "requires_approval": requires_approval,
            "metadata": metadata,
        }
        for tool in tools:
            if isinstance(tool, Tool):
                self.add_tool(tool)
            else:
                self.add_function(tool)

    @property
    def id(self):
        return self._id

    def tool(self, func=None, /, **options):
        """Adds a function, as a decorator (bare or with options) or as a plain call."""
        return self.added(func, None, options)

    def tool_plain(self, func=None, /, **options):
        """Adds a function that takes no context."""
        return self.added(func, False, options)

    def added(self, func, takes_ctx, options):
        """Adds a function now, or returns the decorator that does."""

        def decorate(function):
            self.add_function(function, takes_ctx, **options)
            return function

        return decorate if func is None else decorate(func)

    def add_function(
        self, func, takes_ctx=None, name=None, description=None, retries=None, prepare=None, **options
    ):
        """Adds a function; options that are not given are those of the toolset."""
        given = {key: value for key, value in options.items() if value is not None}
        merged = dict(self.defaults, **given)
        self.add_tool(
            Tool(
                func,
                takes_ctx=takes_ctx,
                name=name,
                description=description,
                max_retries=retries,
                prepare=prepare,
                **merged,
            )
        )

    def add_tool(self, tool):
        """Adds a tool; two of one name are an error."""
        if tool.name in self.tools:
            raise UserError("Tool name conflicts with existing tool: %r" % tool.name)
        if tool.max_retries is None:
            tool.max_retries = self.max_retries
        if self.defaults["metadata"] is not None:
            tool.metadata = dict(self.defaults["metadata"], **(tool.metadata or {}))
        self.tools[tool.name] = tool

    def instructions(self, func=None, /):
        """Adds a function that returns text for the model."""

        def decorate(function):
            self.instruction_texts.append(function)
            return function

        return decorate if func is None else decorate(func)

    async def get_instructions(self, ctx):
        """Returns the texts for the model, or None where there are none."""
        texts = [await instruction(source, ctx) for source in self.instruction_texts]
        return "\n\n".join(text for text in texts if text) or None

    async def get_tools(self, ctx):
        """Returns the tools by the names that the model sees."""
        tools = {}
        for original, tool in self.tools.items():
            retries = DEFAULT_RETRIES if tool.max_retries is None else tool.max_retries
            definition = await tool.prepare_tool_def(context_of_tool(ctx, original, retries))
            if not definition:
                continue
            if definition.name in tools:
                raise UserError(
                    "Renaming tool %r to %r conflicts with existing tool." % (original, definition.name)
                )
            tools[definition.name] = self.toolset_tool(tool, definition, retries)
        return tools

    def toolset_tool(self, tool, definition, retries):
        """Makes the entry of one tool."""
        function = tool.function_schema
        return FunctionToolsetTool(
            toolset=self,
            tool_def=definition,
            max_retries=retries,
            args_validator=function.validator,
            args_validator_func=tool.args_validator,
            call_func=function.call,
            is_async=function.is_async,
            timeout=definition.timeout,
        )

    async def call_tool(self, name, tool_args, ctx, tool):
        """Calls the function of a tool, within its time limit."""
        timeout = self.timeout if tool.timeout is None else tool.timeout
        calling = tool.call_func(tool_args, ctx)
        return await calling if timeout is None else await with_time_limit(calling, timeout)


def context_of_tool(ctx, name, retries):
    """Returns the run's context as one tool sees it."""
    if ctx is None:
        return None
    seen = getattr(ctx, "retries", None) or {}
    return replace(ctx, tool_name=name, retry=seen.get(name, 0), max_retries=retries)


async def instruction(source, ctx):
    """Returns one text for the model: as it is, or as a function of the context (or of nothing) says."""
    if isinstance(source, str):
        return source
    text = source(ctx) if schema.parameters_of(source) else source()
    return await text if hasattr(text, "__await__") else text
