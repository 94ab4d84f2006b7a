"""How much a run used, and how much it may use."""

import typing

from ._records import Fresh, record


@record
class RequestUsage:
    """What one request to a model used."""

    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    details: dict = Fresh(dict)

    requests = 1

    @property
    def total_tokens(self):
        """Returns the tokens of input and output together."""
        return self.input_tokens + self.output_tokens


@record
class RunUsage:
    """What a run used."""

    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    details: dict = Fresh(dict)

    @property
    def total_tokens(self):
        """Returns the tokens of input and output together."""
        return self.input_tokens + self.output_tokens


@record
class UsageLimits:
    """How much a run may use."""

    request_limit: typing.Optional[int] = 50
    tool_calls_limit: typing.Optional[int] = None
    input_tokens_limit: typing.Optional[int] = None
    output_tokens_limit: typing.Optional[int] = None
    total_tokens_limit: typing.Optional[int] = None


Usage = RunUsage
