from pydantic_ai.tools import RunContext, Tool
from ctx import Context
from entries import ToolEntry, WorkerEntry

# Standard PydanticAI tool signature
async def search(ctx: RunContext[Context], query: str) -> list[str]:
    """Search for documents."""
    return ["doc1.pdf", "doc2.pdf"]

# Create entries
search_tool = ToolEntry(tool=Tool(search, name="search"))

researcher = WorkerEntry(
    name="researcher",
    instructions="Research the topic using available tools.",
    model=None,
    tools=[search_tool],
)

# Run: llm-do makes the context, so this part is a function that it calls.
async def main(args, ctx: Context):
    result = await ctx.call("researcher", {"topic": "AI safety"})

    # Inspect
    for t in ctx.trace:
        print(f"{t.name} ({t.kind}) depth={t.depth}")
    print(ctx.usage)
    return result
