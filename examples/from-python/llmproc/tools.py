from llmproc.tools.function_tools import register_tool

@register_tool(
    requires_context=True
)
async def example_tool(param1: str, param2: int, runtime_context=None):
    # Access the process from the context
    process = runtime_context["process"]

    # Use the process to do something
    return f"Process model: {process.model_name}"

@register_tool(
    requires_context=True,
    required_context_keys=["process", "linked_programs"]
)
async def spawn_tool(program_name: str, prompt: str, runtime_context=None):
    # Context validation happens automatically via the decorator
    # You can safely access the required keys without additional checks
    process = runtime_context["process"]
    linked_programs = runtime_context["linked_programs"]

    # Implementation...
    result = await linked_programs[program_name].run(prompt)
    return result

@register_tool(requires_context=True, required_context_keys=["process"])
def step(runtime_context=None):
    process = runtime_context["process"]
    process.call_tool("write_stderr", {"message": "starting step"})
    log = process.get_stderr_log()
    print(log)  # What code prints is added to the log, so a later `get_stderr_log()` has this line, too.
    return log
