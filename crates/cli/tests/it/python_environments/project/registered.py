"""LLMProc's register_tool, context keys and ToolResult."""

from llmproc import ToolResult, register_tool


@register_tool(description="Says which region this is.", requires_context=True, required_context_keys=["region"])
async def located(runtime_context=None) -> ToolResult:
    return ToolResult.from_success(f"in the {runtime_context['region']}")


@register_tool(name="process_of", requires_context=True, required_context_keys=["process", "stderr"],
               param_descriptions={"n": "What to triple"})
async def asks_the_process(n: int, runtime_context=None):
    """Calls another tool.

    More about it.
    """
    runtime_context["stderr"].append("asking")
    return {"tripled": await runtime_context["process"].call_tool("triple", n=n)}


@register_tool
def refuses(reason: str = "no"):
    """Refuses."""
    return ToolResult.from_error(f"refused: {reason}")


@register_tool()
def gives_up():
    """Gives up."""
    return ToolResult.from_abort("enough")
