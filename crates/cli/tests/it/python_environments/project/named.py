"""Functions under names of their own, one of them as pydantic_ai's Tool."""

from pydantic_ai import ModelRetry
from pydantic_ai.tools import RunContext, Tool

from llm_do.runtime import CallContext


def times_three(n: int) -> int:
    """Triples a number."""
    return n * 3


async def loud(ctx: RunContext[CallContext], text: str) -> str:
    """Shouts.

    Args:
        ctx: The context.
        text: What to shout.
    """
    if not text:
        raise ModelRetry("give a text")
    return f"{text.upper()} ({ctx.deps.agent}, {ctx.tool_name}, depth {ctx.deps.depth})"


TOOLS = {"triple": times_three, "shout": Tool(loud, name="shout", takes_ctx=True)}
