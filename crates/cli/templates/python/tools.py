"""Tools of the guest book. Plain functions: their hints and docstrings are what the model reads."""

from pathlib import Path

from llm_do.runtime import CallContext


def count_words(text: str) -> int:
    """Counts the words of a text.

    Args:
        text: The text to count in
    """
    return len(text.split())


async def greet(ctx: CallContext, guest: str) -> str:
    """Has a greeting written for a guest. Code calls agents by the names that models use.

    Args:
        guest: Who is greeted
    """
    line = await ctx.call_agent("writer", f"A greeting for {guest}")
    return line.strip()


def sign(guest: str, line: str) -> str:
    """Adds a line to the guest book. It changes a file, so it asks first.

    Args:
        guest: Who signs
        line: What to write
    """
    book = Path(__file__).parent / "guests.txt"
    with book.open("a", encoding="utf-8") as file:
        file.write(f"{guest}: {line}\n")
    return f"signed for {guest}"


TOOLS = [count_words, greet, sign]
