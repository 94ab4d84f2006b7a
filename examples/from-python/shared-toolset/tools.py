# One toolset object, which the agents of the project share.

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do.runtime import CallContext

archive = FunctionToolset()


@archive.tool_plain
def look() -> str:
    """Looks at the archive."""
    return "looked"


@archive.tool_plain
def burn() -> str:
    """Burns the archive."""
    return "burned"


@archive.tool
async def recall(ctx: RunContext[CallContext]) -> list[str]:
    """Returns what the user of this agent has written so far."""
    seen = await ctx.deps.inspect()
    parts = [part for message in seen["messages"] if message["role"] == "user" for part in message["parts"]]
    return [part["text"] for part in parts if part["type"] == "text"]
