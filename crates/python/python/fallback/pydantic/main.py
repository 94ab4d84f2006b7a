"""Models: classes whose fields are checked against their hints."""

import abc
import sys

from llm_do_host import hints, shapes
from llm_do_host.coerce import Fault, Mismatch

from . import config, writing
from .errors import PydanticUserError, ValidationError, raised_by_code
from .fields import UNDEFINED, ComputedField, FieldInfo, ModelPrivateAttr
from .functional_serializers import Serializer
from .functional_validators import ValidationInfo, Validator, called, handler_of, takes, through


class ModelType(abc.ABCMeta):
    """Makes model classes: takes their fields, checks and settings out of the class body."""

    def __new__(mcs, name, bases, namespace, **settings):
        settings = dict(
            old_settings(namespace.pop("Config", None)), **dict(namespace.get("model_config", {}), **settings)
        )
        namespace["model_config"] = config.merged(bases, settings)
        cls = super().__new__(mcs, name, bases, namespace)
        cls.llm_do_names = names_around(sys._getframe(1))
        cls.llm_do_shapes = {}
        cls.model_fields = inherited(bases, "model_fields")
        cls.llm_do_private = inherited(bases, "llm_do_private")
        cls.llm_do_validators = dict(inherited(bases, "llm_do_validators"), **of_kind(namespace, Validator))
        cls.llm_do_serializers = dict(
            inherited(bases, "llm_do_serializers"), **of_kind(namespace, Serializer)
        )
        cls.model_computed_fields = dict(
            inherited(bases, "model_computed_fields"), **of_kind(namespace, ComputedField)
        )
        take_fields(cls)
        return cls

    def __init__(cls, name, bases, namespace, **settings):
        super().__init__(name, bases, namespace)
        cls.__pydantic_init_subclass__(**settings)


def old_settings(old):
    """Returns the settings of an inner `class Config`, as older code has it."""
    return {key: value for key, value in vars(old).items() if not key.startswith("_")} if old else {}


def names_around(frame):
    """Returns the names of the function that a class is made in: its hints may mention them."""
    return {} if frame.f_code.co_name == "<module>" else dict(frame.f_locals)


def inherited(bases, attribute):
    """Merges a dict of the bases; the first base wins."""
    merged = {}
    for base in reversed(bases):
        merged.update(getattr(base, attribute, {}))
    return merged


def of_kind(namespace, kind):
    """Returns what a class body defines of one kind."""
    return {name: item for name, item in namespace.items() if isinstance(item, kind)}


def take_fields(cls):
    """Takes fields and private attributes out of the annotations of a class."""
    own = vars(cls)
    for name, hint in hints.own_annotations(cls).items():
        if is_class_variable(hint) or name == "model_config":
            continue
        default = own.get(name, UNDEFINED)
        if name.startswith("_"):
            private = default if isinstance(default, ModelPrivateAttr) else ModelPrivateAttr(default)
            cls.llm_do_private[name] = private
        else:
            cls.model_fields[name] = field_of(hint, default)
        if default is not UNDEFINED:
            delattr(cls, name)
    for name, item in list(own.items()):
        if isinstance(item, ModelPrivateAttr):
            cls.llm_do_private[name] = item
            delattr(cls, name)
        elif isinstance(item, FieldInfo):
            raise PydanticUserError("Field %r of %s requires a type annotation" % (name, cls.__name__))


def is_class_variable(hint):
    """Tells whether a hint is `ClassVar[...]`, written out or not."""
    if isinstance(hint, str):
        return hint.partition("[")[0].rpartition(".")[2] == "ClassVar"
    import typing

    return hint is typing.ClassVar or typing.get_origin(hint) is typing.ClassVar


def field_of(hint, default):
    """Makes the field of an annotation and what is assigned to it."""
    field = default.copied() if isinstance(default, FieldInfo) else FieldInfo(default)
    field.annotation = hint
    return field


class ModelShape(shapes.Object):
    """A model as a shape: fields, then what the class checks itself."""

    def __init__(self, cls):
        extra = cls.model_config.get("extra", "ignore")
        super().__init__(cls, None, hints.class_description(cls), extra)
        self.by_name = bool(
            cls.model_config.get("populate_by_name") or cls.model_config.get("validate_by_name")
        )
        checks = cls.llm_do_validators.values()
        self.before = [check for check in checks if not check.fields and check.mode == "before"]
        self.after = [check for check in checks if not check.fields and check.mode == "after"]
        self.around = [check for check in checks if not check.fields and check.mode == "wrap"]
        self.field_checks = {}
        for name in cls.model_fields:
            self.field_checks[name] = [check for check in checks if check.speaks_about(name)]

    def make(self, value):
        """Returns the instance itself, or a new one from a dict."""
        make = self.make_new
        for check in self.around:
            make = self.wrapped(check, make)
        return make(value)

    def wrapped(self, check, make):
        """Returns `make` with a check around it."""
        return lambda value: called(check.bound(self.cls), value, handler_of(make), info=ValidationInfo())

    def make_new(self, value):
        """Makes an instance from a dict."""
        if isinstance(value, self.cls):
            return value
        return self.fill(self.cls.__new__(self.cls), value)

    def fill(self, model, value):
        """Gives a new instance its fields and lets the class check them."""
        for check in reversed(self.before):
            value = called(check.bound(self.cls), value, info=ValidationInfo())
        if isinstance(value, self.cls):
            value = vars(value)
        if not shapes.is_mapping(value):
            raise self.refuse("model_type", value)
        set_fields(model, self.typed_fields(value))
        for check in self.after:
            model = self.checked(check, model)
        return model

    def checked(self, check, model):
        """Runs one check of the whole instance; returns the instance that it returns."""
        function = check.bound(model)
        try:
            checked = function(ValidationInfo()) if takes(function, 1) else function()
        except (ValueError, AssertionError) as problem:
            raise raised_by_code(problem, dict(vars(model))) from None
        return model if checked is None else checked

    def make_field(self, field, value, typed):
        """Makes the value of a field; the checks of the class stand around its shape."""
        make = field.shape.make
        info = ValidationInfo(typed, field.name, self.cls.model_config)
        for check in self.field_checks.get(field.name, ()):
            make = checked_make(check.bound(self.cls), check.mode, make, info)
        return make(value)

    def key_in(self, value, field):
        """Returns the key under which a field is given: its alias, or its name where that is allowed."""
        if field.key in value:
            return field.key
        return field.name if self.by_name and field.name in value else None


def checked_make(function, mode, make, info):
    """Returns `make` with one check of a field."""
    return lambda value: through(function, mode, value, make, info)


def set_fields(model, typed):
    """Sets fields, defaults and private attributes of a new instance; what is left is extra."""
    cls = type(model)
    given = set(typed)
    values = {
        name: typed.pop(name) if name in given else field.get_default()
        for name, field in cls.model_fields.items()
    }
    object.__setattr__(model, "__dict__", dict(values, **typed))
    private = {name: item.get_default() for name, item in cls.llm_do_private.items()}
    hidden = {name: value for name, value in private.items() if value is not UNDEFINED}
    set_hidden(model, given, dict(typed), hidden)
    model.model_post_init(None)


def set_hidden(model, given, extra, private):
    """Sets what an instance knows besides its fields."""
    object.__setattr__(model, "__pydantic_fields_set__", given)
    object.__setattr__(model, "__pydantic_extra__", extra)
    object.__setattr__(model, "__pydantic_private__", private)


class BaseModel(metaclass=ModelType):
    """The base of models: fields from annotations, checked when an instance is made."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )

    def __init__(self, /, **data):
        try:
            filled = shape_of_model(type(self)).fill(self, data)
        except Mismatch as problem:
            raise ValidationError(type(self).__name__, problem.faults) from None
        if filled is not self:
            object.__setattr__(self, "__dict__", vars(filled))

    @classmethod
    def __pydantic_init_subclass__(cls, **settings):
        """Is called for each subclass, once its fields are known."""

    def model_post_init(self, context, /):
        """Is called for each new instance, once its fields are set."""

    @classmethod
    def llm_do_shape(cls, builder, key):
        """Makes the shape of the class as part of another."""
        shape = builder.classes[key] = ModelShape(cls)
        for name, field in cls.model_fields.items():
            shape.fields.append(shape_field(builder, cls, name, field))
        return shape

    @classmethod
    def model_validate(cls, obj, *, strict=None, from_attributes=None, context=None, **options):
        """Makes an instance from a dict; an instance stays as it is."""
        if from_attributes or (from_attributes is None and cls.model_config.get("from_attributes")):
            obj = read_attributes(cls, obj)
        try:
            return shape_of_model(cls).make(obj)
        except Mismatch as problem:
            raise ValidationError(cls.__name__, problem.faults) from None

    @classmethod
    def model_validate_json(cls, json_data, **options):
        """Makes an instance from JSON text."""
        import json

        try:
            data = json.loads(json_data)
        except ValueError as problem:
            fault = Fault("json_invalid", "Invalid JSON: %s" % problem, json_data)
            raise ValidationError(cls.__name__, [fault]) from None
        return cls.model_validate(data)

    @classmethod
    def model_construct(cls, _fields_set=None, **values):
        """Makes an instance without checks."""
        model = cls.__new__(cls)
        set_fields(model, dict(values))
        return model

    @classmethod
    def model_json_schema(cls, by_alias=True, ref_template="#/$defs/{model}", **options):
        """Returns the JSON Schema of the class."""
        book = shapes.Book()
        return book.bound(shape_of_model(cls).schema(book))

    @classmethod
    def model_rebuild(cls, **options):
        """Looks the names of hints up again."""
        cls.llm_do_shapes.clear()

    @property
    def model_fields_set(self):
        """Returns the names of the fields that were given."""
        return self.__pydantic_fields_set__

    @property
    def model_extra(self):
        """Returns the values that are no fields, where the class allows them."""
        return self.__pydantic_extra__ if self.model_config.get("extra") == "allow" else None

    def model_dump(
        self,
        *,
        mode="python",
        include=None,
        exclude=None,
        by_alias=False,
        exclude_unset=False,
        exclude_defaults=False,
        exclude_none=False,
        **options,
    ):
        """Returns the fields as a dict; in the mode "json", as JSON has them."""
        settings = {
            "by_alias": by_alias,
            "exclude_unset": exclude_unset,
            "exclude_defaults": exclude_defaults,
            "exclude_none": exclude_none,
        }
        written = {}
        for name, value in all_values(self):
            if is_wanted(name, include, exclude) and is_written(self, name, value, settings):
                field = type(self).model_fields.get(name)
                key = field.serialization_alias if by_alias and field and field.serialization_alias else name
                written[key] = writing.plain(serialized(self, name, value, mode), mode, settings)
        return written

    def model_dump_json(self, *, indent=None, **settings):
        """Returns the fields as JSON text."""
        import json

        separators = (",", ":") if indent is None else None
        dumped = self.model_dump(mode="json", **settings)
        return json.dumps(dumped, indent=indent, separators=separators, ensure_ascii=False)

    def dict(self, **settings):
        """Returns the fields as a dict, in the older spelling."""
        return self.model_dump(**settings)

    def json(self, **settings):
        """Returns the fields as JSON text, in the older spelling."""
        return self.model_dump_json(**settings)

    @classmethod
    def parse_obj(cls, obj):
        """Makes an instance from a dict, in the older spelling."""
        return cls.model_validate(obj)

    def model_copy(self, *, update=None, deep=False):
        """Returns a copy, with some fields changed (unchecked)."""
        copy = self.__deepcopy__() if deep else self.__copy__()
        vars(copy).update(update or {})
        copy.__pydantic_fields_set__.update(update or {})
        return copy

    def __copy__(self):
        copy = type(self).__new__(type(self))
        object.__setattr__(copy, "__dict__", dict(vars(self)))
        set_hidden(
            copy,
            set(self.__pydantic_fields_set__),
            dict(self.__pydantic_extra__),
            dict(self.__pydantic_private__),
        )
        return copy

    def __deepcopy__(self, memo=None):
        import copy

        twin = self.__copy__()
        object.__setattr__(twin, "__dict__", copy.deepcopy(vars(self), memo))
        object.__setattr__(twin, "__pydantic_private__", copy.deepcopy(self.__pydantic_private__, memo))
        return twin

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        private = self.__pydantic_private__
        if name in private:
            return private[name]
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    def __setattr__(self, name, value):
        cls = type(self)
        if name in cls.llm_do_private:
            self.__pydantic_private__[name] = value
        elif name not in cls.model_fields and (
            isinstance(getattr(cls, name, None), property) or name.startswith("__")
        ):
            object.__setattr__(self, name, value)
        elif cls.model_config.get("frozen"):
            raise ValidationError(
                cls.__name__, [Fault("frozen_instance", "Instance is frozen", value, (name,))]
            )
        elif name not in cls.model_fields and cls.model_config.get("extra") != "allow":
            raise ValueError('"%s" object has no field "%s"' % (cls.__name__, name))
        else:
            vars(self)[name] = checked_assignment(cls, name, value)
            self.__pydantic_fields_set__.add(name)

    def __eq__(self, other):
        if not isinstance(other, BaseModel):
            return NotImplemented
        return (
            type(self) is type(other)
            and vars(self) == vars(other)
            and self.__pydantic_private__ == other.__pydantic_private__
        )

    def __hash__(self):
        if not self.model_config.get("frozen"):
            raise TypeError("unhashable type: %r" % type(self).__name__)
        return hash((type(self),) + tuple(vars(self).values()))

    def __iter__(self):
        return iter(vars(self).items())

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join(shown(self)))

    def __str__(self):
        return " ".join(shown(self))


def shape_of_model(cls):
    """Returns the shape of a model, made when it is used first: by then all names are known."""
    shape = cls.llm_do_shapes.get(cls)
    if shape is None:
        try:
            shape = hints.Builder(hints.Scope()).shape(cls)
        except hints.HintProblem as problem:
            raise PydanticUserError(str(problem)) from None
        cls.llm_do_shapes[cls] = shape
    return shape


def all_values(model):
    """Returns all values of an instance: fields, extra values, computed fields."""
    return list(vars(model).items()) + [
        (name, getattr(model, name)) for name in type(model).model_computed_fields
    ]


def is_wanted(name, include, exclude):
    """Tells whether the caller wants a field to be written."""
    return (include is None or name in include) and not (exclude and name in exclude)


def is_written(model, name, value, settings):
    """Tells whether a field is written: it is not excluded, unset or plain where that counts."""
    field = type(model).model_fields.get(name)
    if settings["exclude_none"] and value is None:
        return False
    if field is None:
        return True
    if field.exclude or (settings["exclude_unset"] and name not in model.__pydantic_fields_set__):
        return False
    return not (settings["exclude_defaults"] and not field.is_required() and value == field.get_default())


def serialized(model, name, value, mode):
    """Returns the value of a field as the class itself writes it."""
    for serializer in type(model).llm_do_serializers.values():
        if name in serializer.fields or "*" in serializer.fields:
            return serializer.written(model, value, mode)
    return value


def shown(model):
    """Returns the fields of an instance as `name=value` texts."""
    fields = type(model).model_fields
    return ["%s=%r" % pair for pair in all_values(model) if pair[0] not in fields or fields[pair[0]].repr]


def shape_field(builder, cls, name, field):
    """Makes the field of a shape from the field of a model."""
    import typing

    hint = builder.class_hint(cls, name, field.annotation)
    inner = field_in_notes(hint)
    if inner is not None:
        adopt(field, inner)
    field.annotation = hint
    described = builder.field(cls, name, typing.Annotated[hint, field])
    default = shapes.MISSING if field.default is UNDEFINED else field.default
    required, description = field.is_required(), field.description or described.description
    alias = field.validation_alias if isinstance(field.validation_alias, str) else None
    return shapes.Field(name, described.shape, default, description, required, alias, field.extra_schema())


def field_in_notes(hint):
    """Returns the `Field(...)` inside of `Annotated[...]`, if there is one."""
    return next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, FieldInfo)), None)


def adopt(field, inner):
    """Takes over from a `Field(...)` in `Annotated` what the field does not say itself."""
    if field.is_required():
        field.default, field.default_factory = inner.default, inner.default_factory
    for name in (
        "description",
        "title",
        "examples",
        "alias",
        "validation_alias",
        "serialization_alias",
        "json_schema_extra",
    ):
        if getattr(field, name) is None:
            setattr(field, name, getattr(inner, name))


def checked_assignment(cls, name, value):
    """Checks a value that is assigned to a field, where the class asks for it."""
    if not cls.model_config.get("validate_assignment") or name not in cls.model_fields:
        return value
    shape = shape_of_model(cls)
    field = next(field for field in shape.fields if field.name == name)
    try:
        return shape.make_field(field, value, {})
    except Mismatch as problem:
        raise ValidationError(cls.__name__, [fault.inside(name) for fault in problem.faults]) from None


def read_attributes(cls, thing):
    """Reads the fields of a model from the attributes of another object."""
    if isinstance(thing, (dict, cls)):
        return thing
    return {name: getattr(thing, name) for name in cls.model_fields if hasattr(thing, name)}
