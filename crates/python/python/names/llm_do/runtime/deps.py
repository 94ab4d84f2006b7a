"""The context of a call, under the older path of its module."""

from llm_do_host.context import Tools as ToolsProxy

from .._missing import missing_names
from .context import CallContext, WorkerRuntime

__all__ = ["CallContext", "ToolsProxy", "WorkerRuntime"]

__getattr__ = missing_names(__name__, __all__)
