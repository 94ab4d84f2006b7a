"""What a model must know about a function or class: its name, description and JSON Schema.

`signature` is made once, when a project is loaded; `Signature.bind` turns the arguments of each
call into typed Python values. This module does not call anything.
"""

import functools
import types

from . import docstrings, hints, shapes
from .coerce import ArgumentProblem, Fault, Mismatch, given, problem_text

POSITIONAL_ONLY, POSITIONAL, VAR_POSITIONAL, KEYWORD, VAR_KEYWORD = range(5)
VARARGS, VARKEYWORDS = 0x04, 0x08
COROUTINE = 0x80 | 0x100
CONTEXT_CLASSES = {"RunContext": ("pydantic_ai",), "CallContext": ("llm_do", "llm_do_host")}
RUNTIME_CONTEXT = "runtime_context"
FIND = object()


class SignatureProblem(TypeError):
    """A function that cannot be offered to a model, and why."""


class Parameter:
    """One parameter of a function, as Python sees it."""

    __slots__ = ("name", "kind", "default", "hint", "shape", "supplied")

    def __init__(self, name, kind, default=shapes.MISSING, hint=shapes.MISSING):
        self.name = name
        self.kind = kind
        self.default = default
        self.hint = hint
        self.shape = shapes.ANY
        self.supplied = None  # makes the default where Python would pass a `Field(...)`


class Signature:
    """A function as a model sees it.

    `schema` describes the visible parameters, `context` names the injected one (or is None).
    """

    def __init__(
        self, name, description, schema, context, is_async, parameters, single=None, open_shape=None
    ):
        self.name = name
        self.description = description
        self.schema = schema
        self.context = context
        self.is_async = is_async
        self.visible = [parameter for parameter in parameters if parameter.name != context]
        self.names = {parameter.name for parameter in self.visible}
        self.positional = [parameter for parameter in parameters if parameter.kind == POSITIONAL_ONLY]
        self.single = single  # the parameter whose fields are the arguments, if there is one
        self.open_shape = open_shape  # the shape of `**kwargs`, if there is one

    def bind(self, args, context_value=None):
        """Returns positional and keyword arguments, typed; raises `ArgumentProblem`."""
        return self.arrange(self.typed(args), context_value)

    def typed(self, args):
        """Returns the typed values of the arguments by parameter; raises `ArgumentProblem`."""
        if self.single is not None:
            args = self.wrapped(args)
        if not isinstance(args, dict):
            raise ArgumentProblem("the arguments should be an object, given %s" % given(args))
        values, faults = {}, []
        for parameter in self.visible:
            try:
                value = value_of(parameter, args)
            except Mismatch as problem:
                faults.extend(self.seen_from_outside(fault, parameter) for fault in problem.faults)
            else:
                if value is not shapes.MISSING:
                    values[parameter.name] = value
        if any(name not in self.names for name in args):
            self.take_others(args, values, faults)
        if faults:
            raise ArgumentProblem(problem_text(faults))
        return values

    def wrapped(self, args):
        """Puts the fields of the single parameter under its name; they may stand there already."""
        if (
            isinstance(args, dict)
            and list(args) == [self.single]
            and self.single not in self.schema.get("properties", {})
        ):
            return args
        return {self.single: args}

    def seen_from_outside(self, fault, parameter):
        """Names the parameter in a fault, unless its fields are the parameters."""
        return fault if self.single is not None else fault.inside(parameter.name)

    def take_others(self, args, values, faults):
        """Deals with arguments that are no parameters: `**kwargs` takes them."""
        for name in args:
            if name in self.names:
                continue
            if self.open_shape is None or name == self.context:
                faults.append(
                    Fault("extra_forbidden", "Unexpected argument", args[name], (name,), self.known())
                )
                continue
            try:
                values[name] = self.open_shape.make(args[name])
            except Mismatch as problem:
                faults.extend(fault.inside(name) for fault in problem.faults)

    def arrange(self, values, context_value=None):
        """Returns typed values as Python passes them: positional arguments and keywords."""
        keywords = dict(values)
        if self.context is not None:
            keywords[self.context] = context_value
        positional = [keywords.pop(parameter.name, parameter.default) for parameter in self.positional]
        return positional, keywords

    def known(self):
        """Says which parameters there are."""
        names = [parameter.name for parameter in self.visible]
        return "the parameters are %s" % ", ".join(names) if names else "there are no parameters"


def value_of(parameter, args):
    """Returns the typed value of one parameter, or `MISSING` where Python has its own default."""
    if parameter.name in args:
        return parameter.shape.make(args[parameter.name])
    if parameter.supplied is not None:
        return parameter.supplied()
    if parameter.default is shapes.MISSING:
        raise Mismatch([Fault("missing", "Field required", args, expected=parameter.shape.expected)])
    return shapes.MISSING


def signature(
    function,
    *,
    name=None,
    description=None,
    parameter_descriptions=None,
    hidden=(),
    context=FIND,
    single_object=False,
):
    """Returns the signature of a function; raises `SignatureProblem` where it can have none.

    `hidden` are parameters that the caller passes itself; `context` names the injected parameter
    (or is None) where its hint does not tell. With `single_object`, a function whose only parameter
    is a class with fields takes those fields as its arguments, as pydantic_ai has it.
    """
    plain = underlying(function)
    name = name or name_of(function)
    parameters = [parameter for parameter in parameters_of(function) if parameter.name not in hidden]
    scope = hints.Scope.of_function(plain) if isinstance(plain, types.FunctionType) else hints.Scope()
    context = context_of(name, parameters, scope) if context is FIND else context
    text, documented = docstrings.parse(documentation(function))
    descriptions = dict(documented, **(parameter_descriptions or {}))
    reader = Reader(name, scope, descriptions, parameter_descriptions or {})
    visible = [parameter for parameter in parameters if parameter.name != context]
    schema, single, open_shape = reader.read(visible, single_object)
    kept = [parameter for parameter in parameters if parameter.kind not in (VAR_POSITIONAL, VAR_KEYWORD)]
    description = text if description is None else description
    return Signature(name, description, schema, context, is_async(function), kept, single, open_shape)


def class_schema(cls):
    """Returns the JSON Schema of a class: pydantic model, AgentArgs, dataclass, TypedDict, Enum, ..."""
    try:
        shape = hints.shape_of(cls)
    except hints.HintProblem as problem:
        raise SignatureProblem(str(problem)) from None
    book = shapes.Book()
    return book.bound(shape.schema(book))


class Reader:
    """Reads the parameters of one function into its schema."""

    def __init__(self, name, scope, descriptions, explicit):
        self.name = name
        self.scope = scope
        self.descriptions = descriptions
        self.explicit = explicit
        self.book = shapes.Book()

    def read(self, parameters, single_object):
        """Returns the schema, the name of a single object parameter, and the shape of `**kwargs`."""
        fields, open_shape = [], None
        for parameter in parameters:
            if parameter.kind == VAR_POSITIONAL:
                raise SignatureProblem(
                    "%s() takes *%s, but a model passes arguments by name: give it a list parameter instead"
                    % (self.name, parameter.name)
                )
            field = self.field(parameter)
            if parameter.kind == VAR_KEYWORD:
                open_shape = parameter.shape
            else:
                fields.append(field)
        if single_object and len(fields) == 1 and open_shape is None and is_object(fields[0].shape):
            return self.single_schema(fields[0]), fields[0].name, None
        return self.whole_schema(fields, open_shape), None, open_shape

    def field(self, parameter):
        """Reads one parameter: its hint, its `Field(...)` default, its description."""
        hint, default = parameter.hint, parameter.default
        if is_field(default):
            default = self.take_field(parameter)
            hint = parameter.hint
        described = self.explicit.get(parameter.name)
        if hint is not shapes.MISSING:
            resolved = self.resolved(parameter, hint)
            described = described or noted_description(resolved)
            parameter.shape = self.shape(parameter, with_none(resolved) if default is None else resolved)
        if isinstance(parameter.shape, shapes.Described):
            parameter.shape = parameter.shape.inner
        description = described or self.descriptions.get(parameter.name)
        return shapes.Field(
            parameter.name, parameter.shape, default, description, parameter.default is shapes.MISSING
        )

    def take_field(self, parameter):
        """Unpacks a default of the form `Field(default=3, ge=1)`; returns the default for the schema."""
        import typing

        field = parameter.default
        hint = typing.Any if parameter.hint is shapes.MISSING else parameter.hint
        parameter.hint = typing.Annotated[hint, field]
        if field.is_required():
            parameter.default = shapes.MISSING
            return shapes.MISSING
        parameter.supplied = lambda: field.get_default(call_default_factory=True)
        return shapes.MISSING if field.default_factory else field.default

    def resolved(self, parameter, hint):
        """Returns the hint of a parameter without strings."""
        try:
            return self.scope.resolve(hint)
        except hints.HintProblem as problem:
            raise SignatureProblem(
                "parameter '%s' of %s(): %s" % (parameter.name, self.name, problem)
            ) from None

    def shape(self, parameter, hint):
        """Returns the shape of a parameter."""
        try:
            return hints.shape_of(hint, self.scope)
        except hints.HintProblem as problem:
            raise SignatureProblem(
                "parameter '%s' of %s(): %s" % (parameter.name, self.name, problem)
            ) from None

    def whole_schema(self, fields, open_shape):
        """Writes the schema of all parameters."""
        schema = {"type": "object", "properties": {field.name: field.schema(self.book) for field in fields}}
        required = [field.name for field in fields if field.required]
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False if open_shape is None else open_shape.schema(self.book) or True
        return self.book.bound(schema)

    def single_schema(self, field):
        """Writes the schema of the only parameter in place of the function's."""
        schema = self.book.bound(field.shape.schema(self.book))
        return dict(schema, description=field.description) if field.description else schema


def is_object(shape):
    """Tells whether a shape is a class with fields."""
    if isinstance(shape, (shapes.Object, shapes.Model)):
        return True
    if not isinstance(shape, shapes.Adapter):
        return False
    schema = shape.adapter.json_schema()
    return "properties" in schema or "$ref" in schema


def is_field(default):
    """Tells whether a default is pydantic's `Field(...)`, real or fallback."""
    return type(default).__name__ == "FieldInfo" and hasattr(default, "get_default")


def with_none(hint):
    """Returns a hint that lets None through: a default of None says that it is fine."""
    import typing

    inner = hint
    while typing.get_origin(inner) is typing.Annotated:
        inner = typing.get_args(inner)[0]
    if inner in (typing.Any, object, None) or type(None) in typing.get_args(inner):
        return hint
    return typing.Optional[hint]


def noted_description(hint):
    """Returns the description in `Annotated[...]` around a parameter, if there is one."""
    return hints.description_of_notes(getattr(hint, "__metadata__", ()))


def context_of(name, parameters, scope):
    """Returns the name of the injected parameter, or None."""
    found = [parameter.name for parameter in parameters if is_context(parameter, scope)]
    if len(found) > 1:
        raise SignatureProblem("%s() has more than one context parameter: %s" % (name, ", ".join(found)))
    return found[0] if found else None


def is_context(parameter, scope):
    """Tells whether a parameter is injected: by its hint, or by LLMProc's name for it."""
    if parameter.name == RUNTIME_CONTEXT:
        return True
    hint = parameter.hint
    if isinstance(hint, str):
        if "Context" not in hint:
            return False
        try:
            hint = scope.resolve(hint)
        except hints.HintProblem:  # imported for type checkers only
            return hint.strip("'\" ").partition("[")[0].rpartition(".")[2] in CONTEXT_CLASSES
    return is_context_class(hint)


def is_context_class(hint):
    """Tells whether a hint is a context class, with or without its argument."""
    import typing

    if isinstance(hint, typing.ForwardRef):
        return hint.__forward_arg__.partition("[")[0].rpartition(".")[2] in CONTEXT_CLASSES
    origin = typing.get_origin(hint)
    if origin is typing.Union or origin is types.UnionType:
        return any(is_context_class(member) for member in typing.get_args(hint))
    cls = origin if isinstance(origin, type) else hint
    if not isinstance(cls, type):
        return origin is typing.Annotated and is_context_class(typing.get_args(hint)[0])
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in CONTEXT_CLASSES.get(base.__name__, ()):
            return True
    return False


def underlying(function):
    """Returns the plain function whose parameters count: without wrappers, methods and partials."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, (types.FunctionType, type)) or not isinstance(
            getattr(function, "__call__", None), types.MethodType
        ):
            return function
        else:
            function = function.__call__


def name_of(function):
    """Returns the name of a function, or of the class of a callable object."""
    name = getattr(function, "__name__", None)
    if name is None and isinstance(function, functools.partial):
        return name_of(function.func)
    return name or type(function).__name__


def documentation(function):
    """Returns the docstring of a function, or of what a callable object or partial stands for."""
    if isinstance(function, functools.partial):
        return documentation(function.func)
    if isinstance(function, (types.FunctionType, types.MethodType, type)):
        return function.__doc__
    return (
        getattr(type(function).__call__, "__doc__", None)
        if is_callable_object(function)
        else function.__doc__
    )


def is_callable_object(function):
    """Tells whether something is an instance of a class with `__call__` written in Python."""
    return isinstance(getattr(type(function), "__call__", None), types.FunctionType)


def is_async(function):
    """Tells whether calling a function gives a coroutine."""
    while isinstance(function, (functools.partial, types.MethodType)):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    if is_callable_object(function):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    return bool(code and code.co_flags & COROUTINE) or hasattr(function, "_is_coroutine_mark")


def parameters_of(function):
    """Returns the parameters of any callable."""
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    while isinstance(plain, types.FunctionType) and "__signature__" not in vars(plain):
        if hasattr(plain, "__wrapped__"):
            plain = plain.__wrapped__
            continue
        skipped = 1 if isinstance(function, types.MethodType) else 0
        return function_parameters(plain)[skipped:]
    return inspected_parameters(function)


def function_parameters(function):
    """Reads the parameters of a plain function from its code, which is much faster than `inspect`."""
    code = function.__code__
    annotations = hints.own_annotations(function)
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    found = []
    for position, name in enumerate(names[:count]):
        kind = POSITIONAL_ONLY if position < code.co_posonlyargcount else POSITIONAL
        found.append(Parameter(name, kind))
    for parameter, default in zip(reversed(found), reversed(function.__defaults__ or ())):
        parameter.default = default
    position = count + keywords
    if code.co_flags & VARARGS:
        found.append(Parameter(names[position], VAR_POSITIONAL))
        position += 1
    for name in names[count : count + keywords]:
        found.append(Parameter(name, KEYWORD, (function.__kwdefaults__ or {}).get(name, shapes.MISSING)))
    if code.co_flags & VARKEYWORDS:
        found.append(Parameter(names[position], VAR_KEYWORD))
    for parameter in found:
        parameter.hint = annotations.get(parameter.name, shapes.MISSING)
    return found


def inspected_parameters(function):
    """Reads the parameters of an odd callable with the help of `inspect`."""
    import inspect

    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as problem:
        raise SignatureProblem(
            "%s: its parameters cannot be read (%s)" % (name_of(function), problem)
        ) from None
    found = []
    for parameter in known:
        default = shapes.MISSING if parameter.default is parameter.empty else parameter.default
        hint = shapes.MISSING if parameter.annotation is parameter.empty else parameter.annotation
        found.append(Parameter(parameter.name, int(parameter.kind), default, hint))
    return found
