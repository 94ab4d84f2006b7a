"""Models: names, the rules for choosing one, and factories for providers of the project's own."""

import os
from typing import Any

from .errors import (
    InvalidCompatibleModelsError,
    ModelCompatibilityError,
    ModelConfigError,
    ModelError,
    NoModelError,
)

# A model is named (`provider:name`), or an object that a factory made.
ModelInput = Any

LLM_DO_MODEL_ENV = "LLM_DO_MODEL"

# The registered factories by prefix.
factories = {}


def register_model_factory(prefix, factory, *, replace=False):
    """Registers a function that makes the models of a provider: it is given what follows `prefix:`."""
    if not isinstance(prefix, str) or not prefix.strip() or ":" in prefix:
        raise ValueError(f"the prefix of a model factory must be a word without a colon, not {prefix!r}")
    if not callable(factory):
        raise TypeError(f"the model factory for `{prefix}` is a {type(factory).__name__}; expected a function")
    if prefix in factories and not replace:
        raise ValueError(f"a model factory for `{prefix}` is registered already; replace=True replaces it")
    factories[prefix] = factory


def resolve_model(model):
    """Returns a model as it is: llm-do itself resolves names when an agent is first called."""
    if model is None or (isinstance(model, str) and not model.strip()):
        raise NoModelError("no model was given")
    return model


def select_model(*, agent_model=None, compatible_models=None, agent_name="agent", worker_model=None, worker_name=None):
    """Returns the model of an agent: its own, else the one of the environment where it fits the patterns."""
    own, name = agent_model or worker_model, worker_name or agent_name
    if own is not None:
        if compatible_models is not None:
            raise ModelConfigError(f"agent `{name}` cannot have both `model` and `compatible_models`")
        return own
    chosen = get_env_model()
    if chosen is None:
        raise NoModelError(f"no model for agent `{name}`: set its `model` or {LLM_DO_MODEL_ENV}")
    validate_model_compatibility(chosen, compatible_models, agent_name=name)
    return chosen


def get_env_model():
    """Returns the model that the environment names, or None."""
    return os.environ.get(LLM_DO_MODEL_ENV) or None


def get_model_string(model):
    """Returns the name of a model."""
    return model if isinstance(model, str) else str(getattr(model, "model_name", model))


def model_matches_pattern(model, pattern):
    """Says whether the name of a model fits a pattern such as `anthropic:*`."""
    from fnmatch import fnmatchcase

    return fnmatchcase(model.strip().lower(), pattern.strip().lower())


def validate_model_compatibility(model, compatible_models, *, agent_name="agent"):
    """Raises where a model fits none of the patterns of an agent."""
    if compatible_models is None:
        return
    if not compatible_models:
        raise InvalidCompatibleModelsError(f"agent `{agent_name}` has an empty list of compatible models")
    name = get_model_string(model)
    if not any(model_matches_pattern(name, pattern) for pattern in compatible_models):
        patterns = ", ".join(f"'{pattern}'" for pattern in compatible_models)
        raise ModelCompatibilityError(f"model '{name}' does not fit agent '{agent_name}'; patterns: {patterns}")


__all__ = [
    "InvalidCompatibleModelsError",
    "LLM_DO_MODEL_ENV",
    "ModelCompatibilityError",
    "ModelConfigError",
    "ModelError",
    "ModelInput",
    "NoModelError",
    "get_env_model",
    "get_model_string",
    "model_matches_pattern",
    "register_model_factory",
    "resolve_model",
    "select_model",
    "validate_model_compatibility",
]
