"""An agent that is declared in Python, with typed input, typed answer and tools as objects."""

from pydantic import BaseModel, Field

from llm_do import AgentSpec
from llm_do.runtime import AgentArgs
from named import times_three


class Riddle(AgentArgs):
    """A riddle."""

    number: int = Field(ge=1, description="The number")

    def prompt_messages(self):
        """Returns the prompt."""
        return [f"What is {self.number} three times?"]


class Solution(BaseModel):
    """The answer to a riddle."""

    number: int
    sure: bool = True


HELPER = AgentSpec(
    name="helper",
    description="Solves riddles.",
    instructions="You are a helper.",
    tools=["triple"],
    toolsets=["counted"],
    input_model=Riddle,
    output_model=Solution,
)
