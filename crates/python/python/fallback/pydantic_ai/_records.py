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
    cls.__dataclass_fields__ = Fields(cls)
    cls.__dataclass_params__ = Parameters(cls)
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


class Fields(dict):
    """The fields of a record by name; `dataclasses` is asked for them when somebody reads one."""

    def __init__(self, cls):
        super().__init__((name, None) for name in cls.record_fields)
        self.cls = cls

    def __getitem__(self, name):
        return self.filled().get(name)

    def values(self):
        return self.filled().values()

    def items(self):
        return self.filled().items()

    def filled(self):
        """Puts the real fields in place, the first time; returns them all."""
        if None in super().values():
            self.update(twin(self.cls).__dataclass_fields__)
        return dict(zip(self, super().values()))


class Parameters:
    """The parameters that a dataclass was made with, made when somebody asks."""

    def __init__(self, cls):
        self.cls = cls

    def __get__(self, instance, owner):
        self.cls.__dataclass_params__ = twin(self.cls).__dataclass_params__
        return self.cls.__dataclass_params__


def twin(cls):
    """Makes the dataclass that a record looks like."""
    import dataclasses

    fields = [(name, object, dataclass_field(default)) for name, default in cls.record_fields.items()]
    return dataclasses.make_dataclass(cls.__name__, fields)


def dataclass_field(default):
    """Makes the field of `dataclasses` for a default."""
    import dataclasses

    if default is REQUIRED:
        return dataclasses.field()
    if isinstance(default, Fresh):
        return dataclasses.field(default_factory=default.factory)
    return dataclasses.field(default=default)
