"""The host process: loads a project, then serves calls until llm-do ends it.

The main thread loads the project before anything heavy is imported, says what it found, and becomes the event
loop, which reads the control channel itself.
"""

import _signal
import _thread
import json
import os
import select
import sys

from . import output
from .channel import Channel
from .output import Speaker


def serve(descriptor):
    """Runs the host on a control channel, until it ends."""
    channel = Channel(descriptor)
    _thread.start_new_thread(watch_for_end, (descriptor,))
    speaker = Speaker(channel)
    output.capture(speaker)
    loaded = load_project(channel, speaker)
    if loaded is None:
        leave(1)
    host = Host(channel, speaker, *loaded)
    host.run()


def load_project(channel, speaker):
    """Loads the project that the first message names; returns it, or None where it was refused."""
    message = channel.next_message()
    if message is None:
        leave(0)
    from . import models
    from .load import imported, load

    report = lambda file: channel.send({"op": "loading", "file": file})  # noqa: E731
    project, declarations, problems = load(message, report)
    speaker.finish_outside()
    if problems.list:
        channel.send({"op": "refused", "problems": problems.list})
        return None
    # From now on llm-do may send it; the real handler is installed with the loop.
    _signal.signal(_signal.SIGUSR1, _signal.SIG_IGN)
    loaded = declarations.loaded(".".join(map(str, sys.version_info[:3])), models.prefixes())
    channel.send({**loaded, "imported": imported(message["root"])})
    return project, declarations


def watch_for_end(descriptor):
    """Waits for the end of the channel in a thread of its own: the main thread may be busy for ever."""
    poller = select.poll()
    poller.register(descriptor, 0)
    channel = os.fstat(descriptor).st_ino
    while True:
        for _, event in poller.poll(1000):
            if event & (select.POLLHUP | select.POLLERR | select.POLLNVAL):
                end_with_group()
        if not is_open(descriptor, channel):
            end_with_group()


def is_open(descriptor, channel):
    """Says whether the channel is still there: code may close every descriptor, and nothing would come or go."""
    try:
        return os.fstat(descriptor).st_ino == channel
    except OSError:
        return False


def end_with_group():
    """llm-do is gone: ends this process and those that its tools started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), 9)
    os._exit(1)


def leave(status):
    """Ends the process at once: threads of the project cannot hold it up."""
    os._exit(status)


def give_threads_to_stand_in(calls):
    """Lets the stand-in for pydantic_ai, where the project uses it, run synchronous tools in the host's threads."""
    if "pydantic_ai" not in sys.modules:
        return
    try:
        from pydantic_ai import _calls as stand_in
    except ImportError:
        return
    stand_in.run_in_thread = calls.run_in_thread


def nothing_to_close(call):
    """Answers a message that closes an instance that is not open."""
    call.run_in_thread(lambda: None)


class Host:
    """Serves calls: one method for each message of llm-do."""

    def __init__(self, channel, speaker, project, declarations):
        from .calls import Calls
        from .interrupt import Interruption
        from .loops import host_loop

        self._channel = channel
        self._speaker = speaker
        self._declarations = declarations
        self._loop = host_loop()
        channel.loop = self._loop
        self._calls = Calls(channel, speaker, project, self._loop)
        self._calls.drain = self._drain
        self._instances = self._calls.instances
        self._operations = {
            "call": self._call,
            "assess": self._assess,
            "open": self._open,
            "close": self._close,
            "prompt": self._prompt,
            "model": self._model,
            "cancel": self._cancel,
            "answer": self._answer,
            "exit": self._exit,
        }
        self._interruption = Interruption(self._calls, channel, self._drain)
        os.register_at_fork(after_in_child=self._forked)
        give_threads_to_stand_in(self._calls)

    def run(self):
        """Runs the loop until llm-do says `exit` or goes away."""
        self._loop.add_reader(self._channel.descriptor, self._readable)
        self._loop.call_soon(self._drain)
        while True:
            try:
                self._loop.run_forever()
            except BaseException as problem:
                # `sys.exit` in a task that a tool started: whoever awaits that task is told as well.
                print(f"a task ended with {type(problem).__name__}: {problem}", file=sys.stderr)

    def _readable(self):
        """Reads the channel and does what it says."""
        self._channel.receive()
        self._drain()
        if self._channel.ended:
            end_with_group()

    def _drain(self):
        """Does what the messages in the inbox say."""
        inbox = self._channel.inbox
        while inbox:
            message = json.loads(inbox.popleft())
            try:
                self._operations[message["op"]](message)
            except Exception as problem:
                self._refuse(message, problem)

    def _refuse(self, message, problem):
        """Answers a message that cannot be acted on, such as one for an id that does not exist."""
        text = f"the host cannot do `{message.get('op')}`: {type(problem).__name__}: {problem}"
        error = {"kind": "tool", "message": text, "hint": None}
        self._channel.send({"op": "done", "id": message.get("id"), "error": error})

    # Messages.

    def _call(self, message):
        """Calls a tool or an entry."""
        target = self._declarations.targets[message["target"]]
        instance = self._instances.get(message.get("instance"))
        args = message["args"]
        self._calls.begin(message["id"], message.get("context"), lambda call: target.start(call, args, instance))

    def _assess(self, message):
        """Asks a toolset about a call before it is made."""
        target = self._declarations.targets[message["target"]]
        instance = self._instances.get(message.get("instance"))
        args = message["args"]
        self._calls.begin(message["id"], message.get("context"), lambda call: target.assess(call, args, instance))

    def _open(self, message):
        """Makes an instance of a toolset."""
        from .open_toolsets import Instance

        instance = Instance(self._declarations.sources[message["toolset"]], message.get("context"))
        opened = lambda: self._instances.__setitem__(message["instance"], instance)  # noqa: E731
        self._calls.begin(message["id"], message.get("context"), lambda call: instance.open(call, opened))

    def _close(self, message):
        """Closes an instance."""
        instance = self._instances.pop(message["instance"], None)
        start = nothing_to_close if instance is None else instance.close
        self._calls.begin(message["id"], message.get("context"), start)

    def _prompt(self, message):
        """Validates an input and makes its prompt."""
        from .prompts import prompt_parts

        cls = self._declarations.class_of[message["class"]]
        args = message["args"]
        start = lambda call: call.run_in_thread(lambda: prompt_parts(cls, args))  # noqa: E731
        self._calls.begin(message["id"], message.get("context"), start)

    def _model(self, message):
        """Asks a model factory."""
        from . import models

        name = message["name"]
        start = lambda call: call.run_in_thread(lambda: models.describe(name))  # noqa: E731
        self._calls.begin(message["id"], message.get("context"), start)

    def _cancel(self, message):
        """Cancels a call."""
        self._calls.cancel(message["id"])

    def _answer(self, message):
        """Hands an answer to the call that asked."""
        self._calls.answer(message["id"], message.get("value"), message.get("error"))

    def _exit(self, _message):
        """Cleans up the toolsets that calls shared, and leaves."""
        self._ending = self._loop.create_task(self._clean_up_and_leave())

    async def _clean_up_and_leave(self):
        """Calls `cleanup()` of shared toolsets and what `atexit` was given."""
        import atexit

        from .instances import clean_up

        for source in self._declarations.sources.values():
            if source.shared is not None:
                await clean_up(source.name, source.shared)
        atexit._run_exitfuncs()
        self._speaker.finish_outside()
        self._channel.loop = None
        self._channel.flush()
        leave(0)

    def _forked(self):
        """In a forked child: gives up the channel, and leaves as soon as the tool returns to the loop."""
        self._channel.close()
        output.release_in_child()
        self._loop._run_once = lambda: os._exit(0)
