"""LLMProc's runtime context: the dictionary that tools with `requires_context` are given."""

from .context import CallContext, call_input, missing_attribute, runs_in_loop
from .results import Failure


def runtime_context(call):
    """Returns LLMProc's dictionary for a call: the values of the project and what the process offers."""
    context = CallContext(call)
    stderr = StderrLog(context)
    # A project may have values of its own under the names of these two.
    offered = RuntimeContext(budget=context.budget, project_root=context.project_root)
    offered.update(context.values)
    has_descriptors = bool(call.context.get("descriptors"))
    offered.update(stderr=stderr, file_descriptor_enabled=has_descriptors, tool_id=context.key)
    if has_descriptors:
        offered["fd_manager"] = FileDescriptors(context)
    programs = call.context.get("programs")
    if programs:
        offered["linked_programs"] = {entry["name"]: Program(context, entry) for entry in programs}
        offered["linked_program_descriptions"] = {entry["name"]: entry["description"] for entry in programs}
    offered["process"] = Process(context, offered)
    return offered


class RuntimeContext(dict):
    """The dictionary. `fd_manager` is None for an agent without file descriptors, as in LLMProc."""

    def __missing__(self, key):
        if key == "fd_manager":
            return None
        known = ", ".join(sorted(map(str, self)))
        raise KeyError(f"the runtime context has no `{key}`; it has {known}; `context` of the manifest adds values")


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

    def read_fd_content(self, fd_id, read_all=False, extract_to_new_fd=False, mode="page", start=1, count=1):
        """Returns a part of a text, or all of it; with `extract_to_new_fd`, the descriptor that the part was put behind."""
        text = self.read(fd_id, "all" if read_all else mode, start, count)
        if not extract_to_new_fd:
            return text
        return self._created_from(text) if hasattr(text, "__await__") else self.create(text)

    async def _created_from(self, text):
        """Puts an awaited text behind a descriptor."""
        return await self.create(await text)

    def write_fd_to_file_content(self, fd_id, file_path, mode="write", create=True, exist_ok=True):
        """Writes a text to a file with the tool `fd_to_file`, which the agent must list."""
        arguments = {"fd": fd_id, "path": file_path, "mode": mode, "create": create, "exist_ok": exist_ok}
        return self._context._ask_anywhere("call", name="fd_to_file", input=arguments, agents_only=False)

    def create_fd_content(self, content, page_size=None, source="tool_result"):
        """Puts a text behind a descriptor and returns its name; llm-do sets size of pages and source itself."""
        return self.create(content)

    def __getattr__(self, name):
        raise AttributeError(missing_attribute("fd_manager", name, dir(type(self))))


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

    async def start(self, access_level=None):
        """Returns a process of the program. llm-do starts the agent when the process runs, with the access it may have."""
        return ProgramProcess(self)

    def start_sync(self, access_level=None):
        """Returns a process of the program in a synchronous function."""
        return ProgramProcess(self)


class ProgramProcess:
    """A process of a linked program: each `run` is a call of its agent with an empty conversation."""

    def __init__(self, program):
        self._program = program
        self._last = ""

    def run(self, user_input, max_iterations=None):
        """Calls the agent and returns its answer; in an async function it is awaited."""
        answer = self._program.run(user_input)
        if hasattr(answer, "__await__"):
            return self._remembered(answer)
        self._last = answer
        return answer

    async def _remembered(self, answer):
        """Awaits an answer and keeps it."""
        self._last = await answer
        return self._last

    def get_last_message(self):
        """Returns the last answer."""
        return self._last


class StderrLog(list):
    """The error log of the process, read from llm-do each time: lines of the agent call and of everything below it.

    It is a list for `isinstance`, but holds nothing itself. Lines can be added and not removed.
    """

    def __init__(self, context):
        super().__init__()
        self._context = context

    def lines(self):
        """Returns the lines that were written so far."""
        return list(self._context._call.ask_now("stderr"))

    def append(self, text):
        """Adds a line."""
        self._context.stderr(text)

    def extend(self, texts):
        """Adds several lines."""
        for text in texts:
            self.append(text)

    def __iadd__(self, texts):
        self.extend(texts)
        return self


def _reading(name):
    """Returns a method of `list` that works on the lines of the log."""

    def method(self, *args, **options):
        return getattr(self.lines(), name)(*args, **options)

    method.__name__ = name
    return method


def _refusing(name):
    """Returns a method that refuses to change lines which were written."""

    def method(self, *_args, **_options):
        raise TypeError("lines can be added to the error log, but not changed or removed")

    method.__name__ = name
    return method


_READING = """__len__ __getitem__ __iter__ __reversed__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__
    __mul__ __rmul__ __repr__ copy count index""".split()
_CHANGING = "__setitem__ __delitem__ __imul__ clear insert pop remove reverse sort".split()
for _name in _READING:
    setattr(StderrLog, _name, _reading(_name))
for _name in _CHANGING:
    setattr(StderrLog, _name, _refusing(_name))


class Process:
    """The calling agent, by the names of LLMProc's process.

    `call_tool` and `run` return awaitables in an async function, and their results in a synchronous one.
    """

    def __init__(self, context, offered):
        self._context = context
        self.stderr_log = offered["stderr"]
        self.model_name = context.model
        self.access_level = context._call.context.get("access") or "write"
        self.fd_manager = offered["fd_manager"]
        self.file_descriptor_enabled = offered["file_descriptor_enabled"]
        self.linked_programs = offered.get("linked_programs", {})
        self.linked_program_descriptions = offered.get("linked_program_descriptions", {})

    def call_tool(self, tool_name, args_dict=None, **named):
        """Calls a tool by name and returns its `ToolResult`; a tool that fails or may not run gives an error result."""
        fields = {"name": tool_name, "input": call_input({**(args_dict or {}), **named}, {}), "agents_only": False}
        if runs_in_loop(self._context._call):
            return self._awaited_result(fields)
        return tool_result(lambda: self._context._call.ask_from_thread("call", **fields))

    async def _awaited_result(self, fields):
        """Awaits a call and returns its `ToolResult`."""
        try:
            value = await self._context._call.ask("call", **fields)
        except Exception as problem:
            return error_result(problem)
        return tool_result(lambda: value)

    def run(self, user_input, max_iterations=None):
        """Calls the agent again with another input and returns its answer; llm-do limits its turns itself."""
        fields = {"name": self._context.agent, "input": call_input(user_input, {}), "agents_only": True}
        return self._context._ask_anywhere("call", **fields)

    def get_stderr_log(self):
        """Returns the lines that were written so far to the error log of the process."""
        return self.stderr_log.lines()

    def __getattr__(self, name):
        raise AttributeError(missing_attribute("process", name, [*vars(self), *dir(type(self))]))


def tool_result(call):
    """Makes a call and returns its `ToolResult`."""
    from llmproc.common.results import ToolResult

    try:
        return ToolResult.from_success(call())
    except Exception as problem:
        return error_result(problem)


def error_result(problem):
    """Returns the error result for a call that failed or was denied; raises mistakes of the code that calls."""
    from llm_do.errors import ApprovalError, CallError
    from llmproc.common.results import ToolResult

    if not isinstance(problem, (ApprovalError, CallError, Failure)):
        raise problem
    return ToolResult.from_error(str(problem))
