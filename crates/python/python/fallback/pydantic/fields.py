"""The fields of models: `Field(...)`, private attributes and computed fields."""

from llm_do_host.limits import NAMES as LIMITS


class Undefined:
    """The default of a field that has none."""

    def __repr__(self):
        return "PydanticUndefined"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


PydanticUndefined = UNDEFINED = Undefined()


class FieldInfo:
    """What is known about a field: its default, its description, its limits, its other names."""

    def __init__(self, default=UNDEFINED, default_factory=None, **given):
        self.default = UNDEFINED if default is Ellipsis else default
        self.default_factory = default_factory
        self.annotation = None
        self.description = given.pop("description", None)
        self.title = given.pop("title", None)
        self.examples = given.pop("examples", None)
        self.exclude = given.pop("exclude", False)
        self.repr = given.pop("repr", True)
        self.json_schema_extra = given.pop("json_schema_extra", None)
        self.alias = given.pop("alias", None)
        self.validation_alias = given.pop("validation_alias", None) or self.alias
        self.serialization_alias = given.pop("serialization_alias", None) or self.alias
        for name in LIMITS:
            setattr(self, name, given.pop(name, None))
        self.other_settings = given
        if default_factory is not None and self.default is not UNDEFINED:
            raise TypeError("cannot specify both default and default_factory")

    def copied(self):
        """Returns the same field once more: classes may share a `Field(...)`."""
        twin = object.__new__(FieldInfo)
        vars(twin).update(vars(self))
        return twin

    def is_required(self):
        """Tells whether the field has no default."""
        return self.default is UNDEFINED and self.default_factory is None

    def get_default(self, *, call_default_factory=True, validated_data=None):
        """Returns the default, a fresh one for each model."""
        if self.default_factory is not None:
            return self.default_factory() if call_default_factory else None
        return fresh(self.default)

    def extra_schema(self):
        """Returns what else the schema of the field says."""
        found = {}
        if self.title:
            found["title"] = self.title
        if self.examples:
            found["examples"] = list(self.examples)
        if isinstance(self.json_schema_extra, dict):
            found.update(self.json_schema_extra)
        return found

    def __repr__(self):
        if self.is_required():
            return "FieldInfo(annotation=%r, required=True)" % (self.annotation,)
        return "FieldInfo(annotation=%r, required=False, default=%r)" % (self.annotation, self.default)


def fresh(value):
    """Copies a default that could be changed."""
    if value is None or isinstance(value, (str, int, float, bool, bytes)):
        return value
    if type(value) in (list, dict, set) and not value:
        return type(value)()
    import copy

    return copy.deepcopy(value)


def Field(default=UNDEFINED, *, default_factory=None, **settings):
    """Describes a field (or a parameter): default, description, limits, alias."""
    return FieldInfo(default, default_factory, **settings)


class ModelPrivateAttr:
    """An attribute that is no field; its name begins with an underscore."""

    def __init__(self, default=UNDEFINED, default_factory=None):
        self.default = default
        self.default_factory = default_factory

    def get_default(self):
        """Returns the value that a new instance has."""
        return self.default_factory() if self.default_factory is not None else fresh(self.default)


def PrivateAttr(default=UNDEFINED, *, default_factory=None, init=False):
    """Describes a private attribute."""
    return ModelPrivateAttr(default, default_factory)


class ComputedField(property):
    """A property that is written with the fields."""


def computed_field(func=None, /, **settings):
    """Makes a property part of what a model writes."""

    def decorate(function):
        getter = function.fget if isinstance(function, property) else function
        return ComputedField(getter, getattr(function, "fset", None), None, getter.__doc__)

    return decorate if func is None else decorate(func)
