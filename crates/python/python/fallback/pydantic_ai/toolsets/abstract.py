"""The protocol of toolsets: list the tools, call one of them."""

import abc
import typing

from .._records import record
from ..tools import AgentDepsT, ToolDefinition


@record
class ToolsetTool(typing.Generic[AgentDepsT]):
    """A tool of a toolset: its definition, where it comes from, how its arguments are checked."""

    toolset: "AbstractToolset"
    tool_def: ToolDefinition
    max_retries: int
    args_validator: typing.Any
    args_validator_func: typing.Any = None


class SchemaValidatorProt(typing.Protocol):
    """What checks the arguments of a tool."""

    def validate_json(self, input, **options):
        """Validates JSON text."""

    def validate_python(self, input, **options):
        """Validates a dict."""


class AbstractToolset(abc.ABC, typing.Generic[AgentDepsT]):
    """A collection of tools that are listed, validated and called together."""

    @property
    def id(self):
        """Names the toolset; None where it has no name."""
        return None

    @property
    def label(self):
        """Names the toolset in messages."""
        name = type(self).__name__
        return "%s %r" % (name, self.id) if self.id else name

    @property
    def tool_name_conflict_hint(self):
        """Says what to do where two toolsets have a tool of the same name."""
        return "Rename the tool or wrap the toolset in a `PrefixedToolset` to avoid name conflicts."

    async def for_run(self, ctx):
        """Returns the toolset that one run uses."""
        return self

    async def for_run_step(self, ctx):
        """Returns the toolset that one step of a run uses."""
        return self

    async def __aenter__(self):
        return self

    async def __aexit__(self, *args):
        return None

    async def get_instructions(self, ctx):
        """Returns text for the model about the tools, or None."""
        return None

    @abc.abstractmethod
    async def get_tools(self, ctx):
        """Returns the tools by name, as `ToolsetTool`."""

    @abc.abstractmethod
    async def call_tool(self, name, tool_args, ctx, tool):
        """Calls a tool with validated arguments."""

    def apply(self, visitor):
        """Shows the toolset, or those it contains, to a visitor."""
        visitor(self)

    def visit_and_replace(self, visitor):
        """Returns what a visitor puts in the place of the toolset, or of those it contains."""
        return visitor(self)

    def filtered(self, filter_func):
        """Returns the toolset without the tools that `filter_func(ctx, tool_def)` refuses."""
        from .wrapper import FilteredToolset

        return FilteredToolset(self, filter_func)

    def prefixed(self, prefix):
        """Returns the toolset with a prefix before the name of each tool."""
        from .wrapper import PrefixedToolset

        return PrefixedToolset(self, prefix)

    def prepared(self, prepare_func):
        """Returns the toolset with definitions that `prepare_func(ctx, tool_defs)` changes."""
        from .wrapper import PreparedToolset

        return PreparedToolset(self, prepare_func)

    def renamed(self, name_map):
        """Returns the toolset with other names: a dict from new to old ones."""
        from .wrapper import RenamedToolset

        return RenamedToolset(self, name_map)

    def approval_required(self, approval_required_func=None):
        """Returns the toolset with tools that must be approved."""
        from .wrapper import ApprovalRequiredToolset

        if approval_required_func is None:
            return ApprovalRequiredToolset(self)
        return ApprovalRequiredToolset(self, approval_required_func)
