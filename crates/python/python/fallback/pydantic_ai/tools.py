"""Tools as pydantic_ai has them: a function, its definition, and the context it is given."""

import typing

from llm_do_host import schema

from ._records import Fresh, record
from .exceptions import UserError

AgentDepsT = typing.TypeVar("AgentDepsT")
RunContextAgentDepsT = AgentDepsT


@record
class RunContext(typing.Generic[AgentDepsT]):
    """What a tool is told about the run that calls it; `deps` leads to the runtime."""

    deps: typing.Any
    model: typing.Any = None
    usage: typing.Any = None
    prompt: typing.Any = None
    messages: list = Fresh(list)
    tool_name: typing.Optional[str] = None
    tool_call_id: typing.Optional[str] = None
    retry: int = 0
    retries: dict = Fresh(dict)
    max_retries: int = 0
    run_step: int = 0
    run_id: typing.Optional[str] = None
    metadata: typing.Any = None
    tool_call_approved: bool = False
    partial_output: bool = False
    agent: typing.Any = None

    @property
    def last_attempt(self):
        """Tells whether the tool is not tried again if it fails."""
        return self.retry == self.max_retries


@record
class ToolDefinition:
    """A tool as the model sees it."""

    name: str
    parameters_json_schema: dict = Fresh(lambda: {"type": "object", "properties": {}})
    description: typing.Optional[str] = None
    outer_typed_dict_key: typing.Optional[str] = None
    strict: typing.Optional[bool] = None
    sequential: bool = False
    kind: str = "function"
    metadata: typing.Optional[dict] = None
    timeout: typing.Optional[float] = None
    toolset_id: typing.Optional[str] = None

    @property
    def defer(self):
        """Tells whether the tool is answered outside of the run."""
        return self.kind in ("external", "unapproved")


class ArgumentsValidator:
    """Turns the arguments of a model into typed ones, by parameter name."""

    def __init__(self, signature):
        self.signature = signature

    def validate_python(self, input, **options):
        """Validates a dict."""
        return self.signature.typed(input if input is not None else {})

    def validate_json(self, input, **options):
        """Validates the text of a JSON object."""
        import json

        return self.validate_python(json.loads(input or "{}"))


class FunctionSchema:
    """What is known about the function of a tool."""

    def __init__(self, function, signature):
        self.function = function
        self.signature = signature
        self.description = signature.description
        self.json_schema = signature.schema
        self.validator = ArgumentsValidator(signature)
        self.takes_ctx = signature.context is not None
        self.is_async = signature.is_async
        self.single_arg_name = signature.single

    async def call(self, args_dict, ctx):
        """Calls the function with validated arguments; a plain function runs in a thread."""
        from ._calls import call

        positional, keywords = self.signature.arrange(args_dict, ctx)
        return await call(self.function, self.is_async, positional, keywords)


class Tool(typing.Generic[AgentDepsT]):
    """A function that a model may call."""

    def __init__(
        self,
        function,
        *,
        takes_ctx=None,
        max_retries=None,
        name=None,
        description=None,
        prepare=None,
        docstring_format="auto",
        require_parameter_descriptions=False,
        schema_generator=None,
        strict=None,
        sequential=False,
        requires_approval=False,
        metadata=None,
        timeout=None,
        function_schema=None,
        args_validator=None,
        **later_options,
    ):
        self.function = function
        self.function_schema = function_schema or read_function(function, takes_ctx, name, description)
        self.takes_ctx = self.function_schema.takes_ctx
        self.max_retries = max_retries
        self.name = name or schema.name_of(function)
        self.description = description or self.function_schema.description
        self.prepare = prepare
        self.docstring_format = docstring_format
        self.require_parameter_descriptions = require_parameter_descriptions
        self.strict = strict
        self.sequential = sequential
        self.requires_approval = requires_approval
        self.metadata = metadata
        self.timeout = timeout
        self.args_validator = args_validator
        if require_parameter_descriptions:
            self.refuse_undescribed()

    def refuse_undescribed(self):
        """Refuses a function with a parameter that nothing describes."""
        for name, part in self.function_schema.json_schema.get("properties", {}).items():
            if not part.get("description"):
                raise UserError("Missing parameter descriptions for %s: %s" % (self.name, name))

    @property
    def tool_def(self):
        """Returns the definition that the model is shown."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            parameters_json_schema=self.function_schema.json_schema,
            strict=self.strict,
            sequential=self.sequential,
            kind="unapproved" if self.requires_approval else "function",
            metadata=self.metadata,
            timeout=self.timeout,
        )

    async def prepare_tool_def(self, ctx):
        """Returns the definition for one step of a run, or None where the tool is not offered."""
        if self.prepare is None:
            return self.tool_def
        prepared = self.prepare(ctx, self.tool_def)
        return await prepared if hasattr(prepared, "__await__") else prepared


def read_function(function, takes_ctx, name, description):
    """Reads the signature of a function; what is wrong with it is the project's error."""
    context = {"context": first_parameter(function) if takes_ctx else None} if takes_ctx is not None else {}
    try:
        signature = schema.signature(
            function, name=name, description=description, single_object=True, **context
        )
    except schema.SignatureProblem as problem:
        raise UserError("Error generating schema for %s: %s" % (schema.name_of(function), problem)) from None
    return FunctionSchema(function, signature)


def first_parameter(function):
    """Returns the name of the parameter that takes the context."""
    parameters = schema.parameters_of(function)
    if not parameters:
        raise schema.SignatureProblem("it takes a context, but has no parameters")
    return parameters[0].name


@record
class ToolApproved:
    """A person approved a tool call."""

    override_args: typing.Optional[dict] = None
    kind: str = "tool-approved"


@record
class ToolDenied:
    """A person denied a tool call."""

    message: str = "The tool call was denied."
    kind: str = "tool-denied"


@record
class DeferredToolRequests:
    """Tool calls that wait for an answer from outside."""

    calls: list = Fresh(list)
    approvals: list = Fresh(list)
    metadata: dict = Fresh(dict)


@record
class DeferredToolResults:
    """The answers to deferred tool calls."""

    calls: dict = Fresh(dict)
    approvals: dict = Fresh(dict)
    metadata: dict = Fresh(dict)


ToolFuncContext = typing.Callable[..., typing.Any]
ToolFuncPlain = typing.Callable[..., typing.Any]
ToolFuncEither = typing.Callable[..., typing.Any]
ToolPrepareFunc = typing.Callable[..., typing.Any]
ToolsPrepareFunc = typing.Callable[..., typing.Any]
ToolParams = typing.Any
ObjectJsonSchema = typing.Dict[str, typing.Any]
DocstringFormat = str
