"""Agents as tools: llm-do offers them itself."""


class AgentToolset:
    """Refuses to be made: an agent is offered to another by its name in `toolsets`."""

    def __init__(self, *_args, **_options):
        raise TypeError("name the agent under `toolsets` of the agent that is to call it; llm-do offers it as a tool")


def agent_as_toolset(spec, **_options):
    """Returns the agent itself: its name under `toolsets` is enough."""
    return spec


__all__ = ["AgentToolset", "agent_as_toolset"]
