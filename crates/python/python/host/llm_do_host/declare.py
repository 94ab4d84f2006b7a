"""What a project declares, as the protocol writes it, and the targets behind it."""

from .context import NoCall
from .imports import line_of_function, line_of_name
from .output_schema import output_schema
from .results import LARGEST, SMALLEST
from .schema import class_schema, is_async, signature
from .targets import EntryTarget, FunctionTarget


class Declarations:
    """Everything that was found, with an id for each."""

    def __init__(self, root, problems, modules_in_order):
        self.root = root
        self.problems = problems
        self.modules_in_order = modules_in_order
        self.tools = []
        self.toolsets = []
        self.agents = []
        self.entries = []
        self.classes = []
        self.notices = []
        self.targets = {}
        self.sources = {}
        self.class_of = {}
        self._class_count = 0
        self._tool_count = 0
        self._toolset_count = 0

    def loaded(self, version, providers):
        """Returns the message that says what was found."""
        return {
            "op": "loaded",
            "python": version,
            "tools": self.tools,
            "toolsets": self.toolsets,
            "agents": self.agents,
            "entries": self.entries,
            "classes": self.classes,
            "providers": providers,
            "notices": self.notices,
        }

    def notice(self, file, line, message, hint=None):
        """Notes something that the user should know, but that stops nothing."""
        self.notices.append({"file": file, "line": line, "message": message, "hint": hint})

    def no_call(self):
        """Returns what stands for a call while the project is loaded."""
        return NoCall(self.root)

    def missing_name(self, file, name, module, kind):
        """Notes that a name is not in a file."""
        public = [known for known in vars(module) if not known.startswith("_")]
        near = nearest(name, public)
        hint = f"did you mean `{near}`?" if near else None
        self.problems.add(file, None, f"there is no {kind} `{name}` in this file", hint)

    # Tools.

    def next_tool_id(self):
        """Returns an id for a tool."""
        self._tool_count += 1
        return f"t{self._tool_count}"

    def add_function(self, function, name, file, line, **settings):
        """Declares a function as a tool of the project."""
        tool = self.function_tool(function, name, file, line, **settings)
        if tool is None:
            return
        other = next((known for known in self.tools if known["name"] == tool["name"]), None)
        if other is None:
            self.tools.append(tool)
        elif self.targets[other["id"]].function is not function:
            where = f"{other['file']}:{other['line']}"
            self.problems.add(file, tool["line"], f"tool `{tool['name']}` is declared twice", f"the other is at {where}")

    def function_tool(self, function, name, file, line, **settings):
        """Returns the declaration of a function, and keeps its target."""
        meta = getattr(function, "__llmproc_tool__", None)
        line = line_of_function(function) or line
        try:
            form = self._signature(function, name, meta, settings)
        except Exception as problem:
            return self.problems.add(file, line, f"`{name}` cannot be a tool: {problem}")
        needs = list(meta.required_context_keys) if meta and meta.requires_context else []
        tool = self.tool(form.name, form.description, form.schema, file, line, is_async=form.is_async)
        tool["needs"] = needs
        tool["access"] = meta.access if meta else None
        tool["output"] = output_schema(function)
        tool.update((key, value) for key, value in settings.items() if key in tool)
        if meta:
            tool["input"] = meta.apply_to_schema(form.schema)
            self._tell_of_registration(meta, tool)
        target = FunctionTarget(function, form, context_kind(function, form), needs, tool["output"])
        self.targets[tool["id"]] = target
        return tool

    def _tell_of_registration(self, meta, tool):
        """Calls the decorator's `on_register(name, manager)`; there is no manager here."""
        if meta.on_register is None:
            return
        try:
            meta.on_register(tool["name"], None)
        except Exception as problem:
            message = f"on_register of tool `{tool['name']}` failed: {type(problem).__name__}: {problem}"
            self.notice(tool["file"], tool["line"], message)

    def _signature(self, function, name, meta, settings):
        """Reads the signature of a function, with what a decorator or a Tool object adds."""
        if meta is None:
            return signature(function, name=name, description=settings.get("description"))
        return signature(
            function,
            name=meta.name or name,
            description=meta.described(function),
            parameter_descriptions=meta.param_descriptions,
        )

    def tool(self, name, description, schema, file, line, **more):
        """Returns the declaration of a tool with the usual settings."""
        return {
            "id": self.next_tool_id(),
            "name": name,
            "description": description or "",
            "input": schema,
            "output": None,
            "file": file,
            "line": line,
            "access": None,
            "approval": None,
            "judges": False,
            "sequential": False,
            "time_limit": None,
            "needs": [],
            "is_async": True,
            **more,
        }

    # Toolsets.

    def add_toolset(self, declaration, source=None):
        """Declares a toolset under a name that no other has."""
        other = next((known for known in self.toolsets if known["name"] == declaration["name"]), None)
        if other is not None:
            message = f"toolset `{declaration['name']}` is declared twice"
            where = f"the other is at {other['file']}:{other['line']}"
            return self.problems.add(declaration["file"], declaration["line"], message, where)
        self._toolset_count += 1
        declaration["id"] = f"s{self._toolset_count}"
        self.toolsets.append(declaration)
        if source is not None:
            self.sources[declaration["id"]] = source

    def name_of_toolset(self, value):
        """Returns the name under which an object or factory is declared, or None."""
        for declaration in self.toolsets:
            source = self.sources.get(declaration["id"])
            if source is not None and source.comes_from(value):
                return declaration["name"]
        return None

    def check_numbers(self):
        """Refuses schemas with integers that would be rounded on the way."""
        of_toolsets = [tool for toolset in self.toolsets for tool in toolset["tools"]]
        for declared in [*self.tools, *of_toolsets, *self.classes, *self.entries, *self.agents]:
            schemas = [declared.get(key) for key in ("input", "output", "schema")]
            for schema in schemas:
                drop_idle_bounds(schema)
            for number in {huge_integer(schema) for schema in schemas} - {None}:
                message = f"`{declared['name']}`: its schema holds {number}, which does not fit into 64 bits"
                self.problems.add(declared["file"], declared.get("line"), message)

    # Classes and entries.

    def skip_class(self):
        """Leaves out the number of a class that could not be had."""
        self._class_count += 1

    def add_class(self, cls, use, file, name):
        """Declares a class; returns its id, or None where it has no schema."""
        self._class_count += 1
        try:
            schema = class_schema(cls)
        except Exception as problem:
            self.problems.add(file, line_of_name(file, name), f"class `{name}` has no schema: {problem}")
            return None
        id = f"c{self._class_count}"
        self.classes.append({"id": id, "file": file, "name": name, "use": use, "schema": schema})
        self.class_of[id] = cls
        return id

    def add_entry(self, name, function, input_class, file, line, manifest):
        """Declares an entry function."""
        from llm_do.runtime.args import PromptInput

        parameters = positional_parameters(function)
        class_id = None
        if input_class is None or input_class is PromptInput:
            input_class, schema = PromptInput, class_schema(PromptInput)
        else:
            class_id = self.add_class(input_class, "input", file, input_class.__name__)
            schema = self.classes[-1]["schema"] if class_id else {}
        id = f"e{len(self.entries) + 1}"
        self.targets[id] = EntryTarget(function, input_class, min(parameters, 2), is_async(function))
        entry = {"id": id, "name": name, "description": first_paragraph(function), "input": schema}
        self.entries.append({**entry, "class": class_id, "file": file, "line": line, "manifest": manifest})


def context_kind(function, form):
    """Returns which context a function takes: `run`, `call`, `runtime`, or None."""
    if form.context is None:
        return None
    if form.context == "runtime_context":
        return "runtime"
    hint = annotation_text(function, form.context)
    return "run" if "RunContext" in hint or not hint else "call"


def annotation_text(function, name):
    """Returns the annotation of a parameter as text."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    for candidate in (function, getattr(function, "func", None), getattr(type(function), "__call__", None)):
        annotation = getattr(candidate, "__annotations__", {}).get(name)
        if annotation is not None:
            return annotation if isinstance(annotation, str) else repr(annotation)
    return ""


def positional_parameters(function):
    """Returns how many positional parameters a callable takes."""
    plain = getattr(function, "__func__", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return inspected_positional_parameters(function)
    if code.co_flags & 0x04:
        return 2
    return code.co_argcount - (1 if plain is not function else 0)


def inspected_positional_parameters(function):
    """Returns how many positional parameters an odd callable takes."""
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in inspect.signature(function).parameters.values())


def first_paragraph(function):
    """Returns the first paragraph of a docstring."""
    text = (getattr(function, "__doc__", None) or "").strip().partition("\n\n")[0]
    return " ".join(text.split())


def nearest(name, known):
    """Returns the known name that looks most like the wanted one."""
    from difflib import get_close_matches

    found = get_close_matches(name, known, 1)
    return found[0] if found else None


def drop_idle_bounds(schema):
    """Removes bounds that every integer of 64 bits keeps: larger ones never arrive, and Python checks them itself."""
    if isinstance(schema, list):
        for item in schema:
            drop_idle_bounds(item)
    if not isinstance(schema, dict):
        return
    for key in ("maximum", "exclusiveMaximum"):
        if is_integer(schema.get(key)) and schema[key] > LARGEST:
            del schema[key]
    for key in ("minimum", "exclusiveMinimum"):
        if is_integer(schema.get(key)) and schema[key] < SMALLEST:
            del schema[key]
    for key, item in schema.items():
        if key not in ("default", "enum", "const", "examples"):
            drop_idle_bounds(item)


def is_integer(value):
    """Tells whether a value is an integer and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def huge_integer(value):
    """Returns an integer of more than 64 bits that a schema holds, or None."""
    if isinstance(value, int):
        return None if SMALLEST <= value <= LARGEST else value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return next((found for found in map(huge_integer, items) if found is not None), None)
