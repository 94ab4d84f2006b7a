"""The runtime of LLMProc, as far as tools name it."""
