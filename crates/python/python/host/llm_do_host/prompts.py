"""Makes the prompt of an agent from a typed input."""

import json

from .coerce import make
from .results import Failure, as_attachment, to_json

EMPTY = "(no input)"


def prompt_parts(cls, args):
    """Validates an input and returns the parts of its prompt: texts and attachments in order."""
    value = make(cls, args)
    messages = getattr(value, "prompt_messages", None)
    if not callable(messages):
        plain, _ = to_json(value)
        return [{"text": json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False)}]
    parts = messages()
    if isinstance(parts, str):
        parts = [parts]
    return [part_of(part, number) for number, part in enumerate(parts, 1)]


def part_of(part, number):
    """Returns one part of a prompt."""
    if isinstance(part, str):
        return {"text": part if part.strip() else EMPTY}
    attachment = as_attachment(part, number)
    if attachment is None:
        raise Failure("tool", f"prompt_messages() returned a {type(part).__name__}; expected text or an Attachment")
    return {"attachment": attachment}
