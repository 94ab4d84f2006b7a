"""The entry: typed input, several agents at once, errors that are caught."""

import asyncio

from llm_do import CallError, EntrySpec
from schemas import Part, Topic


async def main(topic: Topic, ctx) -> dict:
    """Has a topic looked at."""
    same = topic.model_copy(update={"parts": [Part(name="ebb", weight=0.5)]})
    report, plain = await asyncio.gather(
        ctx.call_agent("runner", same), ctx.call_agent("runner", {"topic": "locks", "depth": 3, "tone": "warm"})
    )
    return {
        "report": report,
        "plain": plain,
        "added": await ctx.call("add", a=40),
        "wrong": [await failure(ctx, "runner", given) for given in WRONG],
        "unknown": await failure(ctx, "runer", {}),
    }


WRONG = [
    {"topic": "Tides"},
    {"topic": "tides", "depth": 4},
    {"topic": "tides", "tone": "cold"},
    {"topic": "tides", "parts": [{"name": ""}]},
    {"depth": 1},
]


async def failure(ctx, agent, given):
    """Returns the kind of the error of a call."""
    try:
        await ctx.call_agent(agent, given)
    except CallError as error:
        return error.kind


ENTRY = EntrySpec("start", main, schema_in=Topic, description="Looks at a topic.")
