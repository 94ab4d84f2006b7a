"""Lets projects that were written for pydantic_ai 1 run where pydantic_ai 2 is installed.

Version 2 refuses `@toolset.tool` on a function that takes no context; version 1 took it for what it is. The class is
changed right after its module is imported, and only where the project imports it.
"""

from importlib.machinery import PathFinder

MODULE = "pydantic_ai.toolsets.function"


class AfterImport:
    """Finds one module as usual, and changes it once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        """Returns the spec of the module with a loader that changes it."""
        if name != MODULE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        # The stand-in takes such functions anyway.
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            take_plain_functions(module)

        spec.loader.exec_module = exec_module
        return spec


def take_plain_functions(module):
    """Makes `tool` take functions without a context, as `tool_plain` does."""
    toolset = getattr(module, "FunctionToolset", None)
    if toolset is None or not hasattr(toolset, "tool_plain") or hasattr(toolset, "_llm_do_plain"):
        return
    with_context, plain = toolset.tool, toolset.tool_plain

    def tool(self, function=None, /, **settings):
        if function is None:
            return lambda decorated: tool(self, decorated, **settings)
        chosen = with_context if takes_context(function) else plain
        return chosen(self, function, **settings) if not settings else chosen(self, **settings)(function)

    toolset.tool, toolset._llm_do_plain = tool, True


def takes_context(function):
    """Says whether the first parameter of a function is a RunContext, as far as its annotation tells."""
    from .schema import signature

    try:
        return signature(function).context is not None
    except Exception:
        return True
