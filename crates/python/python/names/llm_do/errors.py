"""What can go wrong, as exceptions."""


class CallError(RuntimeError):
    """A call that a tool made through its context has failed."""

    def __init__(self, message="", *, kind="tool", hint=None):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def __str__(self):
        return self.message


class ApprovalError(CallError, PermissionError):
    """A call was not permitted."""

    def __init__(self, message="", *, kind="denied", hint=None):
        super().__init__(message, kind=kind, hint=hint)


class ApprovalDenied(ApprovalError):
    """A person, or the lack of one, denied a call."""


class ApprovalBlocked(ApprovalDenied):
    """A rule blocks a call: nobody can permit it."""


class ModelError(ValueError):
    """Something is wrong with the choice of a model."""


class ModelCompatibilityError(ModelError):
    """The model does not fit the patterns of an agent."""


class NoModelError(ModelError):
    """No model was chosen."""


class InvalidCompatibleModelsError(ModelError):
    """The patterns of an agent cannot match any model."""


class ModelConfigError(ModelError):
    """An agent has both a model and patterns."""
