"""Declarations of llm-do's own toolsets: their settings stand in Python, their tools run in llm-do."""


class DeclaredToolset:
    """A toolset of llm-do with the settings of the project."""

    kind = None
    read_only = False

    def __init__(self, config=None, id=None, max_retries=1):
        if config is not None and not isinstance(config, dict):
            raise TypeError(f"the config of {type(self).__name__} must be a dict, not {type(config).__name__}")
        self.config = dict(config or {})
        self.id = id
        self.max_retries = max_retries

    def __repr__(self):
        return f"{type(self).__name__}(config={self.config!r}, id={self.id!r})"

    async def get_tools(self, ctx):
        """Returns no tools: llm-do has them."""
        return {}

    async def call_tool(self, name, tool_args, ctx, tool):
        """Refuses: llm-do runs the tools."""
        raise TypeError(f"{type(self).__name__} is run by llm-do itself; call it with `await ctx.call({name!r}, ..)`")


class FileSystemToolset(DeclaredToolset):
    """Files: `base_path`, `read_approval`, `write_approval`."""

    kind = "filesystem"


class ReadOnlyFileSystemToolset(FileSystemToolset):
    """Files, without the tools that write."""

    read_only = True


class ShellToolset(DeclaredToolset):
    """Commands: `rules` and `default`."""

    kind = "shell"


class DeclaredKind:
    """Which toolset of llm-do an object declares; `changed_by` is a method that a subclass replaces."""

    def __init__(self, toolset):
        base = next(kind for kind in type(toolset).__mro__ if kind.__module__ == __name__)
        self.name = toolset.kind
        self.read_only = toolset.read_only
        self.base = base.__name__
        self.changed_by = next((name for name in _RUN_BY_LLM_DO if _defined_outside(toolset, name)), None)


_RUN_BY_LLM_DO = ("get_tools", "call_tool", "needs_approval", "get_approval_description")


def _defined_outside(toolset, name):
    """Says whether a subclass in the project replaces or adds a method."""
    return any(name in vars(kind) for kind in type(toolset).__mro__ if kind.__module__ not in (__name__, "builtins"))


def declared_kind(toolset):
    """Returns which of llm-do's own toolsets an object declares, or None."""
    return DeclaredKind(toolset) if isinstance(toolset, DeclaredToolset) else None
