"""SIGUSR1: llm-do's second attempt to cancel a call whose code keeps the loop busy.

The handler runs in the main thread, wherever that is. Where it interrupts the code of a call that was cancelled,
it raises there. Where it finds the host itself at work on behalf of that code (printing, say), it must not raise,
or half a line might be left on the channel: it raises as soon as the host is done.
"""

import signal

from .channel import Channel
from .output import Speaker, current_call
from .results import Interrupted

# Code that must not be interrupted in the middle.
_PROTECTED = {
    function.__code__
    for function in (Channel.flush, Channel.send_line, Channel.receive, Speaker.printed, Speaker.say, Speaker.finish)
}


class Interruption:
    """The handler of SIGUSR1."""

    def __init__(self, calls, channel, drain):
        self._calls = calls
        self._channel = channel
        self._drain = drain
        signal.signal(signal.SIGUSR1, self._handle)
        # Ctrl-C is for llm-do, which then ends its calls in order.
        signal.signal(signal.SIGINT, lambda _number, _frame: None)

    def _handle(self, _number, frame):
        """Interrupts the call whose code is running, where it was cancelled."""
        call = current_call.get()
        if call is None or call.ended:
            return
        if is_protected(frame):
            self._calls.speaker.after_say = self._after_say
            return
        self._interrupt(call)

    def _after_say(self):
        """Does what the handler could not do while the host was at work."""
        self._calls.speaker.after_say = None
        call = current_call.get()
        if call is not None and not call.ended:
            self._interrupt(call)

    def _interrupt(self, call):
        """Reads the channel, which the busy loop does not do, and raises where this call was cancelled."""
        self._channel.receive()
        self._calls.note_cancelled(self._channel.inbox)
        self._calls.loop.call_soon_threadsafe(self._drain)
        if call.cancelled:
            raise Interrupted


def is_protected(frame):
    """Says whether the host is in the middle of something."""
    while frame is not None:
        if frame.f_code in _PROTECTED:
            return True
        frame = frame.f_back
    return False
