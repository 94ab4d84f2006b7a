"""The built-in toolsets, by name: llm-do has them, so an agent only names them."""

BUILTIN_TOOLSETS = (
    "filesystem_cwd",
    "filesystem_cwd_ro",
    "filesystem_project",
    "filesystem_project_ro",
    "shell_readonly",
    "shell_file_ops",
    "dynamic_agents",
)


def build_builtin_toolsets(*_args, **_options):
    """Returns the built-in toolsets by name; each stands for itself."""
    return {name: name for name in BUILTIN_TOOLSETS}


__all__ = ["BUILTIN_TOOLSETS", "build_builtin_toolsets"]
