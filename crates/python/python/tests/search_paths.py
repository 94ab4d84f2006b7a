"""Sets sys.path as the host does: our names first, the fallbacks only where nothing else is."""

import os
import sys

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def set_up():
    """Puts the directories of the host at both ends of sys.path, once."""
    front = [os.path.join(PYTHON, "names"), os.path.join(PYTHON, "host")]
    fallback = os.path.join(PYTHON, "fallback")
    if front[0] not in sys.path:
        sys.path[:0] = front
        sys.path.append(fallback)


def installed(name):
    """Tells whether the real package of this name is installed."""
    import importlib.util

    found = importlib.util.find_spec(name)
    return found is not None and not (found.origin or "").startswith(PYTHON)


set_up()
