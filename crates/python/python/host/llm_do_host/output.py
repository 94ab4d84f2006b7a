"""What Python code prints: captured line by line and attributed to the call that printed it.

`sys.stdout` and `sys.stderr` are replaced by writers that know the current call. What C code and subprocesses
write to the descriptors 1 and 2 does not pass here.
"""

import io
import os
import sys
import threading
from contextvars import ContextVar

# The call whose code is running, in this task or thread.
current_call = ContextVar("llm_do_current_call", default=None)

# What one call may print.
CALL_LIMIT = 256 * 1024


_local = threading.local()


class Printed:
    """What one call, or the code outside of any call, has printed so far.

    Each thread, and each task of a loop, has a line of its own that is not complete yet: lines of several never mix.
    """

    __slots__ = ("call_id", "size", "dropped", "finished", "partials")

    def __init__(self, call_id=None):
        self.call_id = call_id
        self.size = 0
        self.dropped = 0
        # Whether the call has ended.
        self.finished = False
        # The incomplete line of each writer.
        self.partials = {}

    def lines_of(self, text, writer):
        """Adds a text and returns the lines that are complete now; the rest waits."""
        *lines, rest = (self.partials.pop(writer, "") + text).split("\n")
        if len(rest) > CALL_LIMIT:
            lines.append(rest)
        elif rest:
            self.partials[writer] = rest
        return lines

    def within_limit(self, line):
        """Counts a line; False where it is too much for a call."""
        if self.call_id is None:
            return True
        if self.dropped or self.size + len(line) > CALL_LIMIT:
            self.dropped += len(line) + 1
            return False
        self.size += len(line) + 1
        return True


def current_writer():
    """Returns what stands for the running thread and task."""
    try:
        mark = _local.mark
    except AttributeError:
        mark = _local.mark = ThreadMark()
    tasks = sys.modules.get("asyncio.tasks")
    try:
        return mark, tasks.current_task() if tasks is not None else None
    except (RuntimeError, AttributeError):
        # No loop runs in this thread, or asyncio is being imported.
        return mark, None


class ThreadMark:
    """Stands for a thread: its number may be that of another one later."""

    __slots__ = ("number",)

    def __init__(self):
        self.number = threading.get_ident()


def is_running(writer):
    """Returns whether a thread, and its task, may still print."""
    mark, task = writer
    return mark.number in sys._current_frames() and (task is None or not task.done())


class Speaker:
    """Sends what is printed, and what tools say through their context, as `say` messages."""

    def __init__(self, channel):
        self._channel = channel
        self._outside = Printed()
        # A line may be printed while another one is, in the same thread, where an object is collected.
        self._lock = threading.RLock()
        # Set by the signal handler when it found the host itself at work; see `calls.Interruption`.
        self.after_say = None

    def printed(self, text):
        """Sends the complete lines of a text that the current call prints."""
        call, writer = current_call.get(), current_writer()
        with self._lock:
            printed = self._outside if call is None or call.printed.finished else call.printed
            lines = [line for line in printed.lines_of(text, writer) if printed.within_limit(line)]
        self._say_lines(printed, lines)
        if self.after_say is not None:
            self.after_say()

    def say(self, call_id, kind, text):
        """Sends one text of a kind: `stderr`, `notice` or `progress`."""
        self._channel.send({"op": "say", "call": call_id, "kind": kind, "text": text})

    def finish_writer(self, printed):
        """Sends what the running thread or task printed without a newline: its work is done."""
        with self._lock:
            rest = printed.partials.pop(current_writer(), "")
            lines = [rest] if rest and printed.within_limit(rest) else []
        self._say_lines(printed, lines)

    def finish(self, printed):
        """Sends the last parts without a newline, and how much was dropped.

        Whoever goes on after the call completes its line outside of it.
        """
        lines, own = [], current_writer()
        with self._lock:
            printed.finished = True
            for writer, rest in printed.partials.items():
                if writer != own and is_running(writer):
                    self._outside.partials[writer] = rest
                elif printed.within_limit(rest):
                    lines.append(rest)
            printed.partials.clear()
        if printed.dropped:
            lines.append(f"({printed.dropped} more characters of output were dropped)")
        self._say_lines(printed, lines)
        self._send_outside(lambda writer: not is_running(writer))

    def finish_outside(self):
        """Sends what code outside of any call printed without a newline."""
        self._send_outside(lambda writer: True)

    def _send_outside(self, is_wanted):
        """Sends the incomplete lines of some writers outside of any call."""
        with self._lock:
            wanted = [writer for writer in self._outside.partials if is_wanted(writer)]
            lines = [self._outside.partials.pop(writer) for writer in wanted]
        self._say_lines(self._outside, lines)

    def _say_lines(self, printed, lines):
        """Sends lines. Not under the lock: whoever sends may have to wait for the main thread."""
        for line in lines:
            self.say(printed.call_id, "stderr", line)


class CallWriter(io.TextIOBase):
    """A text stream like `sys.stdout` whose lines go to the speaker."""

    def __init__(self, speaker, descriptor, name):
        self._speaker = speaker
        self._descriptor = descriptor
        self._forked = False
        self.name = name
        self.buffer = ByteWriter(self)

    encoding = "utf-8"
    errors = "backslashreplace"
    mode = "w"

    def write(self, text):
        """Takes a text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self._forked:
            os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))
        else:
            self._speaker.printed(text)
        return len(text)

    def writable(self):
        """Says that the stream can be written to."""
        return True

    def isatty(self):
        """Says that nobody watches the stream on a terminal."""
        return False

    def fileno(self):
        """Returns the real descriptor, for subprocesses that are to inherit it."""
        return self._descriptor

    def reconfigure(self, **_options):
        """Accepts what real streams accept: the lines are UTF-8 and sent at once in any case."""

    def write_to_descriptor(self):
        """Writes to the descriptor from now on: in a forked child, which has no channel."""
        self._forked = True


class ByteWriter(io.RawIOBase):
    """The `buffer` of a `CallWriter`."""

    def __init__(self, text):
        self._text = text

    def write(self, data):
        """Takes bytes and writes them as text."""
        data = bytes(data)
        self._text.write(data.decode("utf-8", "backslashreplace"))
        return len(data)

    def writable(self):
        """Says that the stream can be written to."""
        return True

    def fileno(self):
        """Returns the real descriptor."""
        return self._text.fileno()


def capture(speaker):
    """Replaces `sys.stdout` and `sys.stderr`."""
    sys.stdout = CallWriter(speaker, 1, "<stdout>")
    sys.stderr = CallWriter(speaker, 2, "<stderr>")


def release_in_child():
    """Lets a forked child print to its descriptors."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CallWriter):
            stream.write_to_descriptor()
