"""What a project declares in Python: agents and entries."""

from typing import Any, Callable

from ..toolsets.loader import ToolsetSpec

ModelType = Any
EventCallback = Callable[[Any], None]
MessageLogCallback = Callable[[str, int, list], None]
ToolDef = Any
ToolsetDef = Any


class Entry:
    """The root of a run."""

    name: str
    input_model: Any = None


class FunctionEntry(Entry):
    """An entry that is a function: `fn(args, ctx)`, asynchronous or not."""

    def __init__(self, name, fn, input_model=None):
        if not callable(fn):
            raise TypeError(f"the entry `{name}` needs a function, not a {type(fn).__name__}")
        _check_input_model(f"entry `{name}`", input_model)
        self.name = name
        self.fn = fn
        self.input_model = input_model

    def __repr__(self):
        return f"FunctionEntry({self.name!r})"

    @classmethod
    def from_function(cls, fn):
        """Makes an entry with the name of its function."""
        return cls(fn.__name__, fn)


class EntrySpec(FunctionEntry):
    """An entry by its older name and parameters."""

    def __init__(self, name, main, schema_in=None, description=None):
        super().__init__(name, main, schema_in)
        self.main = main
        self.schema_in = schema_in
        self.description = description


class AgentSpec:
    """An agent that is declared in Python."""

    def __init__(
        self,
        name,
        instructions,
        model=None,
        model_id=None,
        tools=(),
        toolsets=(),
        description=None,
        input_model=None,
        output_model=None,
        model_settings=None,
        builtin_tools=(),
        schema_in=None,
        toolset_specs=(),
    ):
        input_model = input_model or schema_in
        _check_input_model(f"agent `{name}`", input_model)
        if toolsets and toolset_specs:
            raise TypeError(f"agent `{name}`: give `toolsets` or the older `toolset_specs`, not both")
        self.name = name
        self.instructions = instructions
        self.model = model
        self.model_id = model_id
        self.tools = list(tools)
        self.toolsets = list(toolsets or toolset_specs)
        self.description = description
        self.input_model = input_model
        self.output_model = output_model
        self.model_settings = model_settings
        self.builtin_tools = list(builtin_tools)

    def __repr__(self):
        return f"AgentSpec({self.name!r})"

    @property
    def toolset_specs(self):
        """The toolsets, by their older name."""
        return self.toolsets

    def has_own_input(self):
        """Says whether the agent takes more than a prompt with attachments."""
        return self.input_model is not None and self.input_model.__name__ not in ("PromptInput", "WorkerInput")


# The older name.
WorkerSpec = AgentSpec


class ToolEntry:
    """A tool of the older form: a `Tool` of pydantic_ai that a module declares by making this object."""

    kind = "tool"
    model = None

    def __init__(self, tool, requires_approval=False):
        if not callable(getattr(tool, "function", None)):
            found = type(tool).__name__
            raise TypeError(f"ToolEntry needs a Tool, not a {found}: write ToolEntry(tool=Tool(function))")
        self.tool = tool
        self.requires_approval = requires_approval

    def __repr__(self):
        return f"ToolEntry({self.name!r})"

    @property
    def name(self):
        """The name of the tool."""
        return self.tool.name


class WorkerEntry(AgentSpec):
    """An agent of the older form; its tools are entries, and workers among them are agents that it may call."""

    kind = "worker"

    def __init__(self, name, instructions, model=None, tools=(), description=None, requires_approval=False):
        if requires_approval:
            raise TypeError(
                f"agent `{name}`: approval of agent calls is set in the manifest, under "
                "`runtime.agent_approval_overrides`, not with `requires_approval`"
            )
        workers = [entry for entry in tools if isinstance(entry, AgentSpec)]
        own = [entry for entry in tools if not isinstance(entry, AgentSpec)]
        super().__init__(name, instructions, model, tools=own, toolsets=workers, description=description)
        self.requires_approval = False

    def __repr__(self):
        return f"WorkerEntry({self.name!r})"


class AgentEntry(Entry):
    """An entry that is an agent."""

    def __init__(self, spec):
        if not isinstance(spec, AgentSpec):
            raise TypeError(f"AgentEntry needs an AgentSpec, not a {type(spec).__name__}")
        self.spec = spec
        self.name = spec.name
        self.input_model = spec.input_model


def _check_input_model(what, input_model):
    """Refuses an input model that is no class with a prompt."""
    if input_model is None:
        return
    if not isinstance(input_model, type) or not callable(getattr(input_model, "prompt_messages", None)):
        raise TypeError(f"the input model of {what} must be a subclass of AgentArgs, not {input_model!r}")


__all__ = [
    "AgentEntry",
    "AgentSpec",
    "Entry",
    "EntrySpec",
    "EventCallback",
    "FunctionEntry",
    "MessageLogCallback",
    "ModelType",
    "ToolDef",
    "ToolEntry",
    "ToolsetDef",
    "ToolsetSpec",
    "WorkerEntry",
    "WorkerSpec",
]
