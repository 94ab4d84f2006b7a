"""What tools see of the call they run in.

`CallContext` is llm-do's own; `run_context` wraps it in pydantic_ai's RunContext (the real class where it is
installed). LLMProc's dictionary is in `runtime_context`.
"""

import os
from types import MappingProxyType

from .results import as_attachment, to_json
from .run_state import ActiveToolset, Registry, TraceEntry, Usage


MADE_BY_LLM_DO = (
    "llm-do makes the context of a call: run the project with `llm-do run PATH`, and call agents and tools with "
    "`await ctx.deps.call(name, input)` in a tool, or `await ctx.call(name, input)` in an entry function"
)


class CallContext:
    """The running call: what it is, and what it may ask of llm-do."""

    def __init__(self, call=None, **_options):
        if not hasattr(call, "ask_now"):
            raise TypeError(MADE_BY_LLM_DO)
        self._call = call

    def __repr__(self):
        return f"<CallContext {self.path}>"

    @classmethod
    def from_worker(cls, *_args, **_options):
        """Refuses: `Context.from_worker(..)` was the way to start a run from Python."""
        raise TypeError(MADE_BY_LLM_DO)

    from_entry = from_tool_entries = from_worker

    # What the call is.

    @property
    def run_id(self):
        """The id of the run."""
        return self._call.context.get("run", "")

    @property
    def key(self):
        """The stable key of this call within the run: the same after a resume."""
        return self._call.context.get("key", "")

    @property
    def path(self):
        """The chain of callers, such as `main > add`."""
        return self._call.context.get("path", "")

    @property
    def agent(self):
        """The name of the agent that called, or an empty text."""
        return self._call.context.get("agent") or ""

    @property
    def depth(self):
        """How many agents stand above, this call's own agent included."""
        return self._call.context.get("depth", 0)

    @property
    def model(self):
        """The model of the calling agent, or None."""
        return self._call.context.get("model")

    @property
    def project_root(self):
        """The directory of the project."""
        from pathlib import Path

        return Path(self._call.context.get("root") or os.curdir)

    @property
    def budget(self):
        """What was left when the call began: depth, tool_calls, tokens, cost in dollars. None where there is no limit."""
        left = {name: None for name in ("depth", "tool_calls", "tokens", "cost")}
        left.update(self._call.context.get("budget") or {})
        if left["cost"] is not None:
            left["cost"] /= 1e9
        return MappingProxyType(left)

    @property
    def prompt(self):
        """The text of the agent's input."""
        return self._call.context.get("input") or ""

    @property
    def values(self):
        """The context values of the project by name."""
        return dict(self._call.context.get("values") or {})

    @property
    def config(self):
        """The settings of this call."""
        return CallConfig(self)

    @property
    def frame(self):
        """Settings, prompt and messages of this call."""
        return CallFrame(self)

    # What the whole run did so far. Each attribute is read from llm-do when it is used.

    @property
    def usage(self):
        """What the whole run used so far: the name of each model and its `Usage`."""
        return {name: Usage(fields) for name, fields in self._call.ask_now("usage").items()}

    @property
    def trace(self):
        """The calls of the whole run so far, callers before the calls that they made."""
        return [TraceEntry(fields) for fields in self._call.ask_now("trace")]

    @property
    def registry(self):
        """What this code can call: a mapping of names to entries with `name`, `kind` and `description`."""
        return Registry(self._call.ask_now("registry"))

    def __getattr__(self, name):
        raise AttributeError(missing_attribute("ctx.deps", name, dir(type(self))))

    # What the call may ask.

    async def call(self, name, input=None, **arguments):
        """Calls a tool or an agent by name and returns its result."""
        fields = {"name": callee_name(name), "input": call_input(input, arguments), "agents_only": False}
        return await self._call.ask("call", **fields)

    async def call_agent(self, spec_or_name, input_data=None):
        """Calls an agent by name or spec and returns its answer."""
        fields = {"name": callee_name(spec_or_name), "input": call_input(input_data, {}), "agents_only": True}
        return await self._call.ask("call", **fields)

    def _ask_anywhere(self, what, **fields):
        """Asks from whatever runs: returns an awaitable in the event loop, and the answer itself in a thread."""
        if runs_in_loop(self._call):
            return self._call.ask(what, **fields)
        return self._call.ask_from_thread(what, **fields)

    def call_sync(self, name, input=None, **arguments):
        """Calls a tool or an agent from a synchronous function."""
        fields = {"name": callee_name(name), "input": call_input(input, arguments), "agents_only": False}
        return self._call.ask_from_thread("call", **fields)

    @property
    def tools(self):
        """Everything that can be called, as attributes: `await ctx.tools.read_file(path="a")`."""
        return Tools(self)

    async def approve(self, name, payload=None, reason=""):
        """Asks for permission; returns the payload that was allowed, raises where it is denied."""
        plain, _ = to_json({} if payload is None else payload)
        return await self._call.ask("approve", name=name, payload=plain, reason=reason)

    async def inspect(self):
        """Returns messages, usage, remaining budget, callables, trace and stderr of this call."""
        return await self._call.ask("inspect")

    def progress(self, text):
        """Shows how far the call is."""
        self._say("progress", text)

    def notice(self, text):
        """Tells the user something."""
        self._say("notice", text)

    def stderr(self, text):
        """Writes to the log of the call."""
        self._say("stderr", text)

    def _say(self, kind, text):
        """Sends one text of a kind."""
        self._call.check_running()
        self._call.calls.speaker.say(self._call.id, kind, str(text))


def runs_in_loop(call):
    """Returns whether an event loop runs in this thread, so that callers can await."""
    import asyncio

    return call.is_in_loop() or asyncio._get_running_loop() is not None


class Tools:
    """Callables as attributes."""

    def __init__(self, context):
        self._context = context

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        async def call(**arguments):
            return await self._context.call(name, **arguments)

        call.__name__ = name
        return call


class CallConfig:
    """The settings of a call, by the names of the original."""

    def __init__(self, context):
        self.depth = context.depth
        self.model = context.model
        self.invocation_name = context.agent
        self.project_root = context.project_root
        self.active_toolsets = active_toolsets(context._call)


class CallFrame:
    """Settings, prompt and messages of a call. The messages stay with llm-do: `inspect()` returns them."""

    def __init__(self, context):
        self.config = context.config
        self.prompt = context.prompt
        self.messages = []

    @property
    def depth(self):
        """How many agents are above the call, its own agent included."""
        return self.config.depth

    @property
    def model(self):
        """The model of the calling agent, or None."""
        return self.config.model

    @property
    def invocation_name(self):
        """The name of the calling agent."""
        return self.config.invocation_name

    @property
    def active_toolsets(self):
        """The toolsets of the calling agent, with the Python objects that are open for this call."""
        return self.config.active_toolsets

    def __getattr__(self, name):
        raise AttributeError(missing_attribute("ctx.deps.frame", name, [*vars(self), *dir(type(self))]))


def active_toolsets(call):
    """Returns the toolsets of the calling agent."""
    is_open = getattr(call, "open_toolset", lambda _name: None)
    return [ActiveToolset(name, is_open(name)) for name in call.context.get("toolsets") or ()]


def missing_attribute(what, name, known):
    """Returns the message for an attribute that does not exist."""
    if name.startswith("__"):
        return name
    from llm_do._missing import explain

    return explain(f"`{what}` has no attribute `{name}`", name, [other for other in known if other[:1] != "_"])


class NoCall:
    """Stands for a call while the project is loaded, when nothing can be called yet."""

    id = None
    context = {}

    def __init__(self, root=""):
        self.context = {"root": root}

    def check_running(self):
        """Refuses."""
        raise RuntimeError("nothing can be called while the project is loaded: call it from inside a tool")

    async def ask(self, what, **_fields):
        """Refuses."""
        self.check_running()

    def ask_from_thread(self, what, **_fields):
        """Refuses."""
        self.check_running()

    def ask_now(self, what, **_fields):
        """Returns that nothing was used, called and logged yet; refuses other questions."""
        if what not in ("usage", "trace", "stderr"):
            self.check_running()
        return {} if what == "usage" else []

    def is_in_loop(self):
        """Nothing blocks where nothing is asked."""
        return False


def callee_name(spec_or_name):
    """Returns the name of what is to be called."""
    if isinstance(spec_or_name, str):
        return spec_or_name
    name = getattr(spec_or_name, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"expected the name of an agent or its AgentSpec, not {type(spec_or_name).__name__}")
    if id(spec_or_name) not in AGENTS_OF_PROJECT:
        raise LookupError(
            f"the AgentSpec {name!r} is not one of the project's agents: define it at the top level of a file in"
            " `python_files`, where it can be checked before anything runs"
        )
    return name


# The AgentSpecs that the project's files define, by identity: one made later may have the name of another.
AGENTS_OF_PROJECT = {}


def call_input(value, arguments):
    """Returns the input of a call as JSON: text, a list of parts, or an object."""
    if arguments:
        if value is not None:
            raise TypeError("give either one input or named arguments, not both")
        value = arguments
    if as_attachment(value, 1) is not None:
        value = [value]
    if isinstance(value, (list, tuple)):
        return [input_part(part) for part in value]
    plain, attachments = to_json(value)
    return with_attachments(plain, attachments) if attachments else plain


def with_attachments(fields, attachments):
    """Returns an object with the attachments that were found in it where llm-do looks for them."""
    named = [attachment.get("path", attachment) for attachment in attachments]
    return {**fields, "attachments": [*(fields.get("attachments") or []), *named]}


def input_part(part):
    """Returns one part of an input: text or an attachment."""
    if isinstance(part, str):
        return {"text": part}
    plain, attachments = to_json([part])
    return {"attachment": attachments[0]} if attachments else plain[0]


# pydantic_ai's RunContext.


def run_context(call, tool_name=None):
    """Returns a RunContext whose `deps` is the CallContext of a call."""
    from pydantic_ai.tools import RunContext

    context = CallContext(call)
    wanted = {
        "deps": context,
        "model": context.model,
        "usage": _no_usage(),
        "prompt": context.prompt,
        "messages": [],
        "tool_name": tool_name,
        "tool_call_id": context.key or None,
        "run_id": context.run_id or None,
    }
    known = getattr(RunContext, "__dataclass_fields__", wanted)
    return RunContext(**{name: value for name, value in wanted.items() if name in known})


def _no_usage():
    """Returns an empty usage: what was used is known to llm-do alone, see `CallContext.inspect`."""
    try:
        from pydantic_ai import usage
    except ImportError:
        return None
    kind = getattr(usage, "RunUsage", None) or getattr(usage, "Usage", None)
    return kind() if kind else None
