"""The runtime context of a tool."""

from llm_do._missing import missing_names

from typing import Any, Dict

RuntimeContext = Dict[str, Any]

__all__ = ["RuntimeContext"]

__getattr__ = missing_names(__name__, __all__)
