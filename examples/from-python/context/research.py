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
    model="anthropic:claude-haiku",  # or None to use ctx.model
    tools=[search_tool],
)


async def other_tool(ctx: RunContext[Context], q: str) -> list[dict]:
    """Another tool."""
    return [{"file": f"{q}.pdf"}]

async def my_tool(ctx: RunContext[Context], query: str, limit: int = 10) -> list[dict]:
    # Access orchestration via ctx.deps
    result = await ctx.deps.call("other_tool", {"q": query})
    return result

caller = WorkerEntry(
    name="caller",
    instructions="You call a tool that calls another.",
    tools=[ToolEntry(tool=Tool(my_tool)), ToolEntry(tool=Tool(other_tool))],
)

# Run: llm-do makes the context, so this part is a function that it calls.
async def main(args, ctx: Context):
    result = await ctx.call("researcher", {"topic": "AI safety"})
    await ctx.tools.caller(input="Find the tides.")

    # Inspect
    for t in ctx.trace:
        print(f"{t.name} ({t.kind}) depth={t.depth}")
    print(ctx.usage)
    return result
