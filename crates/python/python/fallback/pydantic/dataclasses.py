"""Dataclasses of pydantic: those of Python, which are checked where they are arguments."""

from dataclasses import dataclass

__all__ = ["dataclass"]
