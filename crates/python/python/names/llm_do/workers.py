"""Workers: the functions of the first llm-do, for code that runs in a tool or an entry of a project.

They act in the name of the call in which they run, through the same gate as `ctx.deps.call`. The parameters `registry`,
`caller_context` and callbacks have no use here: the project is the registry, and llm-do asks for approvals.
"""

from llm_do_host.context import call_input
from llm_do_host.output import current_call

from .runtime.contracts import AgentSpec


class WorkerCreationDefaults:
    """What a created worker gets if its spec does not say it. Only the model has a counterpart here."""

    def __init__(self, default_model=None):
        self.default_model = default_model

    def __repr__(self):
        return f"WorkerCreationDefaults(default_model={self.default_model!r})"


def call_worker(worker, input_data=None, attachments=None, registry=None, caller_context=None):
    """Calls an agent from a synchronous tool and returns its answer."""
    fields = _call_fields(worker, input_data, attachments)
    return _running_call("call_worker").ask_from_thread("call", **fields)


async def call_worker_async(worker, input_data=None, attachments=None, registry=None, caller_context=None):
    """Calls an agent from an async tool and returns its answer."""
    fields = _call_fields(worker, input_data, attachments)
    return await _running_call("call_worker_async").ask("call", **fields)


def create_worker(spec, defaults=None, registry=None, force=False):
    """Creates an agent from a synchronous tool, with the tool `agent_create`; returns what that tool answers.

    The calling agent needs the toolset `dynamic_agents`, and a person sees the whole definition first.
    """
    fields = _creation_fields(spec, defaults)
    return _running_call("create_worker").ask_from_thread("call", **fields)


async def create_worker_async(spec, defaults=None, registry=None, force=False):
    """Creates an agent from an async tool; see `create_worker`."""
    fields = _creation_fields(spec, defaults)
    return await _running_call("create_worker_async").ask("call", **fields)


def _running_call(function):
    """Returns the call whose code runs; raises outside of a call."""
    call = current_call.get()
    if call is None:
        raise TypeError(
            f"{function}() works inside a tool or an entry function; at the top level of a file, "
            "`AgentSpec(name=.., instructions=..)` declares an agent"
        )
    return call


def _call_fields(worker, input_data, attachments):
    """Returns the question that calls an agent."""
    value = call_input(input_data, {})
    if attachments:
        parts = value if isinstance(value, list) else [{"text": value if isinstance(value, str) else str(value)}]
        value = [*parts, *({"attachment": {"name": str(path), "path": str(path)}} for path in attachments)]
    return {"name": getattr(worker, "name", worker), "input": value, "agents_only": True}


def _creation_fields(spec, defaults):
    """Returns the question that creates an agent."""
    if not isinstance(spec, AgentSpec):
        raise TypeError(f"create_worker needs a WorkerSpec, not a {type(spec).__name__}")
    definition = {"name": spec.name, "instructions": spec.instructions, "description": spec.description or ""}
    model = spec.model or getattr(defaults, "default_model", None)
    if model is not None:
        definition["model"] = model
    for key in ("tools", "toolsets"):
        names = getattr(spec, key)
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"a created agent is given `{key}` by their names")
        if names:
            definition[key] = names
    return {"name": "agent_create", "input": definition, "agents_only": False}


__all__ = [
    "WorkerCreationDefaults",
    "call_worker",
    "call_worker_async",
    "create_worker",
    "create_worker_async",
]
