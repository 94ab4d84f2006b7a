"""Values and exceptions as JSON: what a tool returned, and what went wrong.

`to_json` accepts what Python programs commonly return and refuses the rest by name, so that a model never reads
`<object at 0x7f..>`. `Failure` is an error result.
"""

import os
import sys
from binascii import b2a_base64

from .channel import replace_surrogates

MESSAGE_LIMIT = 1_000_000
DEPTH_LIMIT = 100
SIZE_LIMIT = 32 * 1024 * 1024

SMALLEST, LARGEST = -(2**63), 2**64 - 1


class Failure(Exception):
    """An error result: what a call is answered with instead of a value."""

    def __init__(self, kind, message, hint=None):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def to_json(self):
        """Returns the failure as the protocol writes it."""
        return {"kind": self.kind, "message": bounded(self.message, MESSAGE_LIMIT), "hint": self.hint}


class Interrupted(BaseException):
    """Raised inside the code of a call that was cancelled."""


# Values.


def to_json(value):
    """Returns a value as JSON and the attachments found in it."""
    if value is None or type(value) in (str, bool):
        return value, []
    attachments = []
    plain = _plain(value, attachments, ())
    return plain, attachments


def _plain(value, attachments, parents):
    """Returns one value, at any depth, as JSON."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return _scalar(value)
    if len(parents) >= DEPTH_LIMIT:
        raise Failure("output", f"the result is nested more than {DEPTH_LIMIT} levels deep")
    if any(parent is value for parent in parents):
        raise Failure("output", "the result contains itself")
    parents = (*parents, value)
    if isinstance(value, dict):
        return _mapping(value, attachments, parents)
    if isinstance(value, (list, tuple, set, frozenset)):
        return _items(value, attachments, parents)
    return _object(value, attachments, parents)


def _scalar(value):
    """Returns text, a truth value or a number."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise Failure("output", f"the result contains {value!r}, which JSON cannot write")
        return float(value)
    if isinstance(value, str):
        return _enum_value(value) if type(value) is not str else value
    if isinstance(value, bool) or value is None:
        return value
    value = int(value)
    # Numbers beyond 64 bits would lose digits on the way.
    return value if SMALLEST <= value <= LARGEST else _digits(value)


def _enum_value(value):
    """Returns the text of a subclass of str; of an Enum member that is its value."""
    return str.__str__(getattr(value, "value", value)) if _is_enum(value) else str.__str__(value)


def _digits(value):
    """Returns a huge number as text."""
    try:
        return str(value)
    except ValueError:
        raise Failure("output", "the result contains a number with too many digits") from None


def _mapping(value, attachments, parents):
    """Returns a mapping whose keys are text; two keys that become one are refused, as one value would be lost."""
    plain = {}
    for key, item in value.items():
        text = _key(key)
        if text in plain:
            raise Failure("output", f"the result has two keys that JSON writes as {text!r}")
        plain[text] = _plain(item, attachments, parents)
    return plain


def _key(key):
    """Returns the key of a mapping as text."""
    if isinstance(key, str):
        return replace_surrogates(str.__str__(key))
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    plain, _ = to_json(key) if not isinstance(key, (dict, list, tuple, set, frozenset)) else (key, [])
    if isinstance(plain, (str, int, float)):
        return str(plain)
    raise Failure("output", f"the result has a key of type {type(key).__name__}, which JSON cannot write")


def _items(value, attachments, parents):
    """Returns the items of a list; attachments are taken out of it."""
    items = []
    for item in value:
        attachment = as_attachment(item, len(attachments) + 1)
        if attachment is None:
            items.append(_plain(item, attachments, parents))
        else:
            attachments.append(attachment)
    return items


def _object(value, attachments, parents):
    """Returns an object of one of the kinds that have a JSON form."""
    attachment = as_attachment(value, len(attachments) + 1)
    if attachment is not None:
        attachments.append(attachment)
        return f"[attachment {attachment['name']}]"
    if _is_named(value, "ToolReturn") and hasattr(value, "return_value"):
        return _tool_return(value, attachments, parents)
    if _is_named(value, "ToolResult") and hasattr(value, "is_error"):
        return _plain(_inner_result(value), attachments, parents)
    again = _simpler(value)
    if again is value:
        raise Failure("output", f"the result contains a {type(value).__name__}, which JSON cannot write")
    return _plain(again, attachments, parents)


def _inner_result(value):
    """Returns the JSON form of LLMProc's ToolResult inside another result: its content, or that it is an error."""
    return {"content": value.content, "is_error": True} if value.is_error else value.content


def _tool_return(value, attachments, parents):
    """Returns the value of pydantic_ai's ToolReturn; its content counts as further parts of the result."""
    plain = _plain(value.return_value, attachments, parents)
    content = getattr(value, "content", None)
    if not content:
        return plain
    parts = [content] if isinstance(content, str) else list(content)
    texts = _items(parts, attachments, parents)
    return [plain, *texts] if texts else plain


def _simpler(value):
    """Returns a value of a simpler type that stands for the object, or the object itself."""
    if isinstance(value, (bytes, bytearray, memoryview)) or isinstance(value, type):
        return value
    if callable(getattr(value, "model_dump", None)):
        refuse_doubled_keys(value)
        return value.model_dump(mode="json")
    if hasattr(type(value), "__dataclass_fields__"):
        return {name: getattr(value, name) for name in type(value).__dataclass_fields__}
    if _is_enum(value):
        return value.value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return _from_standard_library(value)


def refuse_doubled_keys(model):
    """Refuses a model in which two keys become one: pydantic would drop one, but writes both into a text."""
    write = getattr(model, "model_dump_json", None)
    if callable(write):
        import json

        json.loads(write(), object_pairs_hook=_refuse_doubled)


def _refuse_doubled(pairs):
    """Raises where a key occurs twice among the pairs of one object."""
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise Failure("output", f"the result has two keys that JSON writes as {key!r}")
        seen.add(key)


def _from_standard_library(value):
    """Returns the text or list that stands for an object of the standard library."""
    names = {kind.__module__ + "." + kind.__name__ for kind in type(value).__mro__}
    if names & {"datetime.datetime", "datetime.date", "datetime.time"}:
        return value.isoformat()
    if names & {"decimal.Decimal", "_decimal.Decimal", "uuid.UUID", "datetime.timedelta", "fractions.Fraction"}:
        return str(value)
    if hasattr(value, "_asdict") and callable(value._asdict):
        return value._asdict()
    if _is_collection(value, "Mapping"):
        return dict(value.items())
    if _is_collection(value, "Set") or _is_collection(value, "Sequence"):
        return list(value)
    if names & {"collections.deque", "builtins.range", "builtins.dict_keys", "builtins.dict_values"}:
        return list(value)
    return value


def _is_collection(value, name):
    """Says whether an object is registered as an abstract collection."""
    return isinstance(value, getattr(sys.modules["_collections_abc"], name))


def _is_enum(value):
    """Says whether a value is the member of an Enum."""
    enum = sys.modules.get("enum")
    return enum is not None and isinstance(value, enum.Enum)


def _is_named(value, name):
    """Says whether a class of this name is among the value's classes."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


# Attachments.

_ENDINGS = {"text/plain": "txt", "image/jpeg": "jpg", "image/svg+xml": "svg", "audio/mpeg": "mp3", "text/markdown": "md"}


def as_attachment(value, number):
    """Returns a BinaryContent or an Attachment as the protocol writes it; None for any other value."""
    if isinstance(value, (str, int, float, dict, list, type(None))):
        return None
    if _is_named(value, "BinaryContent") and isinstance(getattr(value, "data", None), (bytes, bytearray)):
        return _binary_attachment(value, number)
    if _is_named(value, "Attachment") and hasattr(value, "path"):
        path = os.fspath(value.path)
        return {"name": os.path.basename(path), "path": os.path.expanduser(path)}
    return None


def _binary_attachment(value, number):
    """Returns bytes with a media type as an attachment."""
    media_type = getattr(value, "media_type", None)
    ending = _ENDINGS.get(media_type) or str(media_type or "bin").rpartition("/")[2].partition(";")[0]
    own = getattr(value, "_identifier", None) or getattr(value, "identifier", None)
    named = own if isinstance(own, str) and "." in own else f"attachment-{number}.{ending}"
    return {
        "name": os.path.basename(named),
        "media_type": media_type,
        "data": b2a_base64(bytes(value.data), newline=False).decode("ascii"),
    }


# Exceptions.


class Project:
    """The files of the project, to tell which line of them an exception comes from."""

    def __init__(self, root="", files=()):
        self._root = root
        self._files = set(files)

    def holds(self, path):
        """Says whether a source file is one of the project's own."""
        if path in self._files:
            return True
        inside = bool(self._root) and path.startswith(os.path.join(self._root, ""))
        return inside and "site-packages" not in path and f"{os.sep}lib{os.sep}python" not in path

    def shown(self, path):
        """Returns a path as messages show it."""
        base = os.path.join(self._root, "")
        return path[len(base) :] if self._root and path.startswith(base) else os.path.basename(path)

    def place(self, problem):
        """Returns file and line of the innermost frame inside the project, or None."""
        found = None
        step = problem.__traceback__
        while step is not None:
            path = step.tb_frame.f_code.co_filename
            if self.holds(path):
                found = (path, step.tb_lineno)
            step = step.tb_next
        return found

    def describe(self, problem):
        """Returns an exception as `ValueError: text (tools.py:12)`."""
        place = self.place(problem)
        where = f" ({self.shown(place[0])}:{place[1]})" if place else ""
        return bounded(exception_text(problem), MESSAGE_LIMIT - len(where)) + where


def exception_text(problem):
    """Returns type and text of an exception, and those that it groups."""
    text = text_of(problem)
    parts = getattr(problem, "exceptions", None)
    if isinstance(parts, (list, tuple)) and parts:
        text += ": " + "; ".join(exception_text(part) for part in parts[:10])
    name = type(problem).__name__
    return f"{name}: {text}" if text else name


def text_of(problem):
    """Returns the text of an exception, even of one whose `__str__` raises."""
    try:
        return str(str(problem))
    except Exception as second:
        return f"(its text cannot be read: {type(second).__name__})"


def bounded(text, limit):
    """Returns the text, cut with a mark and its true size where it is too long."""
    if len(text) <= limit:
        return text
    mark = f" [cut: of {len(text)} characters]"
    return text[: limit - len(mark)] + mark
