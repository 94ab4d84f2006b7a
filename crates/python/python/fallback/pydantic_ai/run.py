"""Results of agent runs; named in hints only."""

from .agent import AgentRunResult

__all__ = ["AgentRunResult"]
