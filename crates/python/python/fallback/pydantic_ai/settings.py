"""Settings of a model."""

import typing


class ModelSettings(typing.TypedDict, total=False):
    """What a request to a model may set."""

    max_tokens: int
    temperature: float
    top_p: float
    timeout: float
    parallel_tool_calls: bool
    seed: int
    presence_penalty: float
    frequency_penalty: float
    stop_sequences: typing.List[str]
    extra_headers: typing.Dict[str, str]
    extra_body: typing.Any
