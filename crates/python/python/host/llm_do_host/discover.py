"""Finds what a module offers: by `TOOLS`, `TOOLSETS`, `__all__` or decorators, and by the objects it made."""

from llm_do.runtime.contracts import AgentEntry, AgentSpec, FunctionEntry, ToolEntry, ToolsetSpec
from llm_do.toolsets import declared_kind

from . import models
from .context import AGENTS_OF_PROJECT, run_context
from .imports import line_of_function, line_of_name
from .instances import ToolsetSource, is_toolset, tools_of
from .loops import run_now
from .output_schema import output_schema
from .targets import ToolsetTarget

FUNCTION = type(lambda: None)


def discover(declarations, modules):
    """Declares everything that the modules offer: agents last, since they name tools and toolsets of any file."""
    searches = [Discovery(declarations, file, module) for file, module in modules.items()]
    for search in searches:
        search.tools()
        search.toolsets()
    for search in searches:
        search.agents()
        search.entries()


class Discovery:
    """The search through one module."""

    def __init__(self, declarations, file, module):
        self._declarations = declarations
        self._file = file
        self._module = module
        self._names = vars(module)

    def _problem(self, name, message, hint=None):
        """Notes a problem at the line that assigns a name."""
        self._declarations.problems.add(self._file, line_of_name(self._file, name), message, hint)

    def _own(self, is_wanted):
        """Returns the public values of a kind that this module made, and did not import from another file."""
        for name, value in list(self._names.items()):
            if not name.startswith("_") and is_wanted(value) and self._owner(value) is self._module:
                yield name, value

    def _owner(self, value):
        """Returns the file of the project that a value comes from: whichever had it first."""
        for module in self._declarations.modules_in_order:
            if any(known is value for known in vars(module).values()):
                return module
        return None

    # Tools.

    def tools(self):
        """Declares the tools: `TOOLS`, else `__all__`, else what `register_tool` decorates; and every `ToolEntry`."""
        for variable, entry in self._own(lambda value: isinstance(value, ToolEntry)):
            self._listed_tool(entry.name, entry, variable)
        if "TOOLS" in self._names:
            return self._listed_tools(self._names["TOOLS"])
        if "__all__" in self._names:
            return self._exported_functions(self._names["__all__"])
        for name, value in self._own(is_registered_tool):
            self._function(name, value)

    def _listed_tools(self, tools):
        """Declares the entries of `TOOLS`."""
        if isinstance(tools, dict):
            pairs = list(tools.items())
        elif isinstance(tools, (list, tuple)):
            pairs = [(None, tool) for tool in tools]
        else:
            found = type(tools).__name__
            return self._problem("TOOLS", f"TOOLS must be a dict or a list, not {found}")
        for name, tool in pairs:
            self._listed_tool(name, tool)

    def _listed_tool(self, name, tool, variable="TOOLS"):
        """Declares one entry of `TOOLS`, or what a variable holds."""
        if isinstance(tool, ToolEntry):
            return self._tool_object(name, tool.tool, variable, tool.requires_approval)
        if name is not None and not isinstance(name, str):
            return self._problem("TOOLS", f"a key of TOOLS is {name!r}; expected the name of a tool")
        if is_tool_object(tool):
            return self._tool_object(name, tool)
        if is_toolset(tool) or isinstance(tool, type) or not callable(tool):
            shown = f"`{name}`" if name else repr(tool)[:80]
            hint = "list it under TOOLSETS" if is_toolset(tool) else None
            return self._problem("TOOLS", f"TOOLS contains {shown}, which is no function", hint)
        name = name or getattr(tool, "__name__", None)
        if name is None or name == "<lambda>":
            return self._problem("TOOLS", "TOOLS contains a function without a name", "use a dict: name -> function")
        self._function(name, tool, line_of_name(self._file, "TOOLS"))

    def _tool_object(self, name, tool, variable="TOOLS", asks=False):
        """Declares pydantic_ai's Tool."""
        settings = {
            "description": tool.description,
            "sequential": bool(getattr(tool, "sequential", False)),
            "time_limit": getattr(tool, "timeout", None),
            "approval": "ask" if asks or getattr(tool, "requires_approval", False) else None,
        }
        self._function(name or tool.name, tool.function, line_of_name(self._file, variable), **settings)

    def _exported_functions(self, names):
        """Declares the functions that `__all__` names; classes, constants and toolsets are passed over."""
        for name in names:
            if name not in self._names:
                self._problem("__all__", f"__all__ names `{name}`, which the module does not have")
            elif isinstance(self._names[name], FUNCTION):
                self._function(name, self._names[name])

    def _function(self, name, function, line=None, **settings):
        """Declares one function."""
        self._declarations.add_function(function, name, self._file, line, **settings)

    # Toolsets.

    def toolsets(self):
        """Declares the toolsets: `TOOLSETS`, else the objects that the module made."""
        if "TOOLSETS" in self._names:
            return self._listed_toolsets(self._names["TOOLSETS"])
        for name, value in self._own(lambda value: is_toolset(value) or isinstance(value, ToolsetSpec)):
            self._toolset(name, value, line_of_name(self._file, name))

    def _listed_toolsets(self, toolsets):
        """Declares the entries of `TOOLSETS`."""
        line = line_of_name(self._file, "TOOLSETS")
        if isinstance(toolsets, dict):
            for name, value in toolsets.items():
                self._toolset(name, value, line)
        elif isinstance(toolsets, (list, tuple)):
            for value in toolsets:
                self._unnamed_toolset(value, line)
        else:
            self._problem("TOOLSETS", f"TOOLSETS must be a dict or a list, not {type(toolsets).__name__}")

    def _unnamed_toolset(self, value, line):
        """Declares an entry of a list: a factory by its name, an instance by its id."""
        name = getattr(value, "id", None) if is_toolset(value) else getattr(value, "__name__", None)
        if not isinstance(name, str) or name == "<lambda>":
            shown = type(value).__name__
            return self._problem("TOOLSETS", f"TOOLSETS contains a {shown} without a name", "use a dict: name -> toolset")
        self._toolset(name, value, line)

    def _toolset(self, name, value, line):
        """Declares one toolset."""
        if not isinstance(name, str) or not name:
            return self._problem("TOOLSETS", f"a key of TOOLSETS is {name!r}; expected the name of a toolset")
        source = toolset_source(name, value)
        if source is None:
            shown = type(value).__name__
            return self._problem("TOOLSETS", f"toolset `{name}` is a {shown}; expected a toolset or a function that makes one")
        if source.shared is None:
            line = line_of_function(getattr(value, "factory", value)) or line
        try:
            made = run_now(lambda: learn(source, self._declarations.no_call()))
        except BaseException as problem:
            return self._declarations.problems.add_exception(self._file, problem, f"toolset `{name}`: ")
        self._declare_toolset(name, source, made, line)

    def _declare_toolset(self, name, source, made, line):
        """Declares a toolset whose tools are known."""
        toolset, tools = made
        declaration = {"id": None, "name": name, "file": self._file, "line": line, "kind": "python", "tools": []}
        kind = declared_kind(toolset)
        if kind is not None:
            return self._builtin_toolset(declaration, kind, toolset)
        config = approval_config(toolset)
        judges = callable(getattr(toolset, "needs_approval", None))
        declaration["tools"] = [
            self._toolset_tool(tool_name, tool, config, judges, line) for tool_name, tool in tools.items()
        ]
        self._declarations.add_toolset(declaration, source)

    def _builtin_toolset(self, declaration, kind, toolset):
        """Declares a toolset that llm-do itself makes from the settings that the project gives."""
        if kind.changed_by is not None:
            message = f"toolset `{declaration['name']}` changes `{kind.changed_by}` of {kind.base}, which llm-do itself runs"
            hint = "write a toolset of your own, or say it in the toolset's settings"
            return self._declarations.problems.add(self._file, declaration["line"], message, hint)
        settings = {"kind": kind.name, "config": toolset.config, "read_only": kind.read_only}
        self._declarations.add_toolset({**declaration, **settings})

    def _toolset_tool(self, name, tool, config, judges, line):
        """Returns the declaration of one tool of a toolset, and keeps its target."""
        form = tool.tool_def
        function = getattr(getattr(getattr(tool, "call_func", None), "__self__", None), "function", None)
        line = line_of_function(function) or line
        declared = self._declarations.tool(name, form.description, form.parameters_json_schema, self._file, line)
        declared["sequential"] = bool(getattr(form, "sequential", False))
        declared["time_limit"] = getattr(form, "timeout", None)
        declared["judges"] = judges
        declared["approval"] = approval_of(config.get(name), form)
        declared["output"] = output_schema(function)
        self._declarations.targets[declared["id"]] = ToolsetTarget(name, config, declared["output"])
        return declared

    # Agents and entries.

    def agents(self):
        """Declares the agents that the module makes."""
        for name, value in self._own(lambda value: isinstance(value, (AgentSpec, AgentEntry))):
            self._agent(name, value.spec if isinstance(value, AgentEntry) else value)

    def _agent(self, variable, spec):
        """Declares one agent."""
        line = line_of_name(self._file, variable)
        AGENTS_OF_PROJECT[id(spec)] = spec
        if any(agent["name"] == spec.name for agent in self._declarations.agents):
            return self._problem(variable, f"agent `{spec.name}` is declared twice")
        class_id = None
        if spec.has_own_input():
            class_id = self._declarations.add_class(spec.input_model, "input", self._file, spec.input_model.__name__)
        self._declarations.agents.append(
            {
                "name": spec.name,
                "description": spec.description or "",
                "instructions": spec.instructions,
                "model": models.name_for_agent(spec),
                "tools": [self._agent_tool(spec, tool, line) for tool in spec.tools],
                "toolsets": [self._agent_toolset(spec, toolset, line) for toolset in spec.toolsets],
                "class": class_id,
                "output": self._output_schema(spec, line),
                "file": self._file,
                "line": line,
            }
        )

    def _output_schema(self, spec, line):
        """Returns the schema of an agent's answer."""
        if spec.output_model is None:
            return None
        from .schema import class_schema

        try:
            return class_schema(spec.output_model)
        except Exception as problem:
            return self._declarations.problems.add(self._file, line, f"agent `{spec.name}`: {problem}")

    def _agent_tool(self, spec, tool, line):
        """Returns the name of an agent's tool; a function that is not declared yet is."""
        if isinstance(tool, str):
            return tool
        has_name = is_tool_object(tool) or isinstance(tool, ToolEntry)
        name = tool.name if has_name else getattr(tool, "__name__", None)
        known = any(declared["name"] == name for declared in self._declarations.tools)
        if not known:
            self._listed_tool(name, tool)
        return name

    def _agent_toolset(self, spec, toolset, line):
        """Returns the name of an agent's toolset; one that is not declared yet is."""
        if isinstance(toolset, str):
            return toolset
        if isinstance(toolset, AgentSpec):
            return toolset.name
        name = self._declarations.name_of_toolset(toolset) or self._name_of_value(toolset) or getattr(toolset, "id", None) or getattr(toolset, "__name__", None)
        name = name if isinstance(name, str) else f"{spec.name}_toolset_{spec.toolsets.index(toolset) + 1}"
        if not any(declared["name"] == name for declared in self._declarations.toolsets):
            self._toolset(name, toolset, line)
        return name

    def _name_of_value(self, toolset):
        """Returns the name under which the module declares a toolset."""
        listed = self._names.get("TOOLSETS")
        pairs = listed.items() if isinstance(listed, dict) else self._names.items()
        return next((name for name, value in pairs if value is toolset and not name.startswith("_")), None)

    def entries(self):
        """Declares the entries that the module makes."""
        for name, value in self._own(lambda value: isinstance(value, FunctionEntry)):
            line = line_of_name(self._file, name)
            self._declarations.add_entry(value.name, value.fn, value.input_model, self._file, line, False)


def choose_entry(declarations, modules, wanted):
    """Marks the entry that the manifest names; without one there may be at most one in the files."""
    if wanted is None:
        if len(declarations.entries) > 1:
            names = ", ".join(f"`{entry['name']}`" for entry in declarations.entries)
            second = declarations.entries[1]
            hint = "name one of them in the manifest: entry.function"
            declarations.problems.add(second["file"], second["line"], f"there are several entries: {names}", hint)
        return
    file, name = wanted["file"], wanted["name"]
    if file not in modules:
        return
    for entry in declarations.entries:
        if entry["file"] == file and entry["name"] == name:
            entry["manifest"] = True
            return
    add_entry_function(declarations, modules[file], file, name)


def add_entry_function(declarations, module, file, name):
    """Declares the function that the manifest names as the entry."""
    function = getattr(module, name, None)
    if isinstance(function, FunctionEntry):
        line = line_of_name(file, name)
        return declarations.add_entry(name, function.fn, function.input_model, file, line, True)
    if function is None or not callable(function) or isinstance(function, type):
        return declarations.missing_name(file, name, module, "function")
    declarations.add_entry(name, function, input_class_of(function), file, line_of_function(function), True)


def input_class_of(function):
    """Returns the class in the annotation of an entry's first parameter; None for any other annotation."""
    plain = getattr(function, "__func__", function)
    while hasattr(plain, "__wrapped__"):
        plain = plain.__wrapped__
    code = getattr(plain, "__code__", None)
    if code is None or code.co_argcount == 0:
        return None
    annotation = getattr(plain, "__annotations__", {}).get(code.co_varnames[0])
    if isinstance(annotation, str):
        annotation = plain.__globals__.get(annotation)
    is_input = isinstance(annotation, type) and callable(getattr(annotation, "prompt_messages", None))
    # The abstract base class says nothing about the input.
    return annotation if is_input and annotation.__name__ not in ("AgentArgs", "WorkerArgs") else None


# Toolsets.


def toolset_source(name, value):
    """Returns where instances come from; None for a value that is no toolset."""
    if is_toolset(value):
        return ToolsetSource(name, shared=value)
    factory = value.factory if isinstance(value, ToolsetSpec) else value
    if not callable(factory):
        return None
    return ToolsetSource(name, factory=factory, takes_context=takes_context(factory))


def takes_context(factory):
    """Says whether a factory takes a RunContext: whether it has a positional parameter without a default."""
    plain = getattr(factory, "__func__", factory)
    if isinstance(plain, FUNCTION):
        required = plain.__code__.co_argcount - len(plain.__defaults__ or ()) - (1 if plain is not factory else 0)
        return required > 0
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(factory).parameters.values()
    return any(parameter.kind in kinds and parameter.default is parameter.empty for parameter in parameters)


async def learn(source, no_call):
    """Makes a toolset once to learn its tools, and cleans it up again. It is not entered: nothing is run yet."""
    context = run_context(no_call)
    toolset = await source.make(context)
    if declared_kind(toolset) is not None:
        return toolset, {}
    return toolset, await tools_of(source, toolset, context)


def approval_config(toolset):
    """Returns the approval settings that `set_toolset_approval_config` stored."""
    return getattr(toolset, "__llm_do_approval_config__", None) or {}


def approval_of(settings, form):
    """Returns the approval of a tool as the protocol writes it; None where nothing is said."""
    if isinstance(settings, dict):
        if settings.get("blocked"):
            return "blocked"
        if "pre_approved" in settings:
            return "pre_approved" if settings["pre_approved"] else "ask"
    return "ask" if getattr(form, "kind", None) == "unapproved" else None


def is_registered_tool(value):
    """Says whether a value is a function that LLMProc's `register_tool` decorates."""
    return hasattr(value, "__llmproc_tool__") and not isinstance(value, type)


def is_tool_object(value):
    """Says whether a value is pydantic_ai's Tool, real or stand-in."""
    return any(kind.__name__ == "Tool" for kind in type(value).__mro__) and callable(getattr(value, "function", None))


