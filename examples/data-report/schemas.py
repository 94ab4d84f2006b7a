# The typed input of the agent `analyse_table`: fields that are checked before it runs, and the prompt they make.
# ../data-report-stabilised is the same project after the analysis has become code.

from pydantic import Field

from llm_do.runtime import AgentArgs, PromptContent


class TableQuestion(AgentArgs):
    """Which table, which column, and what is wanted of it."""

    path: str = Field(description="The table, a CSV file of the project")
    column: str = Field(description="The column with the figures")
    top: int = Field(default=3, ge=1, le=20, description="How many of the highest rows to name")

    def prompt_messages(self) -> list[PromptContent]:
        """Returns what the agent reads."""
        return [f"Table: {self.path}\nColumn: {self.column}\nName the {self.top} highest rows."]
