"""Starts the host as llm-do does and speaks its protocol."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
START = os.path.join(os.path.dirname(HERE), "start.py")
PATIENCE = 20


class Ended(Exception):
    """The host has closed the channel."""


class Host:
    """A running host process and the other end of its control channel."""

    def __init__(self, directory):
        self.directory = directory
        self.said = []
        self.asked = []
        self.imported = []
        self._answers = {}
        self._buffer = b""
        self._next = 1
        self._socket, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [os.environ.get("LLM_DO_TEST_PYTHON", sys.executable), "-u", START],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=directory,
        )
        theirs.close()

    def send(self, **message):
        """Sends one message."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def send_together(self, *messages):
        """Sends several messages so that they arrive at once."""
        self._socket.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def receive(self):
        """Waits for the next message."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            if not select.select([self._socket], [], [], until - time.monotonic())[0]:
                raise TimeoutError(f"no message within {PATIENCE} s")
            chunk = self._socket.recv(1 << 20)
            if not chunk:
                raise Ended
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def load(self, files, classes=(), entry=None):
        """Sends `load` and returns the answer; what was printed meanwhile is kept in `said`."""
        path = lambda name: os.path.join(self.directory, name)  # noqa: E731
        classes = [{**given, "file": path(given["file"])} for given in classes]
        entry = {**entry, "file": path(entry["file"])} if entry else None
        files = [path(name) for name in files]
        self.send(op="load", root=self.directory, files=files, classes=classes, entry=entry)
        return self.until(lambda message: message["op"] in ("loaded", "refused"))

    def until(self, is_wanted):
        """Receives messages until the wanted one; the others are sorted into `said` and `asked`."""
        while True:
            message = self.receive()
            if is_wanted(message):
                return message
            self._keep(message)

    def receive_all(self):
        """Receives messages until the host ends the channel."""
        self.until(lambda message: False)

    def _keep(self, message):
        """Keeps a message for later."""
        if message["op"] == "say":
            self.said.append(message)
        elif message["op"] == "ask":
            self.asked.append(message)
        elif message["op"] == "loading":
            self.imported.append(message["file"])
        else:
            self._answers[message["id"]] = message

    def begin(self, op, **fields):
        """Sends a message with a new id and returns the id."""
        number, self._next = self._next, self._next + 1
        self.send(op=op, id=number, **fields)
        return number

    def done(self, number):
        """Waits for the answer to a message."""
        if number in self._answers:
            return self._answers.pop(number)
        return self.until(lambda message: message["op"] == "done" and message["id"] == number)

    def ask(self):
        """Waits for a question of the host."""
        if self.asked:
            return self.asked.pop(0)
        return self.until(lambda message: message["op"] == "ask")

    def call(self, target, args=None, instance=None, **context):
        """Calls a target and returns the answer."""
        return self.done(self.begin_call(target, args, instance, **context))

    def begin_call(self, target, args=None, instance=None, **context):
        """Begins a call and returns its id."""
        return self.begin("call", target=target, args=args or {}, instance=instance, context=self.context(**context))

    def context(self, **more):
        """Returns the context of a call."""
        return {
            "run": "run-1",
            "key": "t1/tool/1",
            "path": "main > tool",
            "agent": "main",
            "depth": 1,
            "model": "test",
            "root": self.directory,
            "input": "hello",
            "values": {},
            **more,
        }

    def lines(self, call=None):
        """Returns what a call has printed so far."""
        return [message["text"] for message in self.said if message["call"] == call]

    def signal(self):
        """Sends SIGUSR1, as llm-do does when a cancelled call does not end."""
        os.kill(self.process.pid, signal.SIGUSR1)

    def close(self):
        """Hangs up and waits for the end of the process."""
        self._socket.close()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.stdout.close()
            self.process.stderr.close()


class HostCase(unittest.TestCase):
    """A test with project files in a directory of its own."""

    maxDiff = None

    def setUp(self):
        self._stack = contextlib.ExitStack()
        self.addCleanup(self._stack.close)
        self.directory = os.path.realpath(self._stack.enter_context(tempfile.TemporaryDirectory()))

    def file(self, name, text):
        """Writes a file of the project and returns its path."""
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def host(self):
        """Starts a host that is ended with the test."""
        host = Host(self.directory)
        self._stack.callback(host.close)
        return host

    def loaded(self, text, **more):
        """Loads one file `tools.py` and returns the host and its answer."""
        self.file("tools.py", text)
        host = self.host()
        answer = host.load(["tools.py"], **more)
        self.assertEqual(answer["op"], "loaded", answer)
        return host, answer

    def refused(self, text, **more):
        """Loads one file `tools.py` that is refused and returns the problems."""
        self.file("tools.py", text)
        answer = self.host().load(["tools.py"], **more)
        self.assertEqual(answer["op"], "refused", answer)
        return answer["problems"]

    def tools(self, text):
        """Loads one file and returns the host and the ids of its tools by name."""
        host, answer = self.loaded(text)
        return host, {tool["name"]: tool["id"] for tool in answer["tools"]}
