"""The output schema of a function: what its return annotation says about its result as JSON.

A parameter and a result of one class differ in JSON: a result has all fields, under their own names, and what `results`
makes of them. So the schema is read from the annotation itself, and only as far as it is certain: a part that is not
understood may be anything, and a function of whose result nothing is known has no schema.
"""

import enum
import functools
import os
import types
import typing

from . import hints
from .results import LARGEST, SMALLEST, Failure

ANYTHING = {}

# Results that are more than a JSON value: an error, or files beside the value.
NOT_JSON = {"Attachment", "BinaryContent", "BinaryImage", "ToolResult", "ToolReturn"}

# How deep classes are written out: a class that contains itself would never end.
DEPTH_LIMIT = 6

SCALARS = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
# Classes whose instances are written as text.
TEXTS = {
    "datetime.date",
    "datetime.datetime",
    "datetime.time",
    "decimal.Decimal",
    "fractions.Fraction",
    "uuid.UUID",
}
LISTS = {"list", "set", "frozenset", "deque", "Sequence", "MutableSequence", "Set", "MutableSet"}
MAPPINGS = {"dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict"}


class NoSchema(Exception):
    """The result is not a plain JSON value."""


def output_schema(function):
    """Returns the schema of a function's result, or None."""
    plain = annotated_function(function)
    if plain is None:
        return None
    hint = hints.own_annotations(plain).get("return")
    if hint is None:
        return None
    try:
        return Reader(hints.Scope.of_function(plain)).whole(hint)
    except Exception:
        # The annotation of a result was never checked before: one that cannot be read must not stop a project.
        return None


def annotated_function(function):
    """Returns the function whose return annotation counts, or None.

    A wrapper of the project has the annotations of what it wraps, but may return something else.
    """
    if isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.MethodType):
        function = function.__func__
    if isinstance(function, functools._lru_cache_wrapper):
        function = function.__wrapped__
    is_plain = isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__")
    return function if is_plain else None


def fitted(value, schema):
    """Returns a result as its schema has it: in Python a truth value is an integer."""
    if not isinstance(value, int) or schema is None or schema.get("type") not in ("integer", "number"):
        return value
    # Larger numbers are sent as text, which the annotation must allow.
    if not SMALLEST <= value <= LARGEST:
        raise Failure("output", "the result does not fit into 64 bits; annotate it with `int | str` to send it as text")
    return int(value)


class Reader:
    """Reads one annotation."""

    def __init__(self, scope):
        self._scope = scope
        self._depth = 0

    def whole(self, hint):
        """Returns the schema of the whole result; None if nothing is known of it."""
        schema = self.schema(hint)
        return None if schema in (ANYTHING, {"type": "null"}) else schema

    def schema(self, hint):
        """Returns the schema of a hint; `ANYTHING` for one that is not understood."""
        hint = self._scope.resolve(hint)
        if hint is None or hint is type(None):
            return {"type": "null"}
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._generic(origin, typing.get_args(hint))
        if hasattr(hint, "__supertype__"):
            return self.schema(hint.__supertype__)
        if type(hint).__name__ == "TypeAliasType":
            return self._deeper(lambda: self.schema(hint.__value__))
        return self._class(hint) if isinstance(hint, type) else ANYTHING

    def _deeper(self, read):
        """Reads what is inside a class or alias."""
        if self._depth >= DEPTH_LIMIT:
            return ANYTHING
        self._depth += 1
        try:
            return read()
        finally:
            self._depth -= 1

    def _generic(self, origin, arguments):
        """Returns the schema of a hint with arguments."""
        form = getattr(origin, "_name", None) or getattr(origin, "__name__", "")
        if origin is typing.Annotated or form in ("Annotated", "Required", "NotRequired", "ReadOnly", "Final"):
            return self._annotated(arguments)
        if origin is typing.Union or origin is types.UnionType:
            return self._union(arguments)
        if form == "Literal":
            return choice(arguments)
        if origin is tuple:
            return self._tuple(arguments)
        if form in LISTS:
            return with_key({"type": "array"}, "items", self.schema(arguments[0]))
        if form in MAPPINGS:
            return with_key({"type": "object"}, "additionalProperties", self.schema(arguments[1]))
        # A generic class of the project: which fields depend on its arguments is not known.
        return ANYTHING if not is_special(origin) else self._class(origin)

    def _annotated(self, arguments):
        """Returns the schema inside `Annotated`; a serializer among the notes may write anything."""
        inner = self.schema(arguments[0])
        return ANYTHING if has_serializer(arguments[1:]) else inner

    def _union(self, members):
        """Returns the schema of a union."""
        schemas = []
        for schema in map(self.schema, members):
            if schema not in schemas:
                schemas.append(schema)
        if ANYTHING in schemas:
            return ANYTHING
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _tuple(self, arguments):
        """Returns the schema of a tuple, which is a list in JSON."""
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return with_key({"type": "array"}, "items", self.schema(arguments[0]))
        items = [self.schema(argument) for argument in arguments if argument != ()]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def _class(self, cls):
        """Returns the schema of a class."""
        if is_special(cls):
            raise NoSchema(cls.__name__)
        if issubclass(cls, enum.Enum):
            return choice(list(cls))
        for base, name in SCALARS:
            if issubclass(cls, base):
                return {"type": name}
        if issubclass(cls, os.PathLike):
            return {"type": "string"}
        if any(f"{base.__module__.replace('_decimal', 'decimal')}.{base.__name__}" in TEXTS for base in cls.__mro__):
            return {"type": "string"}
        return self._deeper(lambda: self._container(cls))

    def _container(self, cls):
        """Returns the schema of a class that holds other values."""
        if typing.is_typeddict(cls):
            required = [name for name in cls.__required_keys__]
            return self._object(cls, hints.all_annotations(cls), sorted(required, key=list(cls.__annotations__).index))
        if hasattr(cls, "model_fields") and callable(getattr(cls, "model_dump", None)):
            return self._model(cls)
        if hasattr(cls, "__dataclass_fields__"):
            return self._dataclass(cls)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return {"type": "array"}
        if issubclass(cls, dict):
            return {"type": "object"}
        return {"type": "array"} if issubclass(cls, (list, tuple, set, frozenset)) else ANYTHING

    def _dataclass(self, cls):
        """Returns the schema of a dataclass; a dict in its place may leave out what has a default."""
        import dataclasses

        fields = dataclasses.fields(cls)
        missing = dataclasses.MISSING
        required = [f.name for f in fields if f.default is missing and f.default_factory is missing and f.init]
        return self._object(cls, {field.name: field.type for field in fields}, required)

    def _model(self, cls):
        """Returns the schema of a pydantic model, unless something decides how it is written."""
        if writes_itself(cls):
            return ANYTHING
        fields = {name: field for name, field in cls.model_fields.items() if not getattr(field, "exclude", False)}
        if list(fields) == ["root"] and any(base.__name__ == "RootModel" for base in cls.__mro__):
            return self._in_class(cls).schema(fields["root"].annotation)
        plain = {
            name: typing.Any if has_serializer(getattr(field, "metadata", ())) else field.annotation
            for name, field in fields.items()
        }
        required = [name for name, field in fields.items() if field.is_required() and not field.alias]
        return self._object(cls, plain, required)

    def _object(self, cls, annotations, required):
        """Returns the schema of an object with fields; others may be beside them."""
        inside = self._in_class(cls)
        properties = {name: inside.schema(hint) for name, hint in annotations.items()}
        schema = {"type": "object", "properties": properties}
        return {**schema, "required": required} if required else schema

    def _in_class(self, cls):
        """Returns a reader that looks names up as the class itself does."""
        reader = Reader(self._scope.of_class(cls))
        reader._depth = self._depth
        return reader


def is_special(cls):
    """Returns whether a class is one whose instances are more than a JSON value."""
    return any(base.__name__ in NOT_JSON for base in getattr(cls, "__mro__", ()))


def has_serializer(notes):
    """Returns whether an object among the notes of a field decides how it is written."""
    return any("Serialize" in type(note).__name__ or "Serialize" in getattr(note, "__name__", "") for note in notes)


def writes_itself(cls):
    """Returns whether a model decides itself how it is written."""
    decorators = getattr(cls, "__pydantic_decorators__", None)
    own = [getattr(decorators, name, None) for name in ("field_serializers", "model_serializers")]
    config = getattr(cls, "model_config", None) or {}
    changes = any(key.startswith(("ser_json", "serialize_by_alias")) or key == "json_encoders" for key in config)
    # A method of the project that replaces pydantic's own.
    replaced = "model_dump" in {name for base in cls.__mro__ if not is_pydantic(base) for name in vars(base)}
    return bool(any(own) or changes or replaced or getattr(cls, "llm_do_serializers", None))


def is_pydantic(cls):
    """Returns whether a class comes with pydantic, real or stand-in."""
    return cls.__module__.partition(".")[0] in ("pydantic", "builtins", "abc")


def choice(options):
    """Returns the schema of fixed values: of `Literal` or of an Enum, whose members are written as their values."""
    values = [option.value if isinstance(option, enum.Enum) else option for option in options]
    plain = all(value is None or type(value) in (str, bool, int, float) for value in values)
    return {"enum": values} if plain and values else ANYTHING


def with_key(schema, key, inner):
    """Returns a schema with another inside it, unless that allows anything."""
    return schema if inner == ANYTHING else {**schema, key: inner}
