"""Loads a project: imports its files and finds tools, toolsets, agents, entries and input classes.

All problems are collected and told at once. Nothing heavy may be imported here: a project that defines three
functions should be ready in the time that Python itself needs.
"""

import os
import sys

from . import discover
from .declare import Declarations
from .imports import Problems, ProjectFinder
from .newer import AfterImport
from .results import Project


def load(message, report=lambda file: None):
    """Loads a project; returns its declarations and the problems.

    `report` is told which file is imported, and None when all are.
    """
    root, files = message["root"], list(message["files"])
    wanted = wanted_files(message)
    project = Project(root, wanted)
    problems = Problems(project)
    extend_path(root, wanted)
    finder = ProjectFinder(root, wanted)
    sys.meta_path[:0] = [finder, AfterImport()]
    modules = import_files(finder, wanted, problems, report)
    report(None)
    declarations = Declarations(root, problems, finder.in_order)
    add_classes(declarations, modules, message.get("classes") or [])
    discover.discover(declarations, {file: modules[file] for file in files if file in modules})
    discover.choose_entry(declarations, modules, message.get("entry"))
    declarations.check_numbers()
    return project, declarations, problems


def imported(root):
    """Returns the files of the project that were imported, and the directories in which modules are looked for."""
    roots = tuple({os.path.join(os.path.abspath(root), ""), os.path.join(os.path.realpath(root), "")})
    files = set()
    for module in list(sys.modules.values()):
        try:
            file = os.path.abspath(module.__file__)
        except Exception:  # built in, or an object that only looks like a module
            continue
        # Virtual environments are protected as a whole.
        if file.startswith(roots) and "site-packages" not in file:
            files.add(file)
    search = [entry for entry in sys.path if isinstance(entry, str)]
    return {"files": sorted(files), "search": search}


def wanted_files(message):
    """Returns every file that is named anywhere in the message, once."""
    named = [entry["file"] for entry in message.get("classes") or []]
    entry = message.get("entry")
    named += [entry["file"]] if entry else []
    return list(dict.fromkeys([*message["files"], *named]))


def extend_path(root, files):
    """Puts the directories of the project's files and its root on the path, after the host's own two."""
    directories = [os.path.dirname(file) for file in files] + [root]
    sys.path[2:2] = [entry for entry in dict.fromkeys(directories) if entry]


def import_files(finder, files, problems, report):
    """Imports the files; returns the modules of those that could be."""
    modules = {}
    for file in files:
        report(file)
        try:
            modules[file] = finder.load(file)
        except BaseException as problem:
            problems.add_exception(file, problem)
    return modules


def add_classes(declarations, modules, classes):
    """Declares the input and output classes that agent files name, in their order."""
    for entry in classes:
        file, name = entry["file"], entry["name"]
        if file not in modules:
            declarations.skip_class()
            continue
        found = getattr(modules[file], name, None)
        if isinstance(found, type):
            if entry.get("use") == "input" and not check_input(declarations, found, file, name):
                declarations.skip_class()
                continue
            declarations.add_class(found, entry.get("use"), file, name)
        else:
            declarations.skip_class()
            declarations.missing_name(file, name, modules[file], "class")


def check_input(declarations, cls, file, name):
    """Says whether a class can be the input of an agent, and what is wrong with it otherwise."""
    from llm_do.runtime.args import AgentArgs

    from .imports import line_of_name

    problem, hint = None, None
    if not issubclass(cls, AgentArgs):
        problem = f"class `{name}` is the input of an agent, and no AgentArgs (or WorkerArgs)"
        hint = f"write `class {name}(AgentArgs)`, from `llm_do.runtime`"
    elif getattr(cls, "prompt_messages", None) is AgentArgs.prompt_messages:
        problem = f"class `{name}` has no `prompt_messages()`, which makes the prompt from the input"
        hint = "write a method that returns a list of texts and attachments"
    if problem:
        declarations.problems.add(file, line_of_name(file, name), problem, hint)
    return problem is None
