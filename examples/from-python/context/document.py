# The block "Example Usage" of the document, as it is there. A test counts its lines.

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

# Run
ctx = Context.from_worker(researcher, model="anthropic:claude-sonnet")
result = await ctx.call("researcher", {"topic": "AI safety"})

# Inspect
for t in ctx.trace:
    print(f"{t.name} ({t.kind}) depth={t.depth}")
print(ctx.usage)
