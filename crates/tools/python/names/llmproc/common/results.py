"""The result of a tool."""


class ToolResult:
    """What a tool answers: a content, an error, or the end of the turn."""

    def __init__(self, content=None, is_error=False, abort_execution=False):
        self.content = content
        self.is_error = is_error
        self.abort_execution = abort_execution

    def __repr__(self):
        return f"ToolResult({self.content!r}, is_error={self.is_error}, abort_execution={self.abort_execution})"

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
