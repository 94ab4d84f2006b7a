"""What a tool may touch."""

from llm_do._missing import missing_names

from enum import Enum


class AccessLevel(Enum):
    """Read, write, or everything."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @classmethod
    def from_string(cls, text):
        """Returns the level of a name, in any case."""
        try:
            return cls(str(text).strip().lower())
        except ValueError:
            known = ", ".join(level.value for level in cls)
            raise ValueError(f"unknown access level {text!r}; expected one of {known}") from None


__all__ = ["AccessLevel"]

__getattr__ = missing_names(__name__, __all__)
