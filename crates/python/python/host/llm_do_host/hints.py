"""Turns type hints into shapes, and finds what the names in written-out hints mean.

A hint may be a string (`from __future__ import annotations`, forward references): a `Scope` knows
where its names are looked up. Where the project uses the real pydantic, pydantic's own rules
decide (see `shape_of_parameter`); everything else is decided here. Modules that cost time to
import are imported only where a hint needs them.
"""

import collections
import collections.abc
import enum
import sys
import types
import typing

from . import docstrings, formats, limits, shapes

SCALARS = {
    str: shapes.STRING,
    int: shapes.INTEGER,
    float: shapes.NUMBER,
    bool: shapes.BOOLEAN,
    type(None): shapes.NULL,
    None: shapes.NULL,
    typing.Any: shapes.ANY,
    object: shapes.ANY,
}
COLLECTIONS = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Iterator: list,
    set: set,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
}
MAPPINGS = {
    dict: dict,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
}
QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final")


class HintProblem(TypeError):
    """A type hint that has no JSON form, or that names something unknown."""


def shape_of(hint, scope=None):
    """Returns the shape of a hint, by the real pydantic where the project uses it."""
    scope = scope or Scope()
    resolved = scope.resolve(hint)
    pydantic = real_pydantic()
    if pydantic is not None:
        shape = pydantic_shape(pydantic, resolved)
        if shape is not None:
            return shape
    return Builder(scope).shape(resolved)


def real_pydantic():
    """Returns the pydantic that the project has imported, unless it is our fallback."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or getattr(pydantic, "LLM_DO_FALLBACK", False):
        return None
    return pydantic if hasattr(pydantic, "TypeAdapter") else None


def pydantic_shape(pydantic, hint):
    """Returns the shape that pydantic gives a hint, or None where it has none."""
    if is_model(hint):
        return shapes.Model(hint)
    try:
        adapter = pydantic.TypeAdapter(hint)
        adapter.json_schema()
    except Exception:  # a hint that only we understand, or nobody
        return None
    plain = SCALARS.get(hint) if isinstance(hint, typing.Hashable) else None
    return shapes.Adapter(adapter, plain.expected if plain else None)


def is_model(hint):
    """Tells whether a hint is a model class of the real pydantic."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and not hasattr(hint, "llm_do_shape")


class Scope:
    """Where the names of a hint are looked up: as the function or class itself would."""

    def __init__(self, global_names=None, local_names=None):
        self.global_names = global_names if global_names is not None else {}
        self.local_names = local_names or {}

    @classmethod
    def of_function(cls, function):
        """Returns the scope of a function: its module, its closure and its type parameters."""
        names = {item.__name__: item for item in getattr(function, "__type_params__", ())}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                pass
        return cls(function.__globals__, names)

    def of_class(self, cls):
        """Returns the scope of a class that is met in this one."""
        module = sys.modules.get(cls.__module__)
        names = dict(self.local_names)
        names.update(getattr(cls, "llm_do_names", {}))
        names.update((item.__name__, item) for item in getattr(cls, "__type_params__", ()))
        names.update((name, item) for name, item in vars(cls).items() if isinstance(item, type))
        names[cls.__name__] = cls
        return Scope(vars(module) if module else {}, names)

    def resolve(self, hint):
        """Returns a hint without strings in it; a name that is not known is a problem."""
        names = dict(self.local_names)
        while True:
            try:
                return evaluated(hint, self.global_names, names)
            except NameError as problem:
                name = getattr(problem, "name", None)
                found = self.find_in_callers(name)
                if found is shapes.MISSING or name in names:
                    raise HintProblem(
                        "the type hint %s names %r, which is not known" % (hint_text(hint), name)
                    ) from None
                names[name] = found
            except HintProblem:
                raise
            except Exception as problem:
                raise HintProblem(
                    "the type hint %s cannot be read: %s" % (hint_text(hint), problem)
                ) from None

    def find_in_callers(self, name):
        """Looks a name up in the functions that run just now: hints of local classes need it."""
        module = self.global_names.get("__name__")
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_globals.get("__name__") == module and name in frame.f_locals:
                return frame.f_locals[name]
            frame = frame.f_back
        return shapes.MISSING


def evaluated(hint, global_names, local_names):
    """Evaluates the strings anywhere in a hint."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        return hint

    def holder():
        """Carries the hint, because `get_type_hints` asks for something annotated."""

    holder.__annotations__ = {"hint": marked(hint) if sys.version_info < (3, 11) else hint}
    return typing.get_type_hints(holder, global_names, local_names, include_extras=True)["hint"]


def marked(hint):
    """Marks the strings inside `list["Node"]` as references, which Python 3.10 does not do itself."""
    if not isinstance(hint, types.GenericAlias):
        return hint
    parts = [typing.ForwardRef(part) if isinstance(part, str) else marked(part) for part in hint.__args__]
    return types.GenericAlias(hint.__origin__, tuple(parts))


def hint_text(hint):
    """Writes a hint as the project would."""
    if isinstance(hint, str):
        return hint
    if isinstance(hint, typing.ForwardRef):
        return hint.__forward_arg__
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else repr(hint)


def own_annotations(thing):
    """Returns the annotations that a function or class has itself, not those of its bases."""
    if sys.version_info < (3, 14):
        return (
            vars(thing).get("__annotations__", {})
            if isinstance(thing, type)
            else getattr(thing, "__annotations__", {})
        )
    import annotationlib

    return annotationlib.get_annotations(thing, format=annotationlib.Format.FORWARDREF)


class Builder:
    """Builds the shapes of one hint; each class in it gets one shape, so that circles close."""

    def __init__(self, scope):
        self.scope = scope
        self.classes = {}
        self.aliases = {}
        self.variables = {}

    def shape(self, hint):
        """Returns the shape of a hint without strings."""
        if isinstance(hint, typing.Hashable) and hint in SCALARS:
            return SCALARS[hint]
        if isinstance(hint, (str, typing.ForwardRef)):
            return self.forward(hint)
        origin = typing.get_origin(hint)
        if origin is not None:
            return self.generic(hint, origin, typing.get_args(hint))
        if isinstance(hint, typing.TypeVar):
            return self.variable(hint)
        if hasattr(hint, "__supertype__"):  # NewType
            return self.shape(self.scope.resolve(hint.__supertype__))
        if type(hint).__name__ == "TypeAliasType":
            return self.alias(hint, hint.__name__, lambda: hint.__value__)
        if isinstance(hint, type):
            return self.class_shape(hint)
        raise unsupported(hint)

    def forward(self, hint):
        """Returns the shape of a name that refers to itself."""
        text = hint_text(hint)
        if text in self.aliases:
            return self.aliases[text]
        resolved = self.scope.resolve(hint)
        if isinstance(resolved, type):
            return self.shape(resolved)
        return self.alias(text, text, lambda: resolved)

    def alias(self, key, name, target):
        """Returns the shape of an alias, which may stand for something that contains it."""
        if key not in self.aliases:
            later = self.aliases[key] = shapes.Later(name)
            later.target = self.shape(target())
        return self.aliases[key]

    def variable(self, variable):
        """Returns the shape of a type variable: what it stands for here, or what bounds it."""
        if variable in self.variables:
            return self.variables[variable]
        if variable.__constraints__:
            return self.union(variable.__constraints__)
        bound = variable.__bound__
        return shapes.ANY if bound is None else self.shape(self.scope.resolve(bound))

    def generic(self, hint, origin, arguments):
        """Returns the shape of a hint with arguments: `list[int]`, `int | None`, `Literal["a"]`."""
        form = getattr(origin, "_name", None)
        if form == "Annotated" or origin is typing.Annotated:
            return self.annotated(arguments[0], arguments[1:])
        if origin is typing.Union or origin is types.UnionType:
            return self.union(arguments)
        if form == "Literal":
            return literal(arguments)
        if form in QUALIFIERS:
            return self.shape(arguments[0])
        if type(origin).__name__ == "TypeAliasType":
            return self.with_variables(origin, arguments, lambda: self.shape(origin.__value__))
        if isinstance(origin, type):
            return self.generic_class(hint, origin, arguments)
        raise unsupported(hint)

    def generic_class(self, hint, origin, arguments):
        """Returns the shape of a class with arguments."""
        if origin is tuple:
            return self.tuple_shape(arguments)
        if origin in COLLECTIONS:
            return shapes.Many(COLLECTIONS[origin], self.shape(arguments[0]) if arguments else shapes.ANY)
        if origin in MAPPINGS:
            key, item = arguments if len(arguments) == 2 else (typing.Any, typing.Any)
            return shapes.Table(MAPPINGS[origin], self.shape(key), self.shape(item))
        return self.with_variables(origin, arguments, lambda: self.class_shape(origin, hint))

    def with_variables(self, origin, arguments, build):
        """Builds a shape while the type variables of a generic class or alias have a meaning."""
        parameters = getattr(origin, "__parameters__", None) or getattr(origin, "__type_params__", ())
        before = self.variables
        self.variables = dict(before)
        for variable, argument in zip(parameters, arguments):
            self.variables[variable] = self.shape(argument)
        try:
            return build()
        finally:
            self.variables = before

    def union(self, members):
        """Returns the shape of a union; a union of one is that one."""
        made = shapes.unique(self.shape(member) for member in members)
        return made[0] if len(made) == 1 else shapes.Union(made)

    def tuple_shape(self, arguments):
        """Returns the shape of a tuple: of any length (`tuple[int, ...]`) or of a fixed one."""
        if not arguments:
            return shapes.Many(tuple, shapes.ANY)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return shapes.Many(tuple, self.shape(arguments[0]))
        return shapes.Row(tuple, [self.shape(argument) for argument in arguments if argument != ()])

    def annotated(self, hint, notes):
        """Returns the shape of `Annotated[...]`: its limits are checked, its description is kept."""
        shape = limits.limited(self.shape(hint), limits_of_notes(notes))
        for note in notes:
            if hasattr(note, "llm_do_around"):  # a validator of the fallback
                shape = note.llm_do_around(shape)
        description = description_of_notes(notes)
        return shapes.Described(shape, description) if description else shape

    def class_shape(self, cls, hint=None):
        """Returns the shape of a class."""
        if cls in COLLECTIONS or cls in MAPPINGS or cls is tuple:
            return self.generic_class(cls, cls, ())
        key = cls if hint is None else hint
        if key not in self.classes:
            self.classes[key] = None
            self.classes[key] = self.new_class_shape(cls, key)
        return self.classes[key]

    def new_class_shape(self, cls, key):
        """Makes the shape of a class that is met for the first time."""
        if hasattr(cls, "llm_do_shape"):
            return cls.llm_do_shape(self, key)
        if isinstance(cls, enum.EnumMeta):
            return enum_shape(cls)
        if is_model(cls):
            return shapes.Model(cls)
        if hasattr(cls, "__dataclass_fields__"):
            return self.dataclass_shape(cls, key)
        if hasattr(cls, "__required_keys__") and hasattr(cls, "__total__"):
            return self.typed_dict_shape(cls, key)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self.named_tuple_shape(cls, key)
        known = formats.text_shape(cls)
        if known is None:
            raise unsupported(cls)
        return known

    def dataclass_shape(self, cls, key):
        """Makes the shape of a dataclass; its defaults are filled in by the class itself."""
        import dataclasses

        shape = self.classes[key] = shapes.Object(
            cls, lambda fields: built(cls, fields), class_description(cls)
        )
        for field in dataclasses.fields(cls):
            if not field.init:
                continue
            default = shapes.MISSING if field.default is dataclasses.MISSING else field.default
            required = default is shapes.MISSING and field.default_factory is dataclasses.MISSING
            described = field.metadata.get("description")
            shape.fields.append(self.field(cls, field.name, field.type, default, required, described))
        return shape

    def typed_dict_shape(self, cls, key):
        """Makes the shape of a TypedDict."""
        shape = self.classes[key] = shapes.TypedDictionary(cls, dict, class_description(cls))
        for name, hint in all_annotations(cls).items():
            resolved = self.class_hint(cls, name, hint)
            required = is_required(resolved, name in cls.__required_keys__)
            shape.fields.append(self.field(cls, name, resolved, shapes.MISSING, required))
        return shape

    def named_tuple_shape(self, cls, key):
        """Makes the shape of a NamedTuple, or of a plain namedtuple, whose items may be anything."""
        row = self.classes[key] = shapes.Row(cls, names=cls._fields, defaults=cls._field_defaults)
        hints = own_annotations(cls)
        row.items.extend(self.field(cls, name, hints.get(name, typing.Any)).shape for name in cls._fields)
        return row

    def field(self, cls, name, hint, default=shapes.MISSING, required=True, description=None):
        """Makes one field of a class; the description of `Annotated` becomes the field's."""
        shape = self.in_class(cls, self.class_hint(cls, name, hint))
        if isinstance(shape, shapes.Described):
            description, shape = description or shape.description, shape.inner
        return shapes.Field(name, shape, default, description, required)

    def class_hint(self, cls, name, hint):
        """Resolves the hint of a field in the scope of the class that wrote it."""
        owner = next((base for base in cls.__mro__ if name in own_annotations(base)), cls)
        try:
            return self.scope.of_class(owner).resolve(hint)
        except HintProblem as problem:
            raise HintProblem("field '%s' of %s: %s" % (name, cls.__name__, problem)) from None

    def in_class(self, cls, hint):
        """Builds the shape of a field's hint, in the scope of its class."""
        before, self.scope = self.scope, self.scope.of_class(cls)
        try:
            return self.shape(hint)
        finally:
            self.scope = before


def unsupported(hint):
    """Makes the problem of a hint that has no JSON form."""
    return HintProblem(
        "the type %s has no JSON form (use str, int, float, bool, list, dict, Literal, Enum, a dataclass, "
        "a TypedDict or a pydantic model)" % hint_text(hint)
    )


def literal(options):
    """Returns the shape of `Literal[...]`; members of an Enum are given by their values."""
    pairs = []
    for option in options:
        pairs.append((option.value if isinstance(option, enum.Enum) else option, option))
    return shapes.Choice(pairs)


def enum_shape(cls):
    """Returns the shape of an Enum: by value, or by name where a value has no JSON form."""
    plain = all(
        type(member.value) in shapes.JSON_TYPES or isinstance(member.value, (str, int)) for member in cls
    )
    pairs = [(plain_value(member.value) if plain else member.name, member) for member in cls]
    if not pairs:
        raise HintProblem("the enum %s has no members" % cls.__name__)
    return shapes.Choice(pairs, "enum", cls, class_description(cls))


def plain_value(value):
    """Returns a value of an Enum without a subclass around it."""
    for cls in (bool, str, int, float):
        if isinstance(value, cls):
            return cls(value)
    return value


def limits_of_notes(notes):
    """Returns all limits that the objects in `Annotated` carry."""
    found = {}
    for note in notes:
        for part in parts_of_note(note):
            if not isinstance(part, (str, slice)):
                found.update(limits.limits_of(part))
    return found


def parts_of_note(note):
    """Returns the notes that one stands for: `annotated_types` has groups, pydantic has `Field`."""
    if hasattr(note, "__is_annotated_types_grouped_metadata__"):
        return list(note)
    kept = getattr(note, "metadata", None)
    return kept if isinstance(kept, list) else [note]


def description_of_notes(notes):
    """Returns the description among the objects in `Annotated`: a text, or what has one."""
    for note in notes:
        text = note if isinstance(note, str) else getattr(note, "description", None) or documentation(note)
        if isinstance(text, str) and text:
            return text
    return None


def documentation(note):
    """Returns the text of `Doc("...")` (PEP 727)."""
    return getattr(note, "documentation", None) if type(note).__name__ == "Doc" else None


def is_required(hint, required):
    """Tells whether a key of a TypedDict is required: its own mark decides, else the class."""
    while typing.get_origin(hint) is not None:
        form = getattr(typing.get_origin(hint), "_name", None)
        if form in ("Required", "NotRequired"):
            return form == "Required"
        if form not in QUALIFIERS and form != "Annotated" and typing.get_origin(hint) is not typing.Annotated:
            break
        hint = typing.get_args(hint)[0]
    return required


def all_annotations(cls):
    """Returns the annotations of a TypedDict, which has those of its bases as well."""
    found = {}
    for base in reversed(getattr(cls, "__orig_bases__", ())):
        if hasattr(base, "__required_keys__"):
            found.update(all_annotations(base))
    found.update(own_annotations(cls))
    return found


def class_description(cls):
    """Returns the description of a class: its own docstring, unless a decorator wrote it."""
    text = vars(cls).get("__doc__")
    if not isinstance(text, str) or text.startswith(cls.__name__ + "(") or text == "An enumeration.":
        return ""
    return docstrings.clean(text)


def built(cls, fields):
    """Calls a class with typed fields; what its own checks say becomes a mismatch."""
    from .coerce import mismatch

    try:
        return cls(**fields)
    except (ValueError, TypeError, AssertionError) as problem:
        raise mismatch("value_error", "Value error, %s" % problem, fields) from None
