# The analysis of ../data-report, now code: reading and reckoning is exact and costs nothing, and only the sentence
# about the figures is left to an agent. The toolset has the name that the agent had, so `main` is the same file.

import csv
import json
import statistics

from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset

from llm_do.runtime import CallContext
from llm_do.toolsets.approval import set_toolset_approval_config


def make_analyse_table() -> FunctionToolset:
    """Makes the toolset."""
    toolset = FunctionToolset()

    @toolset.tool
    async def analyse_table(ctx: RunContext[CallContext], path: str, column: str, top: int = 3) -> str:
        """Analyses a table of the project and answers with a short report.

        Args:
            path: The table, a CSV file of the project.
            column: The column with the figures.
            top: How many of the highest rows to name.
        """
        rows = read_rows(ctx.deps.project_root / path, column)
        figures = {
            "sum": sum(figure for _, figure in rows),
            "mean": round(statistics.mean(figure for _, figure in rows)),
            "deviation": round(statistics.stdev(figure for _, figure in rows)),
            "highest": dict(sorted(rows, key=lambda row: -row[1])[:top]),
        }
        prose = await ctx.deps.call_agent("describe_figures", {"input": json.dumps(figures)})
        return f"{json.dumps(figures)}\n{prose}"

    set_toolset_approval_config(toolset, {"analyse_table": {"pre_approved": True}})
    return toolset


def read_rows(path, column):
    """Returns the first cell of each row with its figure."""
    with open(path, newline="", encoding="utf-8") as file:
        table = csv.DictReader(file)
        if column not in (table.fieldnames or []):
            raise ValueError(f"{path.name} has no column {column!r}; there are {table.fieldnames}")
        return [(next(iter(row.values())), int(row[column])) for row in table]


TOOLSETS = {"analyse_table": make_analyse_table}
