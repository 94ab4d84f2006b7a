"""Threads for synchronous functions: a pool that grows with the need, and jobs that can be interrupted."""

import threading
from _queue import SimpleQueue

from .results import Interrupted

# Threads that stay when there is nothing to do.
IDLE_LIMIT = 32


class Pool:
    """Threads that take jobs.

    The pool has no upper bound of its own: a synchronous tool that calls another one holds its thread while it
    waits, so a bound could make the two wait for each other for ever.
    """

    def __init__(self):
        self._idle = []

    def start(self, job):
        """Gives a job to an idle thread, or to a new one."""
        try:
            queue = self._idle.pop()
        except IndexError:
            queue = SimpleQueue()
            threading.Thread(target=self._work, args=(queue,), daemon=True).start()
        queue.put(job)

    def _work(self, queue):
        """Runs jobs until enough other threads are idle."""
        while True:
            queue.get().run()
            if len(self._idle) >= IDLE_LIMIT:
                return
            self._idle.append(queue)


class Job:
    """One function to run in a thread.

    At most one interruption is sent, and none after the function has returned, so that it cannot reach the next
    job of the same thread.
    """

    __slots__ = ("_work", "_context", "_finish", "_lock", "_thread", "_left", "_cancelled")

    def __init__(self, context, work, finish):
        self._context = context
        self._work = work
        self._finish = finish
        self._lock = threading.Lock()
        self._thread = None
        self._left = False
        self._cancelled = False

    def run(self):
        """Runs the function and hands its outcome on: `finish(outcome)`, with None where it was interrupted."""
        outcome = None
        try:
            if self._enter():
                outcome = self._context.run(self._work)
            self._leave()
        except Interrupted:
            self._leave()
        self._finish(outcome)

    def cancel(self):
        """Interrupts the function, where it has not returned yet."""
        with self._lock:
            if self._cancelled or self._left:
                return
            self._cancelled = True
            if self._thread is not None:
                raise_in_thread(self._thread, Interrupted)

    def _enter(self):
        """Marks the job as running; False where it was cancelled before."""
        with self._lock:
            self._thread = threading.get_ident()
            return not self._cancelled

    def _leave(self):
        """Marks the job as over and takes back an interruption that was not delivered."""
        with self._lock:
            if not self._left and self._cancelled:
                raise_in_thread(self._thread, None)
            self._left = True


def raise_in_thread(thread, problem):
    """Lets an exception be raised in a thread, or takes back one that was not raised yet."""
    # Imported here: loading it takes longer than all the rest, and most runs never cancel a thread.
    from ctypes import c_ulong, py_object, pythonapi

    exception = py_object() if problem is None else py_object(problem)
    pythonapi.PyThreadState_SetAsyncExc(c_ulong(thread), exception)
