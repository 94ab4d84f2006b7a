"""The models behind `args`: this module imports pydantic, the real one or the one that stands in."""

from abc import abstractmethod
from typing import List

from pydantic import BaseModel

from .args import Attachment, PromptMessages


class AgentArgs(BaseModel):
    """The input of an agent or entry: fields that are checked, and the prompt they make."""

    @abstractmethod
    def prompt_messages(self) -> PromptMessages:
        """Returns the prompt: texts and attachments, in their order."""


class PromptInput(AgentArgs):
    """A prompt in plain text, with files."""

    input: str
    attachments: List[str] = []

    def prompt_messages(self) -> PromptMessages:
        """Returns the text, then the attachments."""
        return [self.input] + [Attachment(path) for path in self.attachments]


WorkerArgs = AgentArgs
WorkerInput = PromptInput
