"""Settings and state of one call."""

from llm_do_host.context import CallConfig, CallFrame

from .._missing import missing_names


class CallScope:
    """The scope of an agent's call: it belongs to llm-do, and is offered as a name for annotations only."""

    def __init__(self, *_args, **_options):
        raise TypeError("llm-do opens and closes the scope of a call itself; use ctx.call_agent(..)")


__all__ = ["CallConfig", "CallFrame", "CallScope"]

__getattr__ = missing_names(__name__, __all__)
