"""Limits on values: at least, at most, how long, which pattern, as `Field` and `Annotated` give them."""

from . import shapes
from .coerce import mismatch

NUMERIC = {
    "ge": ("minimum", "greater_than_equal", "greater than or equal to", lambda value, limit: value >= limit),
    "gt": ("exclusiveMinimum", "greater_than", "greater than", lambda value, limit: value > limit),
    "le": ("maximum", "less_than_equal", "less than or equal to", lambda value, limit: value <= limit),
    "lt": ("exclusiveMaximum", "less_than", "less than", lambda value, limit: value < limit),
    "multiple_of": ("multipleOf", "multiple_of", "a multiple of", lambda value, limit: value % limit == 0),
}
LENGTHS = {"min_length": "min", "max_length": "max"}
LENGTH_WORDS = {"string": "Length", "array": "Items", "object": "Properties"}
NAMES = tuple(NUMERIC) + tuple(LENGTHS) + ("pattern",)


def limits_of(note):
    """Returns the limits that an object in `Annotated` (or a `Field`) carries."""
    found = {}
    for name in NAMES:
        limit = getattr(note, name, None)
        if limit is not None and not callable(limit):
            found[name] = limit
    return found


def limited(shape, limits):
    """Returns a shape that also checks the limits; in a union, its members do."""
    if not limits:
        return shape
    if isinstance(shape, shapes.Union):
        return shapes.Union(
            [limited(member, limits) if applies(member, limits) else member for member in shape.members]
        )
    return Limited(shape, limits)


def applies(shape, limits):
    """Tells whether a member of a union is one that such limits speak about."""
    if isinstance(shape, shapes.Union):
        return True
    if any(name in NUMERIC for name in limits):
        return shape.kind in ("integer", "number") or isinstance(shape, shapes.Text)
    return shape.kind in LENGTH_WORDS


class Limited(shapes.Wrapping):
    """A shape with limits."""

    def __init__(self, inner, limits):
        super().__init__(inner)
        self.limits = limits

    def schema(self, book):
        schema = dict(self.inner.schema(book))
        for name, limit in self.limits.items():
            schema[self.keyword(name)] = pattern_text(limit) if name == "pattern" else limit
        return schema

    def keyword(self, name):
        """Returns the keyword of JSON Schema for a limit."""
        if name in NUMERIC:
            return NUMERIC[name][0]
        return LENGTHS[name] + LENGTH_WORDS.get(self.kind, "Length") if name in LENGTHS else name

    def make(self, value):
        return self.checked(self.inner.make(value))

    def make_key(self, text):
        return self.checked(self.inner.make_key(text))

    def checked(self, value):
        """Returns the value if it keeps all limits."""
        for name, limit in self.limits.items():
            try:
                check(name, limit, value)
            except TypeError:
                raise mismatch(
                    "value_error", "Value error, %s cannot be checked for this value" % name, value
                ) from None
        return value


def check(name, limit, value):
    """Raises a mismatch if the value breaks one limit."""
    if name in NUMERIC:
        _, error, words, holds = NUMERIC[name]
        if not holds(value, limit):
            raise mismatch(error, "Input should be %s %s" % (words, limit), value)
    elif name == "pattern":
        check_pattern(limit, value)
    else:
        check_length(name, limit, value)


def check_pattern(pattern, value):
    """Raises a mismatch unless the pattern is found in the text."""
    import re

    if not re.search(pattern, value):
        message = "String should match pattern '%s'" % pattern_text(pattern)
        raise mismatch("string_pattern_mismatch", message, value)


def pattern_text(pattern):
    """Returns the text of a pattern, compiled or not."""
    return getattr(pattern, "pattern", pattern)


def check_length(name, limit, value):
    """Raises a mismatch if a text or collection is too short or too long."""
    least = name == "min_length"
    if len(value) >= limit if least else len(value) <= limit:
        return
    bound = "at least" if least else "at most"
    error = "too_short" if least else "too_long"
    if isinstance(value, str):
        plural = "" if limit == 1 else "s"
        raise mismatch(
            "string_" + error, "String should have %s %d character%s" % (bound, limit, plural), value
        )
    plural = "" if limit == 1 else "s"
    words = (type(value).__name__.capitalize(), bound, limit, plural, len(value))
    raise mismatch(error, "%s should have %s %d item%s after validation, not %d" % words, value)
