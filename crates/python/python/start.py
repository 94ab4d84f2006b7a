"""Starts the Python host of llm-do.

This file is what the interpreter is given, so it must parse under every Python that might be found: it uses
no syntax newer than Python 2.7. It checks the version, takes the control channel away from standard input,
puts the host's directories on the path and hands over to `llm_do_host.main`.
"""

import os
import sys

OLDEST = (3, 10)


def refuse_old_version():
    """Says on the control channel that this Python is too old."""
    import json

    found = ".".join(str(part) for part in sys.version_info[:3])
    problem = {
        "file": None,
        "line": None,
        "message": "Python %s is too old (%s)" % (found, sys.executable),
        "hint": "llm-do needs Python %d.%d or newer" % OLDEST,
    }
    os.read(0, 65536)
    os.write(0, (json.dumps({"op": "refused", "problems": [problem]}) + "\n").encode("ascii"))


def take_control_channel():
    """Moves the control channel to a descriptor of its own and leaves an empty standard input behind."""
    channel = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel


def set_path(here):
    """Puts the public names and the host first and the stand-ins for missing packages last."""
    own = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    first = [os.path.join(here, "names"), os.path.join(here, "host")]
    sys.path[:] = first + own + [os.path.join(here, "fallback")]


def import_from_sources(here):
    """Has what is below a directory compiled from its sources at each start.

    llm-do compares the sources with its own before it starts this file. Nobody vouches for compiled files beside
    them, so none is read and none is written.
    """
    import _frozen_importlib_external as importing

    class SourcesOnly(importing.SourceFileLoader):
        def get_code(self, fullname):
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    def find_below(path):
        if path != here and not path.startswith(here + os.sep):
            raise ImportError("not a directory of the host")
        return importing.FileFinder(path, (SourcesOnly, [".py"]))

    sys.path_hooks.insert(0, find_below)
    sys.path_importer_cache.clear()


def main():
    """Starts the host, or says why it cannot."""
    if sys.version_info < OLDEST:
        refuse_old_version()
        sys.exit(1)
    channel = take_control_channel()
    set_path(os.path.dirname(os.path.abspath(__file__)))
    from llm_do_host.main import serve

    serve(channel)


if sys.version_info >= OLDEST:
    import_from_sources(os.path.dirname(os.path.abspath(__file__)))

# Child processes of `multiprocessing` import this file again, under another name.
if __name__ == "__main__":
    main()
