"""The start of a process. llm-do starts agents itself; what tools use of this module is the runtime context."""

from llm_do._missing import missing_names


def setup_runtime_context(process=None, runtime_dependencies=None):
    """Returns the runtime context of the call whose code runs."""
    from llm_do_host.output import current_call
    from llm_do_host.runtime_context import runtime_context

    call = current_call.get()
    if call is None:
        raise TypeError(
            "llm-do sets up the runtime context: a tool gets it as `runtime_context` with "
            "`@register_tool(requires_context=True)`"
        )
    context = runtime_context(call)
    context.update(runtime_dependencies or {})
    return context


__all__ = ["setup_runtime_context"]

__getattr__ = missing_names(__name__, __all__)
