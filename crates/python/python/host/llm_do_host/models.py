"""Models that the project's Python code makes: what llm-do must know to talk to them itself."""

from llm_do.models import factories, register_model_factory


def prefixes():
    """Returns the prefixes for which the project registered a factory."""
    return sorted(factories)


def describe(name):
    """Asks the factory of a name such as `acme:small` and describes the model that it makes."""
    prefix, _, rest = name.partition(":")
    if prefix not in factories:
        raise LookupError(f"no model factory is registered for `{prefix}`")
    return describe_model(factories[prefix](rest), rest)


def describe_model(model, name):
    """Returns address, key and name of a model that speaks OpenAI's chat protocol."""
    source = endpoint_of(model)
    base_url = getattr(source, "base_url", None) if source is not None else None
    if not base_url:
        kind = type(model).__name__
        raise TypeError(
            f"the model factory returned a {kind}; understood are pydantic_ai's OpenAIChatModel, and objects "
            "with base_url, api_key and model_name"
        )
    return {
        "api": "openai-chat",
        "base_url": str(base_url).rstrip("/"),
        "api_key": key_of(source),
        "headers": headers_of(source),
        "model": getattr(model, "model_name", None) or name,
    }


def endpoint_of(model):
    """Returns the part of a model that knows the address: its client, its provider, or the model itself."""
    provider = getattr(model, "_provider", None) or getattr(model, "provider", None)
    for source in (getattr(model, "client", None), getattr(provider, "client", None), provider, model):
        if getattr(source, "base_url", None):
            return source
    return None


def key_of(source):
    """Returns the key of an endpoint, or None."""
    key = getattr(source, "api_key", None)
    return key if isinstance(key, str) else None


def headers_of(source):
    """Returns the headers that the project adds to each request."""
    headers = getattr(source, "_custom_headers", None) or getattr(source, "headers", None)
    if not hasattr(headers, "items"):
        return {}
    return {str(name): str(value) for name, value in headers.items() if isinstance(value, str)}


def name_for_agent(spec):
    """Returns the model of an agent as `provider:name`; a model object is offered under the agent's name."""
    model = spec.model
    if spec.model_id:
        return spec.model_id
    if model is None or isinstance(model, str):
        return model
    name = getattr(model, "model_name", None) or "model"
    if endpoint_of(model) is None:
        system = getattr(model, "system", None)
        return f"{system}:{name}" if isinstance(system, str) else str(name)
    prefix = f"agent-{spec.name}"
    register_model_factory(prefix, lambda _name: model, replace=True)
    return f"{prefix}:{name}"
