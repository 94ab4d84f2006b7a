"""Toolsets by `TOOLSETS`: a factory, an instance, a ToolsetSpec."""

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do.runtime import CallContext, ToolsetSpec
from llm_do.toolsets.approval import set_toolset_approval_config


def counted(ctx):
    """Counts in each agent call from one."""
    state = {"count": 0}
    kit = FunctionToolset()

    @kit.tool_plain
    def count(by: int = 1) -> int:
        """Counts on."""
        state["count"] += by
        return state["count"]

    set_toolset_approval_config(kit, {"count": {"pre_approved": True}})
    return kit


shared = FunctionToolset(id="shared")


@shared.tool
def where(ctx: RunContext[CallContext], word: str) -> str:
    """Says where it is called."""
    return f"{word}: {ctx.deps.path}"


async def specified() -> FunctionToolset:
    """Makes a toolset without a context, later."""
    kit = FunctionToolset()
    kit.add_function(len_of, name="length")
    return kit


def len_of(words: list[str]) -> int:
    """Counts words."""
    return len(words)


TOOLSETS = {"counted": counted, "shared": shared, "specified": ToolsetSpec(specified)}
