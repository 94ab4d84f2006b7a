"""Functions by `__all__`: classes, constants and toolsets in it are no tools."""

from listed import Point

__all__ = ["LIMIT", "Point", "halve", "whisper"]
LIMIT = 3


def halve(n: float) -> float:
    """Halves a number."""
    return n / 2


def whisper(text: str, *, times: int = 1) -> str:
    """Says something quietly."""
    print(f"whispering {times} times")
    return " ".join([text.lower()] * times)


def hidden() -> None:
    """Is no tool."""
