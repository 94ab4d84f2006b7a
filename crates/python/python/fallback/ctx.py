"""The module `ctx` of the context-centric llm-do: its `Context` is the context of a call.

A module of this name in the project, or an installed one, takes precedence.
"""

from llm_do._missing import missing_names
from llm_do.runtime.context import CallContext as Context
from llm_do.runtime.deps import ToolsProxy

__all__ = ["Context", "ToolsProxy"]

__getattr__ = missing_names(__name__, __all__)
