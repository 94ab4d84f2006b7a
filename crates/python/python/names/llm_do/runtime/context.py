"""The context of a call."""

from llm_do_host.context import CallContext

from .._missing import missing_names

# The older names.
WorkerContext = WorkerRuntime = CallContext

__all__ = ["CallContext", "WorkerContext", "WorkerRuntime"]

__getattr__ = missing_names(__name__, __all__)
