"""The context of a call."""

from llm_do_host.context import CallContext

# The older name.
WorkerRuntime = CallContext

__all__ = ["CallContext", "WorkerRuntime"]
