# The code of the document, as it is there, without its interfaces. A test counts its lines.

from llm_do import run_worker, run_worker_async

# Sync version
result = run_worker(
    registry=registry,
    worker="my-worker",
    input_data={"task": "..."},
    attachments=None,              # Optional files to expose
    cli_model="openai:gpt-4",      # Fallback model
    approval_callback=callback,    # For tool approvals
    message_callback=on_message,   # For streaming events
)

# Async version
result = await run_worker_async(
    registry=registry,
    worker="my-worker",
    input_data={"task": "..."},
    # ... same parameters
)

result = await call_worker_async(
    registry=registry,
    worker="target-worker",
    input_data=payload,
    caller_context=context,    # Required: parent worker's context
    attachments=files,
)

from llm_do import create_worker, WorkerSpec, WorkerCreationDefaults

spec = WorkerSpec(
    name="new-worker",
    instructions="You are a helpful assistant.",
    description="A simple worker",
)

definition = create_worker(
    registry=registry,
    spec=spec,
    defaults=WorkerCreationDefaults(default_model="openai:gpt-4"),
    force=False,  # Set True to overwrite existing
)

from llm_do import ApprovalController

controller = ApprovalController(
    tool_rules=definition.tool_rules,
    approval_callback=my_callback,
)

# Used internally by tools
result = controller.maybe_run(
    tool_name="sandbox.write",
    payload={"path": "output/file.txt"},
    func=lambda: do_write(),
)

from llm_do import ApprovalDecision, approve_all_callback, strict_mode_callback

# Auto-approve everything (for tests)
result = run_worker(..., approval_callback=approve_all_callback)

# Reject all approval-required tools (strict mode)
result = run_worker(..., approval_callback=strict_mode_callback)

# Custom callback
def my_callback(tool_name: str, payload: dict, reason: str) -> ApprovalDecision:
    # Show prompt to user, get decision
    return ApprovalDecision(
        approved=True,
        approve_for_session=True,  # Don't ask again for same operation
    )
