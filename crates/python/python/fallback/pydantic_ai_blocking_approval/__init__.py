"""The names of pydantic_ai_blocking_approval, where it is not installed: llm-do itself asks for approvals."""

from llm_do.approvals import *  # noqa: F401,F403
from llm_do.approvals import __all__  # noqa: F401
