"""The module `entries` of the context-centric llm-do: tools and agents as objects of a module.

A module of this name in the project, or an installed one, takes precedence.
"""

from llm_do._missing import missing_names
from llm_do.runtime.contracts import ToolEntry, WorkerEntry

__all__ = ["ToolEntry", "WorkerEntry"]

__getattr__ = missing_names(__name__, __all__)
