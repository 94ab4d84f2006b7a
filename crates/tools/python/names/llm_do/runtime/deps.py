"""The context of a call, under the older path of its module."""

from .context import CallContext, WorkerRuntime

__all__ = ["CallContext", "WorkerRuntime"]
