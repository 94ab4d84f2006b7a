"""Toolset factories. llm-do opens and closes toolsets itself, so there are no helpers for that."""

from .._missing import missing_names
from ..toolsets.loader import ToolsetDef, ToolsetFactory, ToolsetSpec

__all__ = ["ToolsetDef", "ToolsetFactory", "ToolsetSpec"]

__getattr__ = missing_names(__name__, __all__)
