"""The runtime context of a tool."""

from typing import Any, Dict

RuntimeContext = Dict[str, Any]

__all__ = ["RuntimeContext"]
