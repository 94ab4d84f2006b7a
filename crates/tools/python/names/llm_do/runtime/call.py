"""Settings and state of one call."""

from llm_do_host.context import CallConfig, CallFrame


class CallScope:
    """The scope of an agent's call: it belongs to llm-do, and is offered as a name for annotations only."""

    def __init__(self, *_args, **_options):
        raise TypeError("llm-do opens and closes the scope of a call itself; use ctx.call_agent(..)")


__all__ = ["CallConfig", "CallFrame", "CallScope"]
