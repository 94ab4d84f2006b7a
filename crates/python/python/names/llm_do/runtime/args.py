"""Typed inputs of agents and entries, and the prompts they make.

`AgentArgs` and `PromptInput` are pydantic models, of the real pydantic where it is installed. They
are made (see `inputs`) when somebody asks for them, because importing pydantic takes long.
"""

import typing

if typing.TYPE_CHECKING:
    from .inputs import AgentArgs, PromptInput, WorkerArgs, WorkerInput

__all__ = [
    "AgentArgs",
    "Attachment",
    "PromptContent",
    "PromptInput",
    "PromptMessages",
    "WorkerArgs",
    "WorkerInput",
    "get_display_text",
    "has_attachments",
]
MODELS = ("AgentArgs", "PromptInput", "WorkerArgs", "WorkerInput")


def __getattr__(name):
    """Makes the models when they are asked for."""
    if name not in MODELS:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from . import inputs

    for model in MODELS:
        globals()[model] = getattr(inputs, model)
    return globals()[name]


class Attachment:
    """A file that goes to the model along with the prompt; a relative path is one of the project."""

    __slots__ = ("path",)
    __match_args__ = ("path",)

    def __init__(self, path):
        from pathlib import Path

        self.path = Path(path)

    def __eq__(self, other):
        return self.path == other.path if isinstance(other, Attachment) else NotImplemented

    def __hash__(self):
        return hash((Attachment, self.path))

    def __repr__(self):
        return "Attachment(%r)" % str(self.path)

    def render(self, base_path=None):
        """Reads the file; a relative path is looked up in `base_path`."""
        from pydantic_ai.messages import BinaryContent

        path = self.path.expanduser()
        path = (base_path / path if base_path is not None else path).resolve()
        if not path.exists():
            raise FileNotFoundError("Attachment not found: %s" % path)
        return BinaryContent(data=path.read_bytes(), media_type=media_type_of(path))

    @classmethod
    def llm_do_shape(cls, builder, key):
        """Says what an attachment is in JSON, as a field of a class."""
        from llm_do_host import shapes

        shape = builder.classes[key] = shapes.Object(cls, lambda fields: cls(**fields), cls.__doc__)
        shape.fields.append(shapes.Field("path", shapes.STRING))
        return shape

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        """Tells the real pydantic the same."""
        from pydantic_core import core_schema

        fields = core_schema.typed_dict_schema(
            {"path": core_schema.typed_dict_field(core_schema.str_schema())}
        )
        written = core_schema.plain_serializer_function_ser_schema(
            lambda attachment: {"path": str(attachment.path)}
        )

        def read(value, validate):
            return value if isinstance(value, cls) else cls(**validate(value))

        return core_schema.no_info_wrap_validator_function(read, fields, serialization=written)


PromptContent = typing.Union[str, Attachment]
PromptMessages = typing.Sequence[PromptContent]
NO_INPUT = "(no input)"


def media_type_of(path):
    """Returns the media type that a file's name tells."""
    import mimetypes

    return mimetypes.guess_type(str(path))[0] or "application/octet-stream"


def get_display_text(messages):
    """Returns the text of a prompt without its attachments, or words that say that there is none."""
    make = getattr(messages, "prompt_messages", None)
    messages = make() if callable(make) else [messages] if isinstance(messages, str) else messages
    text = " ".join(part for part in messages if isinstance(part, str))
    return text if text.strip() else NO_INPUT


def has_attachments(messages):
    """Tells whether files go along with a prompt."""
    return any(isinstance(part, Attachment) for part in messages)
