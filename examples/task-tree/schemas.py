# The typed input of an agent that calls itself: each call says where it stands in the tree, and `prompt_messages`
# turns that into what the model reads. `max_depth` of the manifest ends the recursion whatever the model does.

from pydantic import Field

from llm_do.runtime import AgentArgs, PromptContent


class Task(AgentArgs):
    """A task and the way that led to it."""

    task: str = Field(min_length=3, description="What is to be done")
    way: list[str] = Field(default_factory=list, description="The tasks above this one, the first one first")

    def prompt_messages(self) -> list[PromptContent]:
        """Returns the task and, below the first one, where it stands."""
        if not self.way:
            return [f"Task: {self.task}"]
        return [f"Task: {self.task}", "Part of: " + " > ".join(self.way)]
