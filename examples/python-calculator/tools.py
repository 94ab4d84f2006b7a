# A toolset that a function makes. llm-do reads the schemas of its tools from type hints and docstrings, and asks
# nobody before they run, because `set_toolset_approval_config` says that they are harmless.

import math
from fractions import Fraction

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do.runtime import CallContext
from llm_do.toolsets.approval import set_toolset_approval_config


def arithmetic(_ctx: RunContext[CallContext]) -> FunctionToolset:
    """Makes the toolset; each call of an agent gets one of its own."""
    toolset = FunctionToolset()

    @toolset.tool_plain
    def months_to_reach(start: float, goal: float, yearly_percent: float) -> int:
        """Counts the months until an amount has grown to a goal.

        Args:
            start: The amount at the beginning.
            goal: The amount to be reached.
            yearly_percent: The interest of a year; it is paid monthly.
        """
        if not 0 < start <= goal or yearly_percent <= 0:
            raise ValueError("give a start below the goal, and an interest above zero")
        return math.ceil(math.log(goal / start) / math.log1p(yearly_percent / 1200))

    @toolset.tool_plain
    def exact_sum(terms: list[str]) -> str:
        """Adds fractions and decimals without rounding.

        Args:
            terms: The terms, such as "1/3" or "0.25".
        """
        return str(sum((Fraction(term) for term in terms), Fraction(0)))

    @toolset.tool
    def factors(ctx: RunContext[CallContext], number: int) -> list[int]:
        """Splits a number into its prime factors.

        Args:
            number: A whole number between 2 and a million million.
        """
        if not 2 <= number <= 10**12:
            raise ValueError(f"{number} is not between 2 and a million million")
        ctx.deps.progress(f"looking for the factors of {number}")
        found, candidate = [], 2
        while candidate * candidate <= number:
            while number % candidate == 0:
                found.append(candidate)
                number //= candidate
            candidate += 1
        return found + [number] if number > 1 else found

    harmless = {"pre_approved": True}
    set_toolset_approval_config(
        toolset, {"months_to_reach": harmless, "exact_sum": harmless, "factors": harmless}
    )
    return toolset


TOOLSETS = {"arithmetic": arithmetic}
