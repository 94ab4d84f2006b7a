"""What code reads of the whole run: usage, trace and the registry of what it can call.

Each value is a copy of what llm-do knew at the moment it was read.
"""

from collections.abc import Mapping

NANO_DOLLARS = 1e9


class Record:
    """An object with read-only fields that prints like a dataclass."""

    __slots__ = ()

    def __repr__(self):
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None


class Usage(Record):
    """What requests to one model used.

    `input_tokens` includes cached tokens. `cost` is in dollars; None if the price of a request is unknown.
    """

    __slots__ = (
        "requests",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "cost",
    )

    def __init__(self, fields):
        self.requests = fields["requests"]
        self.cache_read_tokens = fields["cache_read"]
        self.cache_write_tokens = fields["cache_write"]
        self.input_tokens = fields["input"] + self.cache_read_tokens + self.cache_write_tokens
        self.output_tokens = fields["output"]
        self.total_tokens = self.input_tokens + self.output_tokens
        self.reasoning_tokens = fields["reasoning"]
        cost = fields["cost"]
        self.cost = None if cost["unpriced"] else cost["known"] / NANO_DOLLARS

    # The names that older versions of pydantic_ai use.

    @property
    def request_tokens(self):
        """The input tokens."""
        return self.input_tokens

    @property
    def response_tokens(self):
        """The output tokens."""
        return self.output_tokens


class TraceEntry(Record):
    """One call of the run. `output_data` and `error` are None while it runs."""

    __slots__ = ("key", "name", "kind", "depth", "input_data", "output_data", "error", "duration_ms")

    def __init__(self, fields):
        for name in self.__slots__:
            setattr(self, name, fields[name])


class RegistryEntry(Record):
    """A tool or agent that can be called by name."""

    __slots__ = ("name", "kind", "description")

    def __init__(self, fields):
        for name in self.__slots__:
            setattr(self, name, fields[name])


class Registry(Mapping):
    """The tools and agents that code of this call can call, by name."""

    def __init__(self, entries):
        self._entries = {fields["name"]: RegistryEntry(fields) for fields in entries}

    def __getitem__(self, name):
        return self._entries[name]

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __repr__(self):
        return f"Registry({list(self._entries)})"


class ActiveToolset(str):
    """A toolset of the calling agent: its name, and the Python object that is open for this call (`toolset`).

    `toolset` is None for a toolset that is not written in Python.
    """

    __slots__ = ("toolset",)

    def __new__(cls, name, toolset=None):
        made = super().__new__(cls, name)
        made.toolset = toolset
        return made

    @property
    def name(self):
        """The name of the toolset."""
        return str(self)

    id = name
