"""The result of a tool."""

from llm_do._missing import missing_names

class ToolResult:
    """What a tool answers: a content, an error, or the end of the turn."""

    def __init__(self, content=None, is_error=False, abort_execution=False):
        self.content = content
        self.is_error = is_error
        self.abort_execution = abort_execution

    def __repr__(self):
        return f"ToolResult({self.content!r}, is_error={self.is_error}, abort_execution={self.abort_execution})"

    def __eq__(self, other):
        if not isinstance(other, ToolResult):
            return NotImplemented
        return (self.content, self.is_error, self.abort_execution) == (
            other.content,
            other.is_error,
            other.abort_execution,
        )

    __hash__ = None

    def to_dict(self):
        """The content as text, and whether it is an error."""
        from llm_do_host.targets import text_of_content

        return {"content": text_of_content(self.content), "is_error": self.is_error}

    @classmethod
    def from_success(cls, content):
        """A content."""
        return cls(content)

    @classmethod
    def from_error(cls, message):
        """An error that the model reads."""
        return cls(message, is_error=True)

    @classmethod
    def from_abort(cls, content):
        """A content after which no further tool of this turn runs."""
        return cls(content, abort_execution=True)


__all__ = ["ToolResult"]

__getattr__ = missing_names(__name__, __all__)
