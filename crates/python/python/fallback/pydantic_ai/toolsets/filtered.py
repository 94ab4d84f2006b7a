"""Where pydantic_ai has `FilteredToolset`."""

from .wrapper import FilteredToolset

__all__ = ["FilteredToolset"]
