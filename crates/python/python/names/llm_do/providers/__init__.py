"""Providers for model factories."""

from .openai_compatible import OpenAICompatibleProvider

__all__ = ["OpenAICompatibleProvider"]
