# The code of the document, as it is there. A test counts its lines.

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
    return result

process.call_tool("write_stderr", {"message": "starting step"})
print(process.get_stderr_log())
