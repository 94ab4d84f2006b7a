"""Says what is wrong with a value, and turns a dict into an instance of a class.

The checks themselves live in the shapes (see `shapes`): a shape that does not accept a value raises
`Mismatch` with one `Fault` per place. This module puts such faults into words, for a model that
passed wrong arguments (`ArgumentProblem`) and for Python code that uses the fallback of pydantic.
"""

LONGEST_GIVEN = 120


class Fault:
    """One thing that is wrong with a value.

    `place` leads to it from the outside (names and indexes), `kind` and `message` are worded as
    pydantic words them, `expected` says what would have been right where `message` does not.
    """

    __slots__ = ("place", "kind", "message", "value", "expected")

    def __init__(self, kind, message, value, place=(), expected=None):
        self.kind = kind
        self.message = message
        self.value = value
        self.place = place
        self.expected = expected

    def inside(self, key):
        """Returns the same fault as seen from a container that holds the value under `key`."""
        return Fault(self.kind, self.message, self.value, (key,) + self.place, self.expected)

    def as_dict(self):
        """Returns the entry that pydantic's `errors()` would have for this fault."""
        return {"type": self.kind, "loc": self.place, "msg": self.message, "input": self.value}


class Mismatch(Exception):
    """A value is not of the shape that was asked for; holds every fault that was found."""

    def __init__(self, faults):
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


class ArgumentProblem(ValueError):
    """Arguments that do not fit a function or class, in words a model can act on."""


def mismatch(kind, message, value, expected=None):
    """Makes the mismatch of a single fault."""
    return Mismatch([Fault(kind, message, value, expected=expected)])


def make(cls, args):
    """Validates a dict into an instance of `cls`: a pydantic model, dataclass, TypedDict, ..."""
    from . import hints

    try:
        return hints.shape_of(cls).make(args)
    except Mismatch as problem:
        raise ArgumentProblem(problem_text(problem.faults, "field")) from None


def describe(problem, noun="parameter"):
    """Puts what a validator raised into words: our own problem, or pydantic's ValidationError."""
    if isinstance(problem, ArgumentProblem) or not hasattr(problem, "errors"):
        return str(problem)
    faults = [
        Fault(each["type"], each["msg"], each.get("input"), tuple(each["loc"])) for each in problem.errors()
    ]
    return problem_text(faults, noun)


def problem_text(faults, noun="parameter"):
    """Puts all faults into one line: what each place is, what it was given and what it expects."""
    return "; ".join(fault_text(fault, noun) for fault in faults)


def fault_text(fault, noun):
    """Puts one fault into words."""
    name = "%s '%s'" % (noun, place_text(fault.place)) if fault.place else "the value"
    if fault.kind == "missing":
        return "%s is missing%s" % (name, ": it should be %s" % fault.expected if fault.expected else "")
    if fault.kind == "extra_forbidden":
        return "%s is not known%s" % (name, ": %s" % fault.expected if fault.expected else "")
    message = fault.message
    if message.startswith("Input should"):
        return "%s%s, given %s" % (name, message[len("Input") :], given(fault.value))
    return "%s: %s, given %s" % (name, message, given(fault.value))


def place_text(place):
    """Writes a place as Python would: `points[0].x`."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += "[%d]" % step
        else:
            text += ".%s" % step if text else str(step)
    return text


def given(value):
    """Says what a value is, with its JSON type, shortened: `the string "5"`."""
    kind = JSON_NAMES.get(type(value))
    if kind is None:
        return "a value of type %s" % type(value).__name__
    if kind == "null":
        return kind
    return "the %s %s" % (kind, shortened(written(value)))


JSON_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "list",
    dict: "object",
}


def written(value):
    """Writes a value as JSON, or as Python where it is none."""
    import json

    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def shortened(text):
    """Cuts a text that is too long to be quoted."""
    return text if len(text) <= LONGEST_GIVEN else text[: LONGEST_GIVEN - 3] + "..."
