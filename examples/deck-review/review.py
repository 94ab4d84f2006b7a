# A run that begins in code: a function goes over the decks of a folder and has an agent review each as an attachment.
# What must be the same each time (which files, which names, what a report looks like) is code; judging is not.

import asyncio
import re
from typing import Literal

from pydantic import BaseModel, Field

from llm_do.runtime import Attachment, CallContext, PromptInput


class Review(BaseModel):
    """What the reviewer answers."""

    verdict: Literal["yes", "no", "ask again"]
    score: int = Field(ge=1, le=5)
    reasons: list[str] = Field(min_length=1)


async def main(args: PromptInput, ctx: CallContext) -> str:
    """Reviews every deck of a folder and writes a report for each."""
    folder = ctx.project_root / args.input
    decks = sorted(folder.glob("*.pdf"))
    if not decks:
        raise FileNotFoundError(f"there are no slides in {args.input}")
    reviews = await asyncio.gather(*(review(ctx, deck) for deck in decks))
    return "\n".join(f"{deck.stem}: {found.verdict} ({found.score} of 5)" for deck, found in zip(decks, reviews))


async def review(ctx, deck):
    """Has one deck reviewed and writes the report."""
    slides = Attachment(deck.relative_to(ctx.project_root))
    found = Review(**await ctx.call_agent("reviewer", [f"The slides are called {deck.stem}.", slides]))
    report = ctx.project_root / "reports" / f"{file_name(deck.stem)}.md"
    report.parent.mkdir(exist_ok=True)
    reasons = "".join(f"- {reason}\n" for reason in found.reasons)
    report.write_text(f"# {deck.stem}\n\n{found.verdict}, {found.score} of 5\n\n{reasons}", encoding="utf-8")
    return found


def file_name(title):
    """Returns a name for a file: small letters and digits, with hyphens between the words."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))
