"""Toolsets that a module makes without listing them, and a toolset that judges its calls."""

from pydantic_ai.toolsets import FunctionToolset

from llm_do import ApprovalResult
from llm_do.toolsets.loader import ToolsetSpec


class Judging(FunctionToolset):
    """Blocks what is too much."""

    def needs_approval(self, name, args, ctx, config):
        """Judges a call."""
        return ApprovalResult.blocked("too much") if args["amount"] > 9 else ApprovalResult.needs_approval()


module_kit = Judging()


@module_kit.tool_plain
def spend(amount: int) -> str:
    """Spends something."""
    return f"spent {amount}"


module_spec = ToolsetSpec(lambda: FunctionToolset([greet]))


def greet(name: str = "you") -> str:
    """Greets."""
    return f"hello {name}"
