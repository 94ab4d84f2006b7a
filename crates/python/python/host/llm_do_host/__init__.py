"""The private side of llm-do's Python host: one process that loads a project's Python files and runs them."""
