"""Classes that behave as dataclasses without importing `dataclasses`, which costs start-up time.

`dataclasses.replace`, `dataclasses.fields` and subclasses that are dataclasses work all the same:
what they look for is made when somebody looks.
"""

from llm_do_host.hints import own_annotations

REQUIRED = object()


class Fresh:
    """A default that is made anew for each instance: `Fresh(list)`."""

    def __init__(self, factory):
        self.factory = factory


def record(cls):
    """Gives a class the constructor, equality and text of a dataclass with its annotated fields."""
    fields = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update(vars(base).get("record_fields", {}))
    for name in own_annotations(cls):
        default = vars(cls).get(name, REQUIRED)
        fields[name] = default
        if isinstance(default, Fresh):
            delattr(cls, name)
    cls.record_fields = fields
    cls.__init__ = initialize
    cls.__eq__ = equal
    cls.__repr__ = represent
    cls.__hash__ = None
    cls.__dataclass_fields__ = WhenAsked(cls, "__dataclass_fields__")
    cls.__dataclass_params__ = WhenAsked(cls, "__dataclass_params__")
    return cls


def initialize(self, *values, **named):
    """Sets the fields from positional and named values and from defaults."""
    fields = record_fields(self)
    if len(values) > len(fields):
        raise TypeError("%s() takes %d arguments, given %d" % (type(self).__name__, len(fields), len(values)))
    for name, value in zip(fields, values):
        if name in named:
            raise TypeError("%s() got %r twice" % (type(self).__name__, name))
        named[name] = value
    for name, default in fields.items():
        if name in named:
            value = named.pop(name)
        elif default is REQUIRED:
            raise TypeError("%s() is missing the argument %r" % (type(self).__name__, name))
        else:
            value = default.factory() if isinstance(default, Fresh) else default
        setattr(self, name, value)
    if named:
        raise TypeError("%s() got an unexpected argument %r" % (type(self).__name__, next(iter(named))))
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def record_fields(self):
    """Returns the fields of the class that made the constructor."""
    return type(self).record_fields


def equal(self, other):
    """Compares the fields of two instances of one class."""
    if type(self) is not type(other):
        return NotImplemented
    return all(getattr(self, name, None) == getattr(other, name, None) for name in record_fields(self))


def represent(self):
    """Writes an instance as the call that makes it."""
    parts = ["%s=%r" % (name, getattr(self, name, None)) for name in record_fields(self)]
    return "%s(%s)" % (type(self).__qualname__, ", ".join(parts))


def replace(instance, **changes):
    """Returns a copy of a record (or of a dataclass that extends one) with some fields changed."""
    copy = object.__new__(type(instance))
    vars(copy).update(vars(instance))
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


class WhenAsked:
    """What `dataclasses` looks for in a dataclass, made when it looks."""

    def __init__(self, cls, name):
        self.cls = cls
        self.name = name

    def __get__(self, instance, owner):
        import dataclasses

        fields = [(name, object, dataclass_field(default)) for name, default in self.cls.record_fields.items()]
        twin = dataclasses.make_dataclass(self.cls.__name__, fields)
        setattr(self.cls, self.name, getattr(twin, self.name))
        return getattr(twin, self.name)


def dataclass_field(default):
    """Makes the field of `dataclasses` for a default."""
    import dataclasses

    if default is REQUIRED:
        return dataclasses.field()
    if isinstance(default, Fresh):
        return dataclasses.field(default_factory=default.factory)
    return dataclasses.field(default=default)
