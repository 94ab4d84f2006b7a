"""The runtime context, under its other path."""

from llm_do._missing import missing_names

from ..common.context import RuntimeContext

__all__ = ["RuntimeContext"]

__getattr__ = missing_names(__name__, __all__)
