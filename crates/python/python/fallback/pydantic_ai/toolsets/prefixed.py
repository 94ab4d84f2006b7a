"""Where pydantic_ai has `PrefixedToolset`."""

from .wrapper import PrefixedToolset

__all__ = ["PrefixedToolset"]
