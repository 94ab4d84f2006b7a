"""The exceptions that tools and toolsets raise and catch."""


class ModelRetry(Exception):
    """A tool asks the model to try again; the message tells it why."""

    def __init__(self, message):
        super().__init__(message)
        self.message = message


class ToolFailed(ModelRetry):
    """A tool says that it failed for good."""


class CallDeferred(Exception):
    """A tool call that is answered outside of the run."""

    def __init__(self, metadata=None):
        super().__init__()
        self.metadata = metadata


class ApprovalRequired(Exception):
    """A tool call that a person must approve first."""

    def __init__(self, metadata=None):
        super().__init__()
        self.metadata = metadata


class UserError(RuntimeError):
    """The project uses the package in a way that cannot work."""

    def __init__(self, message):
        super().__init__(message)
        self.message = message


class AgentRunError(RuntimeError):
    """An agent run failed."""

    def __init__(self, message):
        super().__init__(message)
        self.message = message


class UsageLimitExceeded(AgentRunError):
    """A run used more than it may."""


class UnexpectedModelBehavior(AgentRunError):
    """A model answered with something that cannot be used."""

    def __init__(self, message, body=None):
        super().__init__(message)
        self.body = body


class ModelAPIError(AgentRunError):
    """A model's service answered with an error."""

    def __init__(self, model_name, message=""):
        super().__init__(message)
        self.model_name = model_name


class ModelHTTPError(ModelAPIError):
    """A model's service answered with an HTTP status that is an error."""

    def __init__(self, status_code, model_name, body=None):
        super().__init__(
            model_name, "status_code: %s, model_name: %s, body: %s" % (status_code, model_name, body)
        )
        self.status_code = status_code
        self.body = body


class FallbackExceptionGroup(Exception):
    """Several models failed, one after the other."""

    def __init__(self, message, exceptions=()):
        super().__init__(message)
        self.exceptions = tuple(exceptions)
