"""Typed inputs and outputs: constraints, defaults, nesting, unions."""

from typing import Literal, Optional

from pydantic import BaseModel, Field

from llm_do.runtime import AgentArgs, PromptContent


class Part(BaseModel):
    """A part of a topic."""

    name: str = Field(min_length=1, max_length=20)
    weight: float = Field(default=1.0, gt=0, lt=10)


class Topic(AgentArgs):
    """What to look at."""

    topic: str = Field(description="The topic", pattern="^[a-z]+$")
    depth: int = Field(default=2, ge=1, le=3)
    tone: Literal["dry", "warm"] = "dry"
    parts: list[Part] = Field(default_factory=list, max_length=3)
    note: Optional[str] = None

    def prompt_messages(self) -> list[PromptContent]:
        """Returns the prompt."""
        parts = ", ".join(f"{part.name} ({part.weight})" for part in self.parts)
        return [f"Topic {self.topic}, depth {self.depth}, {self.tone}: {parts or 'no parts'}"]


class Report(BaseModel):
    """What the runner answers."""

    title: str
    lines: list[str] = Field(min_length=1)
    score: Optional[int] = None
