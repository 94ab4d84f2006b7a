"""Where pydantic_ai has `RenamedToolset`."""

from .wrapper import RenamedToolset

__all__ = ["RenamedToolset"]
