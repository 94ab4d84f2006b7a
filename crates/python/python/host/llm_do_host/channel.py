"""The control channel: JSON lines in both directions over one socket.

Only the main thread touches the descriptor. Other threads append to the outbox and wake the loop, so a thread
that is interrupted in the middle of a `print` can never leave half a line behind.
"""

import json
import os
import select
import threading
from collections import deque

# What may wait in the outbox before whoever writes has to wait itself.
OUTBOX_LIMIT = 4 * 1024 * 1024
# A larger buffer would be mapped and unmapped with every read.
READ_SIZE = 64 * 1024

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False).encode


def encode_line(message):
    """Returns a message as one line of UTF-8; lone surrogates become U+FFFD."""
    text = _encode(message)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return replace_surrogates(text).encode("utf-8") + b"\n"


def replace_surrogates(text):
    """Returns the text with every lone surrogate replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Channel:
    """Lines that came in and lines that wait to go out."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.loop = None
        self.inbox = deque()
        self.ended = False
        self._partial = []
        self._outbox = deque()
        self._waiting = 0
        self._writer_armed = False
        self._main = threading.get_ident()
        os.set_blocking(descriptor, False)

    def receive(self):
        """Reads what has arrived into the inbox, without waiting."""
        while not self.ended:
            try:
                chunk = os.read(self.descriptor, READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                chunk = b""
            self._take(chunk)
            if len(chunk) < READ_SIZE:
                return

    def _take(self, chunk):
        """Cuts a chunk into lines; an empty one is the end of the channel."""
        if not chunk:
            self.ended = True
            return
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._partial, lines[0]])
            self._partial.clear()
            self.inbox.extend(line for line in lines if line)
        if rest:
            self._partial.append(rest)

    def next_message(self):
        """Waits for a message; None when the channel has ended. Only for the time before the loop runs."""
        while not self.inbox and not self.ended:
            self._wait_for(select.POLLIN)
            self.receive()
        return json.loads(self.inbox.popleft()) if self.inbox else None

    def send(self, message):
        """Queues a message and, in the main thread, sends it."""
        self.send_line(encode_line(message))

    def send_line(self, line):
        """Queues a line that is encoded already and, in the main thread, sends it."""
        self._outbox.append(line)
        self._waiting += len(line)
        if threading.get_ident() == self._main:
            self.flush()
        else:
            self._hand_to_loop()

    def _hand_to_loop(self):
        """Lets the loop send what a thread queued; holds the thread up while too much is waiting."""
        loop = self.loop
        if loop is None:
            return
        loop.call_soon_threadsafe(self.flush)
        while self._waiting > OUTBOX_LIMIT and not self.ended:
            select.select([], [], [], 0.002)

    def flush(self):
        """Sends what is queued as far as the socket takes it; the loop sends the rest later."""
        while self._outbox and not self.ended:
            line = self._outbox.popleft()
            written = self._write(line)
            self._waiting -= written
            if written == len(line):
                continue
            self._outbox.appendleft(line[written:] if written else line)
            if self.loop is not None and self._waiting <= OUTBOX_LIMIT:
                return self._arm_writer()
            self._wait_for(select.POLLOUT)
        self._disarm_writer()

    def _write(self, line):
        """Writes as much of a line as the socket takes now."""
        try:
            return os.write(self.descriptor, line)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # Nobody would ever hear of this process again: llm-do is gone, or its code closed the channel.
            os._exit(1)

    def _arm_writer(self):
        """Asks the loop to go on when the socket takes more."""
        if not self._writer_armed:
            self._writer_armed = True
            self.loop.add_writer(self.descriptor, self.flush)

    def _disarm_writer(self):
        """Tells the loop that nothing is waiting any more."""
        if not self._outbox:
            self._waiting = 0
        if self._writer_armed:
            self._writer_armed = False
            self.loop.remove_writer(self.descriptor)

    def wait_and_receive(self):
        """Blocks the main thread until more has arrived, and sends what is queued meanwhile."""
        self._wait_for(select.POLLIN | (select.POLLOUT if self._outbox else 0))
        if self._outbox:
            self.flush()
        self.receive()

    def _wait_for(self, event):
        """Blocks until the socket is ready."""
        poller = select.poll()
        poller.register(self.descriptor, event)
        poller.poll()

    def close(self):
        """Closes the descriptor, once: in a forked child, which must never speak on it."""
        self.ended = True
        descriptor, self.descriptor = self.descriptor, None
        if descriptor is not None:
            os.close(descriptor)
