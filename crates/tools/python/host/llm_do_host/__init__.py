"""The Python side of llm-do: loads the files of a project and runs what they define."""
