"""Imports the project's Python files: each exactly once, whichever way it is referred to.

A file is known under its plain name (`tools`) and, below the project root, under its dotted path (`lib.tools`);
both names give the same module. Files are compiled from their source each time, so that a change within the
second in which a `.pyc` file was written is never overlooked, and nothing is written into the project.
"""

import os
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder

from .results import exception_text


# Packages that llm-do offers where, or although, they are not installed.
OFFERED = ("llm_do", "llmproc")


class Problems:
    """What is wrong with the project's Python files: collected, then told at once."""

    def __init__(self, project):
        self._project = project
        self.list = []

    def add(self, file, line, message, hint=None):
        """Notes a problem, once."""
        problem = {"file": file, "line": line, "message": message, "hint": hint}
        if problem not in self.list:
            self.list.append(problem)

    def add_exception(self, file, problem, what=""):
        """Notes an exception at the line of the project where it came from."""
        place = self._project.place(problem)
        if isinstance(problem, SyntaxError) and (place is None or self._project.holds(problem.filename or "")):
            return self.add(problem.filename or file, problem.lineno, f"{type(problem).__name__}: {problem.msg}")
        place = place or (file, None)
        self.add(place[0], place[1], what + exception_text(problem), import_hint(problem))


def import_hint(problem):
    """Says what to do about a package that is missing."""
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        package = problem.name.partition(".")[0]
        if package in OFFERED and package in sys.modules:
            from llm_do._missing import advice

            missing = f"llm-do brings `{package}` itself, and has no module `{problem.name}`"
            found = advice(problem.name)
            return f"{missing}; {found}" if found else missing
        return f"if `{package}` is a package, install it: {sys.executable} -m pip install {package}"
    if isinstance(problem, SystemExit):
        return "a module must not end the process when it is imported; guard it with `if __name__ == '__main__':`"
    return None


class ProjectFinder:
    """Finds the project's listed files by every name under which they can be imported."""

    def __init__(self, root, files):
        self._file_of = {}
        self._names_of = {}
        self._loaded = {}
        self._failed = {}
        # The modules in the order in which they were finished: what two of them hold was made by the first.
        self.in_order = []
        self._standard_path = [entry for entry in sys.path if _is_standard_directory(entry)]
        for file in files:
            self.add(root, file)

    def add(self, root, file):
        """Makes a file importable."""
        if file in self._names_of:
            return
        names = [name for name in import_names(root, file) if name not in self._file_of]
        names = names or [f"project_file_{len(self._names_of) + 1}"]
        self._names_of[file] = names
        self._file_of.update((name, file) for name in names)

    def load(self, file):
        """Returns the module of a file, executing it if that was not done yet."""
        if file in self._failed:
            raise self._failed[file]
        if file not in self._loaded:
            name = self._names_of[file][0]
            if "." in name and name.rpartition(".")[0] not in sys.modules:
                import_parent(name)
            self._execute(self._new_module(name, file))
        return self._loaded[file]

    # The protocol of finders and loaders.

    def find_spec(self, name, path=None, target=None):
        """Finds a listed file; sees to it that the project never hides a standard module."""
        file = self._file_of.get(name)
        if file is not None:
            return ModuleSpec(name, self, origin=file)
        if "." not in name and name in sys.stdlib_module_names:
            return PathFinder.find_spec(name, self._standard_path)
        return None

    def create_module(self, spec):
        """Makes the empty module, or returns the one that exists under another name."""
        return self._loaded.get(spec.origin) or self._new_module(spec.name, spec.origin)

    def exec_module(self, module):
        """Executes the file of a module, once."""
        file = module.__file__
        if file in self._failed:
            raise self._failed[file]
        if file not in self._loaded:
            self._execute(module)

    def _new_module(self, name, file):
        """Makes an empty module for a file."""
        module = type(sys)(name)
        module.__file__ = file
        module.__spec__ = ModuleSpec(name, self, origin=file)
        module.__loader__ = self
        module.__package__ = name.rpartition(".")[0]
        return module

    def _execute(self, module):
        """Runs the file, with its module registered under its name; a failure is kept, and nothing else."""
        file = module.__file__
        self._loaded[file] = module
        sys.modules[module.__name__] = module
        try:
            with open(file, "rb") as source:
                code = compile(source.read(), file, "exec", dont_inherit=True)
            exec(code, module.__dict__)
            self.in_order.append(module)
        except BaseException as problem:
            self._failed[file] = problem
            del self._loaded[file]
            for name in self._names_of[file]:
                sys.modules.pop(name, None)
            raise

    def get_source(self, name):
        """Returns the source of a module, for tracebacks and `inspect`."""
        file = self._file_of.get(name)
        return read_source(file) if file else None


def import_parent(name):
    """Imports the packages above a dotted name, as `import` does."""
    __import__(name.rpartition(".")[0])


def import_names(root, file):
    """Returns the names under which a file can be imported, without those of standard modules."""
    stem = os.path.splitext(os.path.basename(file))[0]
    below = os.path.relpath(os.path.splitext(file)[0], root).split(os.sep) if root else []
    names = [stem] if stem.isidentifier() else []
    if len(below) > 1 and all(part.isidentifier() for part in below):
        names.append(".".join(below))
    return [name for name in names if name not in sys.stdlib_module_names and not _is_taken(name, file)]


def _is_taken(name, file):
    """Says whether another module has the name already."""
    module = sys.modules.get(name)
    return module is not None and getattr(module, "__file__", None) != file


def _is_standard_directory(entry):
    """Says whether a directory of the path holds Python's own modules."""
    home = os.path.dirname(os.__file__)
    return entry in (home, os.path.join(home, "lib-dynload")) or entry.endswith(f"python{sys.version_info[0]}{sys.version_info[1]}.zip")


def read_source(file):
    """Returns the text of a source file, or an empty text."""
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def line_of_name(file, name):
    """Returns the line in which a module assigns or defines a name."""
    name = re.escape(name)
    found = re.search(rf"^(?:{name}\s*(?::[^=\n]*)?=|(?:class|def|async def)\s+{name}\b)", read_source(file), re.MULTILINE)
    return found.string.count("\n", 0, found.start()) + 1 if found else None


def line_of_function(function):
    """Returns the line in which a function is defined."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "__func__", function)
    function = getattr(function, "func", function)
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code else None


