"""The decorator that makes a function a tool."""

from llm_do._missing import missing_names

LEVELS = ("read", "write", "admin")


class ToolMeta:
    """What `register_tool` says about a function."""

    def __init__(self, name, description, param_descriptions, schema, required, schema_modifier):
        self.name = name
        self.description = description
        self.param_descriptions = dict(param_descriptions or {})
        self.schema = schema
        self.required = required
        self.schema_modifier = schema_modifier
        self.requires_context = False
        self.required_context_keys = ()
        self.access = "write"
        self.on_register = None

    def described(self, function):
        """Returns the description of the tool: the given one, else the first line of the docstring."""
        if self.description:
            return self.description
        lines = (function.__doc__ or "").strip().splitlines()
        return lines[0].strip() if lines else f"Tool for {self.name or function.__name__}"

    def apply_to_schema(self, schema):
        """Returns the schema of the parameters with what the decorator changes."""
        if self.schema is not None:
            schema = dict(self.schema)
            schema = schema.get("input_schema", schema)
        if self.required is not None:
            schema = {**schema, "required": list(self.required)}
        if self.schema_modifier is not None:
            schema = self.schema_modifier(schema, {}) or schema
        return schema


def register_tool(
    name=None,
    description=None,
    param_descriptions=None,
    required=None,
    schema=None,
    requires_context=False,
    required_context_keys=None,
    schema_modifier=None,
    access="write",
    on_register=None,
):
    """Makes a function a tool; usable with or without arguments.

    `required_context_keys` are checked before the function is called, which it is only with `requires_context`.
    """
    if callable(name):
        return register_tool()(name)
    meta = ToolMeta(name, description, param_descriptions, schema, required, schema_modifier)
    meta.requires_context = bool(requires_context)
    meta.required_context_keys = tuple(required_context_keys or ())
    meta.access = access_word(access)
    meta.on_register = on_register

    def decorate(function):
        function.__llmproc_tool__ = meta
        return function

    return decorate


def access_word(access):
    """Returns an access level, given as a word or an enum, as a word."""
    word = str(getattr(access, "value", access)).strip().lower()
    if word not in LEVELS:
        raise ValueError(f"unknown access level {access!r}; expected one of {', '.join(LEVELS)}")
    return word


__all__ = ["register_tool"]

__getattr__ = missing_names(__name__, __all__)
