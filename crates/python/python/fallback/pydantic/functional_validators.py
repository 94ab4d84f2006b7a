"""Checks that a project writes itself: for a field, for a whole model, or in `Annotated`."""

import typing

from llm_do_host.shapes import Wrapping

from .errors import raised_by_code

MODES = ("before", "after", "wrap", "plain")


class ValidationInfo:
    """What a check may know: the fields before it, and the name of its own."""

    def __init__(self, data=None, field_name=None, config=None, context=None):
        self.data = data if data is not None else {}
        self.field_name = field_name
        self.config = config
        self.context = context
        self.mode = "python"


class Validator:
    """A method of a model that checks some of its fields (or, without names, all of it)."""

    def __init__(self, function, fields, mode):
        self.function = function
        self.fields = fields
        self.mode = mode

    def __get__(self, instance, owner):
        return self.bound(instance if instance is not None else owner)

    def bound(self, subject):
        """Returns the method, bound to the class or instance that it is written for."""
        function = self.function
        if isinstance(function, staticmethod):
            return function.__func__
        if isinstance(function, classmethod):
            return function.__get__(None, subject if isinstance(subject, type) else type(subject))
        return function.__get__(subject)

    def speaks_about(self, name):
        """Tells whether the method checks a field."""
        return name in self.fields or "*" in self.fields


def field_validator(field, /, *fields, mode="after", check_fields=None, json_schema_input_type=None):
    """Marks a method that checks fields; what it returns becomes the value."""
    check_mode(mode, MODES)
    if callable(field) or isinstance(field, (classmethod, staticmethod)):
        raise TypeError("field_validator needs the names of fields: @field_validator('name')")

    def decorate(function):
        return Validator(as_class_method(function), (field,) + fields, mode)

    return decorate


def model_validator(*, mode):
    """Marks a method that checks a whole model: its raw values before, or the instance after."""
    check_mode(mode, MODES[:3])

    def decorate(function):
        return Validator(function if mode == "after" else as_class_method(function), (), mode)

    return decorate


def validator(*fields, pre=False, **settings):
    """Marks a method that checks fields, in the older spelling."""
    return field_validator(*fields, mode="before" if pre else "after")


def check_mode(mode, known):
    """Refuses a mode that does not exist."""
    if mode not in known:
        raise ValueError("mode must be one of %s, not %r" % (", ".join(known), mode))


def as_class_method(function):
    """Returns a function as a class method, as it is called."""
    return function if isinstance(function, (classmethod, staticmethod)) else classmethod(function)


def called(function, *values, info=None):
    """Calls a check with as many values as it takes; what it refuses becomes a mismatch."""
    try:
        if info is not None and takes(function, len(values) + 1):
            return function(*values, info)
        return function(*values)
    except (ValueError, AssertionError) as problem:
        raise raised_by_code(problem, values[0]) from None


def takes(function, count):
    """Tells whether a check has room for this many values."""
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return False
    bound = 1 if getattr(function, "__self__", None) is not None else 0
    return code.co_argcount - bound >= count


class Around:
    """A check in `Annotated[int, ...]`."""

    mode = "after"

    def __init__(self, func):
        self.func = func

    def llm_do_around(self, shape):
        """Returns a shape that checks the value as well."""
        return Checked(shape, self.func, self.mode)


class Checked(Wrapping):
    """A shape with a check of the project around it."""

    def __init__(self, inner, function, mode):
        super().__init__(inner)
        self.function = function
        self.mode = mode

    def exact(self, value):
        return False

    def make(self, value):
        """Makes the value and checks it, in the order that the mode says."""
        return through(self.function, self.mode, value, self.inner.make, ValidationInfo())


def through(function, mode, value, make, info):
    """Sends a value through one check, which stands before, after, around or instead of `make`."""
    if mode == "before":
        return make(called(function, value, info=info))
    if mode == "after":
        return called(function, make(value), info=info)
    if mode == "plain":
        return called(function, value, info=info)
    return called(function, value, handler_of(make), info=info)


def handler_of(make):
    """Returns what a wrapping check calls: it raises errors that the check can catch."""
    from llm_do_host.coerce import Mismatch

    from .errors import ValidationError

    def handler(value):
        try:
            return make(value)
        except Mismatch as problem:
            raise ValidationError("value", problem.faults) from None

    return handler


class BeforeValidator(Around):
    """Checks or changes the value before it is typed."""

    mode = "before"


class AfterValidator(Around):
    """Checks or changes the typed value."""


class WrapValidator(Around):
    """Checks the value around the typing."""

    mode = "wrap"


class PlainValidator(Around):
    """Checks the value in place of the typing."""

    mode = "plain"


ModelWrapValidatorHandler = typing.Callable[..., typing.Any]
ValidatorFunctionWrapHandler = typing.Callable[..., typing.Any]
