"""The runtime of LLMProc, as far as tools name it."""

from llm_do._missing import missing_names

__getattr__ = missing_names(__name__)
