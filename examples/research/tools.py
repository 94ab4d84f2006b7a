# A tool that conducts agents: one plans, several look into parts of the question at the same time, one writes.
# The order of the steps is code; each agent still passes the gate, the limits and the record of the run.

import asyncio

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do import CallError
from llm_do.runtime import CallContext
from llm_do.toolsets.approval import set_toolset_approval_config

research = FunctionToolset()
set_toolset_approval_config(research, {"look_into": {"pre_approved": True}})


@research.tool
async def look_into(ctx: RunContext[CallContext], question: str, at_most: int = 4) -> dict:
    """Has a question looked into from several sides.

    Args:
        question: The question.
        at_most: How many sides to look at.
    """
    call = ctx.deps
    plan = await call.call_agent("planner", question)
    parts = plan["questions"][:at_most]
    call.progress(f"{len(parts)} questions")
    findings = await asyncio.gather(*(finding(call, part) for part in parts))
    known = [found for found in findings if found["answer"]]
    report = await call.call_agent("writer", "\n".join(found["answer"] for found in known))
    return {"report": report, "open": [found["question"] for found in findings if not found["answer"]]}


async def finding(call, question):
    """Returns what one agent found; a question that cannot be answered spoils none of the others."""
    try:
        return {"question": question, "answer": await call.call_agent("researcher", question)}
    except CallError as error:
        call.notice(f"{question}: {error.message}")
        return {"question": question, "answer": None}
