"""Where pydantic_ai has `PreparedToolset`."""

from .wrapper import PreparedToolset

__all__ = ["PreparedToolset"]
