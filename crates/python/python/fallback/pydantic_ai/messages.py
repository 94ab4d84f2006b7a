"""Messages and their parts, as far as tools name them: contents of files, and stand-ins for hints."""

import typing

from ._records import record


@record
class BinaryContent:
    """The content of a file: an image, a document, a sound."""

    data: bytes
    media_type: str = "application/octet-stream"
    identifier: typing.Optional[str] = None
    vendor_metadata: typing.Optional[dict] = None
    kind: str = "binary"

    def __post_init__(self):
        if self.identifier is None:
            self.identifier = short_hash(self.data)

    @classmethod
    def from_path(cls, path):
        """Reads a file; its media type is that of its name."""
        import mimetypes

        with open(path, "rb") as file:
            data = file.read()
        return cls(data=data, media_type=mimetypes.guess_type(str(path))[0] or "application/octet-stream")

    @classmethod
    def from_data_uri(cls, data_uri):
        """Reads the content that stands in a `data:` address."""
        import base64

        head, mark, data = data_uri.partition(";base64,")
        if not head.startswith("data:") or not mark:
            raise ValueError("Data URI must start with `data:` and be base64-encoded")
        return cls(data=base64.b64decode(data), media_type=head[len("data:") :])

    @property
    def base64(self):
        """Returns the content in base64."""
        import base64

        return base64.b64encode(self.data).decode()

    @property
    def data_uri(self):
        """Returns the content as a `data:` address."""
        return "data:%s;base64,%s" % (self.media_type, self.base64)

    @property
    def is_image(self):
        """Tells whether the content is an image."""
        return self.media_type.startswith("image/")

    @property
    def is_audio(self):
        """Tells whether the content is a sound."""
        return self.media_type.startswith("audio/")

    @property
    def is_video(self):
        """Tells whether the content is a film."""
        return self.media_type.startswith("video/")

    @property
    def is_document(self):
        """Tells whether the content is a text or document."""
        return self.media_type.startswith("text/") or self.media_type == "application/pdf"


def short_hash(data):
    """Returns a short name for a content."""
    import hashlib

    return hashlib.sha1(bytes(data)).hexdigest()[:6]


class BinaryImage(BinaryContent):
    """The content of an image."""


@record
class ToolReturn:
    """The result of a tool, with more for the model to see (`content`) and for code (`metadata`)."""

    return_value: typing.Any
    content: typing.Any = None
    metadata: typing.Any = None
    kind: str = "tool-return"


@record
class FileUrl:
    """A file at an address."""

    url: str
    force_download: bool = False
    vendor_metadata: typing.Optional[dict] = None
    media_type: typing.Optional[str] = None
    identifier: typing.Optional[str] = None


class ImageUrl(FileUrl):
    """An image at an address."""


class AudioUrl(FileUrl):
    """A sound at an address."""


class VideoUrl(FileUrl):
    """A film at an address."""


class DocumentUrl(FileUrl):
    """A document at an address."""


@record
class TextPart:
    """Text of a model."""

    content: str
    id: typing.Optional[str] = None
    part_kind: str = "text"


@record
class ThinkingPart:
    """What a model thought."""

    content: str
    id: typing.Optional[str] = None
    signature: typing.Optional[str] = None
    part_kind: str = "thinking"


@record
class SystemPromptPart:
    """Instructions for a model."""

    content: str
    timestamp: typing.Any = None
    part_kind: str = "system-prompt"


@record
class UserPromptPart:
    """What a user says."""

    content: typing.Any
    timestamp: typing.Any = None
    part_kind: str = "user-prompt"


@record
class ToolCallPart:
    """A model calls a tool."""

    tool_name: str
    args: typing.Any = None
    tool_call_id: typing.Optional[str] = None
    id: typing.Optional[str] = None
    part_kind: str = "tool-call"

    def args_as_dict(self):
        """Returns the arguments as a dict."""
        import json

        return json.loads(self.args) if isinstance(self.args, str) else dict(self.args or {})

    def args_as_json_str(self):
        """Returns the arguments as JSON text."""
        import json

        return self.args if isinstance(self.args, str) else json.dumps(self.args or {})


@record
class ToolReturnPart:
    """The result of a tool."""

    tool_name: str
    content: typing.Any = None
    tool_call_id: typing.Optional[str] = None
    metadata: typing.Any = None
    timestamp: typing.Any = None
    part_kind: str = "tool-return"


@record
class RetryPromptPart:
    """A tool asks the model to try again."""

    content: typing.Any
    tool_name: typing.Optional[str] = None
    tool_call_id: typing.Optional[str] = None
    timestamp: typing.Any = None
    part_kind: str = "retry-prompt"


@record
class ModelRequest:
    """What a model is sent."""

    parts: list
    instructions: typing.Optional[str] = None
    timestamp: typing.Any = None
    kind: str = "request"
    run_id: typing.Optional[str] = None
    metadata: typing.Optional[dict] = None

    @classmethod
    def user_text_prompt(cls, user_prompt, *, instructions=None):
        """Makes a request of one text."""
        return cls(parts=[UserPromptPart(user_prompt)], instructions=instructions)


@record
class ModelResponse:
    """What a model answers."""

    parts: list
    usage: typing.Any = None
    model_name: typing.Optional[str] = None
    timestamp: typing.Any = None
    kind: str = "response"
    provider_name: typing.Optional[str] = None
    provider_details: typing.Optional[dict] = None
    finish_reason: typing.Optional[str] = None
    run_id: typing.Optional[str] = None
    metadata: typing.Optional[dict] = None

    @property
    def text(self):
        """Returns the text of the answer, or None."""
        texts = [part.content for part in self.parts if isinstance(part, TextPart)]
        return "".join(texts) if texts else None

    @property
    def tool_calls(self):
        """Returns the tool calls of the answer."""
        return [part for part in self.parts if isinstance(part, ToolCallPart)]


@record
class InstructionPart:
    """One text among the instructions for a model."""

    content: str
    dynamic: bool = False


@record
class FinalResultEvent:
    """A run has its result."""

    tool_name: typing.Optional[str] = None
    tool_call_id: typing.Optional[str] = None
    event_kind: str = "final_result"


@record
class PartStartEvent:
    """A part of an answer begins."""

    index: int
    part: typing.Any
    event_kind: str = "part_start"


@record
class PartDeltaEvent:
    """A part of an answer goes on."""

    index: int
    delta: typing.Any
    event_kind: str = "part_delta"


@record
class FunctionToolCallEvent:
    """A tool is called."""

    part: ToolCallPart
    event_kind: str = "function_tool_call"


@record
class FunctionToolResultEvent:
    """A tool has answered."""

    result: typing.Any
    content: typing.Any = None
    event_kind: str = "function_tool_result"


ModelMessage = typing.Union[ModelRequest, ModelResponse]
ModelRequestPart = typing.Union[SystemPromptPart, UserPromptPart, ToolReturnPart, RetryPromptPart]
ModelResponsePart = typing.Union[TextPart, ThinkingPart, ToolCallPart]
MultiModalContent = typing.Union[ImageUrl, AudioUrl, VideoUrl, DocumentUrl, BinaryContent]
UserContent = typing.Union[str, MultiModalContent]
AgentStreamEvent = typing.Any
