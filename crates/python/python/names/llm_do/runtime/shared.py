"""The runtime and its configuration, under the older path of their module."""

from .._missing import missing_names
from .runtime import Runtime, RuntimeConfig

__all__ = ["Runtime", "RuntimeConfig"]

__getattr__ = missing_names(__name__, __all__)
