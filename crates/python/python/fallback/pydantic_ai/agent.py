"""Agents of pydantic_ai: named in hints, refused where a project makes one."""

import typing

from .exceptions import UserError
from .tools import AgentDepsT


class Agent(typing.Generic[AgentDepsT]):
    """Stands for pydantic_ai's Agent, which needs the real package."""

    def __init__(self, *values, **options):
        raise UserError(
            "pydantic_ai.Agent needs the real pydantic_ai, which is not installed for this Python: "
            "install pydantic-ai, or describe the agent in an .agent file and call it with ctx.deps.call_agent(name, input)"
        )


AbstractAgent = Agent


class AgentRunResult:
    """The result of an agent run; named in hints only."""
