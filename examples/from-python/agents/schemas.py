from llm_do.runtime import Attachment, WorkerArgs


class PitchInput(WorkerArgs):
    company: str
    deck: str | None = None

    def prompt_messages(self):
        text = f"Evaluate the pitch of {self.company}."
        return [text, Attachment(self.deck)] if self.deck else [text]
