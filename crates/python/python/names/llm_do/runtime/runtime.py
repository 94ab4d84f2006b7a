"""The runtime: the `llm-do` program itself."""


class Runtime:
    """Refuses to be made: the program that loaded this file is the runtime."""

    def __init__(self, *_args, **_options):
        raise TypeError(
            "the llm-do program is the runtime: run it with `llm-do run PATH`, and call agents from an entry "
            "function with `await ctx.call_agent(name, input)`"
        )


class RuntimeConfig(Runtime):
    """Refuses to be made: settings stand in the manifest or on the command line."""
