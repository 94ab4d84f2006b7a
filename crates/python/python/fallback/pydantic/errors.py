"""What validation and wrong use raise."""

from llm_do_host.coerce import Fault, Mismatch, shortened


class ValidationError(ValueError):
    """Values that do not fit a model: which, where and why."""

    def __init__(self, title, faults):
        self.title = title
        self.faults = list(faults)
        super().__init__(self.text())

    @classmethod
    def from_exception_data(cls, title, line_errors, **options):
        """Makes an error from entries such as `errors()` returns."""
        entries = [
            Fault(
                each["type"],
                each.get("msg", str(each["type"])),
                each.get("input"),
                tuple(each.get("loc", ())),
            )
            for each in line_errors
        ]
        return cls(title, entries)

    def errors(self, **options):
        """Returns one dict per fault: type, loc, msg, input."""
        return [fault.as_dict() for fault in self.faults]

    def error_count(self):
        """Counts the faults."""
        return len(self.faults)

    def json(self, *, indent=None, **options):
        """Returns the faults as JSON text."""
        import json

        return json.dumps(self.errors(), indent=indent, default=repr)

    def text(self):
        """Writes all faults, one below the other."""
        count = len(self.faults)
        lines = ["%d validation error%s for %s" % (count, "" if count == 1 else "s", self.title)]
        for fault in self.faults:
            if fault.place:
                lines.append(".".join(str(step) for step in fault.place))
            value = (fault.kind, shortened(repr(fault.value)), type(fault.value).__name__)
            lines.append("  %s [type=%s, input_value=%s, input_type=%s]" % ((fault.message,) + value))
        return "\n".join(lines)


class PydanticUserError(TypeError):
    """A model that is written in a way that cannot work."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.message = message
        self.code = code


class PydanticSchemaGenerationError(PydanticUserError):
    """A type that has no JSON form."""


def raised_by_code(problem, value):
    """Turns what a validator raised into a mismatch; other exceptions are the caller's."""
    if isinstance(problem, ValidationError):
        return Mismatch(problem.faults)
    if isinstance(problem, AssertionError):
        return Mismatch([Fault("assertion_error", "Assertion failed, %s" % problem, value)])
    return Mismatch([Fault("value_error", "Value error, %s" % problem, value)])
