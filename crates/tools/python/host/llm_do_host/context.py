"""What tools see of the call they run in.

`CallContext` is llm-do's own; `run_context` wraps it in pydantic_ai's RunContext (the real class where it is
installed), and `runtime_context` is LLMProc's dictionary.
"""

import os
from types import MappingProxyType

from .results import as_attachment, to_json


class CallContext:
    """The running call: what it is, and what it may ask of llm-do."""

    def __init__(self, call):
        self._call = call

    def __repr__(self):
        return f"<CallContext {self.path}>"

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
        if self._call.is_in_loop():
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
        self.active_toolsets = []


class CallFrame:
    """Settings, prompt and messages of a call. The messages stay with llm-do: `inspect()` returns them."""

    def __init__(self, context):
        self.config = context.config
        self.prompt = context.prompt
        self.messages = []


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


# LLMProc's runtime context.


def runtime_context(call):
    """Returns LLMProc's dictionary for a call: the values of the project and what the process offers."""
    context = CallContext(call)
    stderr = StderrLog(context)
    # A project may have values of its own under the names of the first two.
    offered = {"budget": context.budget, "project_root": context.project_root, **context.values}
    offered.update(process=Process(context, stderr), stderr=stderr)
    if call.context.get("descriptors"):
        offered["fd_manager"] = FileDescriptors(context)
    programs = call.context.get("programs")
    if programs:
        offered["linked_programs"] = {entry["name"]: Program(context, entry) for entry in programs}
        offered["linked_program_descriptions"] = {entry["name"]: entry["description"] for entry in programs}
    return offered


class FileDescriptors:
    """The calling agent's file descriptors, by the names of LLMProc's manager.

    In an async function the methods are awaited; in a synchronous one, which runs in a thread, they return at once.
    """

    def __init__(self, context):
        self._context = context

    def read(self, fd, mode="page", start=1, count=1):
        """Returns a part of a text; everything counts from 1. The mode is page, line, char or all."""
        return self._context._ask_anywhere("fd_read", name=fd, input={"mode": mode, "start": start, "count": count})

    def create(self, content):
        """Puts a text behind a descriptor and returns its name."""
        return self._context._ask_anywhere("fd_create", name="", input=str(content))

    def read_fd_content(self, fd_id, read_all=False, mode="page", start=1, count=1):
        """Returns a part of a text, or all of it."""
        return self.read(fd_id, "all" if read_all else mode, start, count)

    create_fd_content = create


class Program:
    """An agent that is linked to the calling one."""

    def __init__(self, context, entry):
        self._context = context
        self._agent = entry["agent"]
        self.name = entry["name"]
        self.description = entry["description"]

    def run(self, prompt):
        """Starts the program with a prompt and returns its answer."""
        fields = {"name": self._agent, "input": call_input(prompt, {}), "agents_only": True}
        return self._context._ask_anywhere("call", **fields)


class StderrLog(list):
    """LLMProc's stderr log: what is appended is also shown."""

    def __init__(self, context):
        super().__init__()
        self._context = context

    def append(self, text):
        """Adds a line."""
        super().append(text)
        self._context.stderr(text)


class Process:
    """The calling agent, by the names of LLMProc's process."""

    def __init__(self, context, stderr):
        self._context = context
        self.stderr_log = stderr
        self.model_name = context.model
        self.access_level = context._call.context.get("access") or "write"

    async def call_tool(self, name, arguments=None, **named):
        """Calls a tool by name."""
        return await self._context.call(name, **{**(arguments or {}), **named})

    async def run(self, user_input):
        """Calls the agent again with another input and returns its answer."""
        return await self._context.call_agent(self._context.agent, user_input)

    def get_stderr_log(self):
        """Returns what was logged so far."""
        return list(self.stderr_log)
