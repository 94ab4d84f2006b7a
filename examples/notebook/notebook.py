# A toolset that keeps something: each call of `clerk` has a notebook of its own, which is opened before the first tool
# of that call and closed after its last, whatever happens in between. Two clerks at work do not see each other's notes.

import tempfile
from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset

from llm_do.toolsets.approval import set_toolset_approval_config


class Notebook(FunctionToolset):
    """Notes in a file that lives as long as one call of an agent."""

    def __init__(self, archive: Path):
        super().__init__()
        self.archive = archive
        self.pages = None
        self.count = 0
        self.add_function(self.note, sequential=True)  # two notes of one turn keep their order
        self.add_function(self.minutes)
        set_toolset_approval_config(self, {"note": {"pre_approved": True}, "minutes": {"pre_approved": True}})

    async def __aenter__(self):
        """Opens the notebook. llm-do also makes one while it loads the project, to learn the tools."""
        self.pages = tempfile.TemporaryFile("w+", encoding="utf-8")
        return self

    async def __aexit__(self, *_):
        """Closes it; the file is gone."""
        self.pages.close()

    def cleanup(self):
        """Puts down in the archive how many notes there were: the last thing that is called."""
        if self.count:
            with open(self.archive, "a", encoding="utf-8") as archive:
                archive.write(f"notes taken: {self.count}\n")

    def note(self, statement: str) -> int:
        """Notes a statement and returns how many there are.

        Args:
            statement: What was said.
        """
        self.count += 1
        self.pages.write(f"{self.count}. {statement}\n")
        return self.count

    def minutes(self) -> str:
        """Returns everything that was noted."""
        self.pages.seek(0)
        return self.pages.read()


def notebook(ctx):
    """Makes a notebook for one call of an agent."""
    return Notebook(ctx.deps.project_root / "archive.txt")


TOOLSETS = {"notebook": notebook}
