"""What can be called: functions, the tools of toolsets, and entries.

A target knows how to start itself for a call: in a thread where its function is synchronous, as a task otherwise.
It has no state of its own; what a toolset keeps between calls lives in its instance (see `instances`).
"""

from .coerce import ArgumentProblem, make
from .context import CallContext, run_context
from .output_schema import fitted
from .results import Failure, text_of
from .runtime_context import runtime_context


class FunctionTarget:
    """A plain function offered as a tool."""

    def __init__(self, function, signature, context_kind, needs=(), output=None):
        self.function = function
        self._signature = signature
        self._context_kind = context_kind
        self._needs = tuple(needs)
        self._output = output

    def start(self, call, args, _instance=None):
        """Runs the function with the arguments of a model."""
        if self._signature.is_async:
            call.run_as_task(lambda: self._run(call, args))
        else:
            call.run_in_thread(lambda: self._result(self._call(call, args)))

    async def _run(self, call, args):
        """Awaits the function."""
        return self._result(await self._call(call, args))

    def _result(self, value):
        """Returns the content of a result, as the output schema has it."""
        return fitted(unwrapped(value), self._output)

    def _call(self, call, args):
        """Calls the function with typed arguments and its context."""
        positional, named = self._signature.bind(args, self._context_value(call))
        return self.function(*positional, **named)

    def _context_value(self, call):
        """Returns what the context parameter is given."""
        kind = self._context_kind
        if kind is None and not self._needs:
            return None
        if kind == "run":
            return run_context(call, self._signature.name)
        if kind == "call":
            return CallContext(call)
        context = runtime_context(call)
        missing = [key for key in self._needs if key not in context]
        if missing:
            keys = ", ".join(missing)
            message = f"Tool '{self._signature.name}' error: Runtime context missing required keys: {keys}"
            raise Failure("context", message)
        return context


class ToolsetTarget:
    """One tool of a toolset that speaks pydantic_ai's AbstractToolset protocol."""

    def __init__(self, name, config, output=None):
        self._name = name
        self._config = config
        self._output = output

    def start(self, call, args, instance):
        """Runs the tool of an instance that is open."""
        call.run_as_task(lambda: self._run(call, args, instance), context_of(instance))

    def assess(self, call, args, instance):
        """Asks the toolset itself how dangerous a call is."""
        call.run_as_task(lambda: self._assess(call, args, instance), context_of(instance))

    async def _run(self, call, args, instance):
        """Validates the arguments as pydantic_ai does and calls the tool."""
        tool = self._tool_of(instance)
        context = run_context(call, self._name)
        typed = validated(tool, args)
        value = await awaited(instance.toolset.call_tool(self._name, typed, context, tool))
        return fitted(unwrapped(value), self._output)

    async def _assess(self, call, args, instance):
        """Returns the judgment as the protocol writes it."""
        tool, toolset = self._tool_of(instance), instance.toolset
        context = run_context(call, self._name)
        try:
            args = validated(tool, args)
        except ArgumentProblem:
            pass  # The call itself will say so.
        result = await awaited(toolset.needs_approval(self._name, args, context, self._config))
        approval, reason = judgment(result)
        describe = getattr(toolset, "get_approval_description", None)
        asks = approval == "ask" and callable(describe)
        description = await awaited(describe(self._name, args, context)) if asks else None
        return {"approval": approval, "description": description, "reason": reason}

    def _tool_of(self, instance):
        """Returns the tool object of an instance."""
        if instance is None:
            raise Failure("tool", f"the toolset of `{self._name}` has not been opened for this call")
        if instance.problem is not None:
            raise Failure("tool", f"the toolset of `{self._name}` has ended: {instance.problem}")
        tool = instance.tools.get(self._name)
        if tool is None:
            raise Failure("tool", f"the toolset does not offer `{self._name}` in this call")
        return tool


class EntryTarget:
    """A function that is the root of a run."""

    def __init__(self, function, input_class, parameters, is_async):
        self._function = function
        self._input_class = input_class
        self._parameters = parameters
        self._is_async = is_async

    def start(self, call, args, _instance=None):
        """Runs the entry with its typed input and its context."""
        if self._is_async:
            call.run_as_task(lambda: self._call(call, args))
        else:
            call.run_in_thread(lambda: self._call(call, args))

    def _call(self, call, args):
        """Calls the function with as many of input and context as it takes."""
        if self._parameters == 0:
            return self._function()
        typed = make(self._input_class, args)
        return self._function(*(typed, CallContext(call))[: self._parameters])


def context_of(instance):
    """Returns the context variables in which a toolset was entered."""
    return None if instance is None else instance.context


def validated(tool, args):
    """Returns the arguments as the tool's own validator types them."""
    validator = getattr(tool, "args_validator", None)
    if validator is None:
        return args
    try:
        return validator.validate_python(args)
    except ArgumentProblem:
        raise
    except Exception as problem:
        raise ArgumentProblem(text_of(problem)) from problem


def unwrapped(value):
    """Returns the content of LLMProc's ToolResult; any other value is returned as it is."""
    if type(value).__name__ != "ToolResult" or not hasattr(value, "is_error"):
        return value
    if getattr(value, "abort_execution", False):
        raise Failure("abort", text_of_content(value.content))
    if value.is_error:
        raise Failure("tool", text_of_content(value.content))
    return value.content


def text_of_content(content):
    """Returns the content of a ToolResult as text."""
    if isinstance(content, str):
        return content
    import json

    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def judgment(result):
    """Returns a toolset's word on a call: the approval it takes and the reason of a block."""
    if isinstance(result, bool):
        return ("ask" if result else "pre_approved"), None
    status = getattr(result, "status", None)
    status = getattr(status, "value", status)
    words = {"blocked": "blocked", "pre_approved": "pre_approved", "needs_approval": "ask"}
    if status not in words:
        raise TypeError(f"needs_approval returned {type(result).__name__}; expected an ApprovalResult")
    reason = getattr(result, "block_reason", None) or getattr(result, "reason", None)
    return words[status], reason


async def awaited(value):
    """Returns a value, after awaiting it where it can be awaited."""
    return await value if hasattr(type(value), "__await__") else value
