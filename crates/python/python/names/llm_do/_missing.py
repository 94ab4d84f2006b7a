"""Names of the Python ancestors that do not exist here: what to write instead.

The table comes with llm-do: one row for each name, with what it was and what it is now.
"""

import json
import os

_TABLE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python-names.json")
# The kinds of names that Python code can use; the table also has keys of files and flags.
KINDS = ("attribute", "class", "function", "method", "module")
_rows = None


def rows():
    """Returns the rows of the table by name; none if the table cannot be read."""
    global _rows
    if _rows is None:
        try:
            with open(_TABLE, encoding="utf-8") as file:
                _rows = {row["name"]: row for row in json.load(file) if row["kind"] in KINDS}
        except (OSError, ValueError):
            _rows = {}
    return _rows


def advice(name):
    """Returns what the table says about a name, or about the last part of a dotted one; None if it does not know it."""
    table = rows()
    row = table.get(name) or table.get(name.rpartition(".")[2])
    if row is None:
        return None
    text = f"now {row['now']}, for example: {row['example']}"
    # Some things are possible only for a program that embeds llm-do.
    return f"{text} (from the shell: `llm-do run PATH`)" if row["now"].startswith("in Rust") else text


def explain(message, name, known=()):
    """Returns a message with what to use instead of a name, or with the nearest name that exists."""
    found = advice(name)
    if found:
        return f"{message}; {found}"
    near = nearest(name, known)
    return f"{message}; did you mean `{near}`?" if near else message


def nearest(name, known):
    """Returns the known name that is most similar, or None."""
    from difflib import get_close_matches

    # A name that exists is the better guess than one of the table, even if it is less similar.
    for names in (known, rows()):
        for near in get_close_matches(name, names, 1):
            return near
    return None


def raise_missing(module, name, known=()):
    """Raises for a name that a module does not have: ImportError in `from module import name`, else AttributeError."""
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if _is_from_import():
        raise ImportError(explain(f"cannot import name {name!r} from {module!r}", name, known), name=module)
    raise AttributeError(explain(f"module {module!r} has no attribute {name!r}", name, known))


def _is_from_import():
    """Returns whether the attribute is looked up by a `from .. import ..` statement.

    Python would replace the message of an AttributeError there by its own.
    """
    import sys
    from opcode import opmap

    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(os.path.dirname(_TABLE)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


def missing_names(module, known=()):
    """Returns a module-level `__getattr__` that raises for names which do not exist."""

    def __getattr__(name):
        raise_missing(module, name, known)

    return __getattr__
