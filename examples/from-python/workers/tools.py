from llm_do import ApprovalController, ApprovalDecision, WorkerCreationDefaults, WorkerSpec
from llm_do import approve_all_callback, call_worker_async, create_worker, strict_mode_callback
from llmproc import register_tool

registry = None  # the project is the registry


async def delegate(worker: str, payload: str) -> str:
    """Delegates to another worker."""
    result = await call_worker_async(
        registry=registry,
        worker=worker,
        input_data=payload,
        caller_context=None,  # the running call
        attachments=None,
    )
    return result


@register_tool(access="admin")
def make_worker() -> str:
    """Creates and persists a new worker definition."""
    spec = WorkerSpec(
        name="new-worker",
        instructions="You are a helpful assistant.",
        description="A simple worker",
    )

    definition = create_worker(
        registry=registry,
        spec=spec,
        defaults=WorkerCreationDefaults(default_model="test:echo"),
        force=False,  # Set True to overwrite existing
    )
    return str(definition)


# Custom callback
def my_callback(tool_name: str, payload: dict, reason: str) -> ApprovalDecision:
    # Show prompt to user, get decision
    return ApprovalDecision(
        approved=True,
        approve_for_session=True,  # Don't ask again for same operation
    )


def write(path: str, strict: bool = False) -> str:
    """Writes a file, if that is approved."""
    controller = ApprovalController(
        tool_rules={"sandbox.read": {"approval_required": False}},
        approval_callback=strict_mode_callback if strict else my_callback,
    )

    # Used internally by tools
    result = controller.maybe_run(
        tool_name="sandbox.write",
        payload={"path": path},
        func=lambda: f"wrote {path}",
    )
    return result


TOOLS = [delegate, make_worker, write]
