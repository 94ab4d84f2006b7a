"""Calls in flight: how they start, ask, are cancelled and end.

A call of an asynchronous function is a task of the loop; a call of a synchronous one is a job in a thread. Both
end in exactly one `done` message. This module knows nothing of discovery: what is called is a *target* (see
`targets`), whose `start` chooses between the two.
"""

import asyncio
import contextvars
import itertools
import json
import os
import threading

from .channel import encode_line
from .coerce import ArgumentProblem
from .output import Printed, current_call
from .results import SIZE_LIMIT, Failure, Interrupted, to_json
from .threads import Job, Pool


class Call:
    """One request of llm-do while it is worked on."""

    __slots__ = ("id", "context", "printed", "cancelled", "ended", "calls", "_task", "_begun", "_job", "__weakref__")

    def __init__(self, calls, id, context):
        self.calls = calls
        self.id = id
        self.context = context or {}
        self.printed = Printed(id)
        self.cancelled = False
        self.ended = False
        self._task = None
        self._begun = False
        self._job = None

    def run_as_task(self, work, base=None):
        """Runs a coroutine function on the loop; its value, or exception, becomes the answer.

        The context variables are those of `base`, where it is given.
        """
        self.start_task(self.answer(work), base)

    def start_task(self, coroutine, base=None):
        """Starts a task in which this is the current call, and which is cancelled with it."""
        self._task = self._own_context(base).run(self.calls.loop.create_task, coroutine)

    def adopt_running_task(self):
        """Makes this the current call of the running task, which is cancelled with it from now on."""
        self._task = asyncio.current_task()
        current_call.set(self)

    def run_in_thread(self, work):
        """Runs a function in a thread; its value, or exception, becomes the answer."""
        self._job = Job(self._own_context(), lambda: self._outcome_of(work), self._thread_has_ended)
        self.calls.pool.start(self._job)

    def cancel(self):
        """Interrupts the call, wherever it is."""
        self.cancelled = True
        self.calls.give_up_questions(self)
        # A task that has not begun would be cancelled without a chance to answer; it looks for itself.
        if self._task is not None and self._begun:
            self._task.cancel()
        if self._job is not None:
            self._job.cancel()

    def _own_context(self, base=None):
        """Returns context variables in which this is the current call."""
        context = contextvars.copy_context() if base is None else base.copy()
        context.run(current_call.set, self)
        return context

    async def answer(self, work):
        """Awaits the work and answers; returns whether it succeeded."""
        succeeded = False
        try:
            self._begun = True
            if self.cancelled:
                raise Interrupted
            line = self._line(await work())
            succeeded = True
        except BaseException as problem:
            line = self._failure_line(problem)
        self.end(line)
        return succeeded

    def _outcome_of(self, work):
        """Runs the work in this thread; returns the answer, or the awaitable that the work returned."""
        try:
            value = work()
            self.calls.speaker.finish_writer(self.printed)
            return value if hasattr(type(value), "__await__") else self._line(value)
        except BaseException as problem:
            self.calls.speaker.finish_writer(self.printed)
            return self._failure_line(problem)

    def _thread_has_ended(self, outcome):
        """Lets the loop answer with what the thread made; None: it was interrupted."""
        leave_forked_child()
        self.calls.loop.call_soon_threadsafe(self._answer_from_thread, outcome)

    def _answer_from_thread(self, outcome):
        """Answers, after awaiting what a synchronous function returned where that can be awaited."""
        if outcome is None:
            outcome = self._failure_line(Interrupted())
        if isinstance(outcome, bytes):
            return self.end(outcome)
        self._job = None
        self.run_as_task(lambda: outcome)

    def _line(self, value):
        """Returns the answer with a value as a line."""
        if self.cancelled:
            raise Interrupted
        plain, attachments = to_json(value)
        line = encode_line({"op": "done", "id": self.id, "value": plain, "attachments": attachments})
        if len(line) > SIZE_LIMIT:
            raise Failure("output", f"the result is {len(line)} bytes long; at most {SIZE_LIMIT} are taken")
        return line

    def _failure_line(self, problem):
        """Returns the answer with an error as a line."""
        leave_forked_child()
        failure = self.calls.failure_of(self, problem)
        return encode_line({"op": "done", "id": self.id, "error": failure.to_json()})

    def end(self, line):
        """Sends the answer: nothing can be said or asked for this call afterwards."""
        self.ended = True
        leave_forked_child()
        self.calls.forget(self)
        self.calls.speaker.finish(self.printed)
        self.calls.channel.send_line(line)

    # Questions to llm-do.

    async def ask(self, what, **fields):
        """Asks llm-do and waits for the answer. Works on any loop of any thread."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def settle(value, problem):
            if loop is self.calls.loop and threading.get_ident() == self.calls.main_thread:
                return settle_now(value, problem)
            loop.call_soon_threadsafe(settle_now, value, problem)

        def settle_now(value, problem):
            if future.done():
                return
            if isinstance(problem, Interrupted):
                future.cancel()
            elif problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(value)

        question = self.calls.put_question(self, settle, what, fields)
        try:
            return await future
        finally:
            self.calls.questions.pop(question, None)

    def is_in_loop(self):
        """Says whether this runs in the event loop, where nothing may block."""
        return threading.get_ident() == self.calls.main_thread

    def ask_from_thread(self, what, **fields):
        """Asks llm-do and blocks this thread until the answer is there."""
        if self.is_in_loop():
            raise RuntimeError("a synchronous call would block the event loop here; use `await ctx.call(..)`")
        answers, arrived = [], threading.Lock()
        arrived.acquire()

        def settle(value, problem):
            answers.append((value, problem))
            arrived.release()

        self.calls.put_question(self, settle, what, fields)
        arrived.acquire()
        value, problem = answers[0]
        if problem is not None:
            raise problem
        return value

    def ask_now(self, what, **fields):
        """Asks llm-do and blocks until the answer is there, in a thread and in the event loop alike.

        Only for questions that llm-do answers at once: the whole loop waits.
        """
        if not self.is_in_loop():
            return self.ask_from_thread(what, **fields)
        return self.calls.ask_while_loop_waits(self, what, fields)

    def open_toolset(self, name):
        """Returns the toolset object of this name that is open for the calling agent, or None."""
        key = self.context.get("key", "") + "/"
        found = [
            instance
            for instance in self.calls.instances.values()
            if instance.name == name and key.startswith(instance.agent_key + "/")
        ]
        # An agent may be called by one that uses the same toolset: the innermost call is meant.
        return max(found, key=lambda instance: len(instance.agent_key)).toolset if found else None

    def check_running(self):
        """Refuses questions of a call that has ended."""
        if self.ended:
            raise RuntimeError("this call has ended: its context can no longer be used")


class Calls:
    """All calls in flight and their open questions."""

    def __init__(self, channel, speaker, project, loop):
        self.channel = channel
        self.speaker = speaker
        self.project = project
        self.loop = loop
        self.pool = Pool()
        self.main_thread = threading.get_ident()
        self.questions = {}
        # Acts on the messages in the inbox; set by the host.
        self.drain = None
        # The toolset instances that are open, by their numbers.
        self.instances = {}
        self._running = {}
        self._numbers = itertools.count(1)

    def begin(self, id, context, start):
        """Makes a call and starts it; what cannot even start is answered with the reason."""
        call = Call(self, id, context)
        self._running[id] = call
        try:
            start(call)
        except Exception as problem:
            call.end(call._failure_line(problem))

    def cancel(self, id):
        """Cancels a call that is in flight."""
        call = self._running.get(id)
        if call is not None:
            call.cancel()

    async def run_in_thread(self, function, positional, named):
        """Runs a synchronous function for a task, which can be cancelled with it."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def work():
            try:
                return function(*positional, **named), None
            except BaseException as problem:
                return None, problem

        def finish(outcome):
            leave_forked_child()
            loop.call_soon_threadsafe(lambda: ended.done() or ended.set_result(outcome))

        job = Job(contextvars.copy_context(), work, finish)
        self.pool.start(job)
        try:
            outcome = await asyncio.shield(ended)
        except asyncio.CancelledError:
            job.cancel()
            await asyncio.wait([ended])
            raise
        value, problem = outcome or (None, Interrupted())
        if problem is not None:
            raise problem
        return value

    def note_cancelled(self, lines):
        """Marks the calls that unread messages cancel; the messages stay, to be acted on by the loop."""
        for line in lines:
            if b'"cancel"' in line:
                message = json.loads(line)
                call = self._running.get(message.get("id")) if message.get("op") == "cancel" else None
                if call is not None:
                    call.cancelled = True

    def forget(self, call):
        """Removes a call that has ended, and the questions that nobody waits for any more."""
        self._running.pop(call.id, None)
        self.give_up_questions(call)

    def running(self):
        """Returns the calls in flight."""
        return list(self._running.values())

    def put_question(self, call, settle, what, fields):
        """Sends a question; `settle(value, problem)` is called with the answer."""
        call.check_running()
        if call.cancelled:
            raise Interrupted
        number = next(self._numbers)
        line = encode_line({"op": "ask", "id": number, "call": call.id, "what": what, **fields})
        self.questions[number] = (call, settle)
        if call.cancelled and self.questions.pop(number, None) is not None:
            raise Interrupted  # it was cancelled after the first look, from the main thread
        self.channel.send_line(line)
        return number

    def answer(self, number, value, error):
        """Hands an answer to whoever asked."""
        _, settle = self.questions.pop(number, (None, None))
        if settle is not None:
            settle(value, None if error is None else problem_of(error))

    def ask_while_loop_waits(self, call, what, fields):
        """Asks from the main thread and reads the channel itself until the answer is there.

        All other messages stay in the inbox, in their order, for the loop.
        """
        answers = []
        number = self.put_question(call, lambda value, problem: answers.append((value, problem)), what, fields)
        inbox, checked = self.channel.inbox, 0
        try:
            while not self._take_answer(number, checked):
                checked = len(inbox)
                self.note_cancelled(inbox)
                # Nobody answers a call that was cancelled.
                if call.cancelled or self.channel.ended:
                    raise Interrupted
                self.channel.wait_and_receive()
        finally:
            self.questions.pop(number, None)
            self.loop.call_soon(self.drain)
        value, problem = answers[0]
        if problem is not None:
            raise problem
        return value

    def _take_answer(self, number, start):
        """Takes the answer to a question out of the inbox, from an index on; returns whether it is there."""
        inbox = self.channel.inbox
        for index in range(start, len(inbox)):
            message = json.loads(inbox[index]) if b'"answer"' in inbox[index] else {}
            if message.get("op") == "answer" and message.get("id") == number:
                del inbox[index]
                self.answer(number, message.get("value"), message.get("error"))
                return True
        return False

    def give_up_questions(self, call):
        """Wakes whoever waits for an answer to this call."""
        for number, (asker, settle) in list(self.questions.items()):
            if asker is call and self.questions.pop(number, None) is not None:
                settle(None, Interrupted())

    def failure_of(self, call, problem):
        """Returns what a call is answered with after an exception."""
        if call.cancelled or isinstance(problem, Interrupted):
            return Failure("cancelled", "the call was cancelled")
        if isinstance(problem, Failure):
            return problem
        if isinstance(problem, ArgumentProblem):
            return Failure("arguments", str(problem))
        if _is_named(problem, "ModelRetry"):
            return Failure("tool", str(getattr(problem, "message", problem)))
        if _is_named(problem, "ApprovalError"):
            return Failure("denied", str(problem), getattr(problem, "hint", None))
        return Failure("tool", self.project.describe(problem), _hint_of(problem))


def _is_named(problem, name):
    """Says whether an exception is of a class of this name, real or stand-in."""
    return any(kind.__name__ == name for kind in type(problem).__mro__)


def _hint_of(problem):
    """Returns the hint of a failed inner call."""
    hint = getattr(problem, "hint", None) if _is_named(problem, "CallError") else None
    return hint if isinstance(hint, str) else None


def problem_of(error):
    """Returns the exception for an inner call that failed."""
    from llm_do.errors import ApprovalBlocked, ApprovalDenied, CallError

    kinds = {"denied": ApprovalDenied, "unasked": ApprovalDenied, "blocked": ApprovalBlocked}
    kind = error.get("kind", "tool")
    return kinds.get(kind, CallError)(error.get("message", ""), kind=kind, hint=error.get("hint"))


# A tool that forks.

_host_process = os.getpid()


def leave_forked_child():
    """Ends a forked child that came back out of the tool that made it."""
    if os.getpid() != _host_process:
        os._exit(0)
