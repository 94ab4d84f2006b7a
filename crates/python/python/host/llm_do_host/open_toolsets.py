"""Toolset instances: one for each agent call that uses a toolset, numbered by llm-do.

What a factory makes is entered, used and left with that call. A shared toolset is entered and left with each call.
"""

import asyncio
import contextvars

from .context import run_context
from .instances import attempt, clean_up
from .results import exception_text
from .targets import awaited


class Instance:
    """A toolset that is open for one agent call.

    One task enters the toolset, keeps it open and leaves it: context variables, cancel scopes and task groups insist on
    that. Its calls are tasks of their own, each with a copy of the context in which the toolset was entered.
    """

    def __init__(self, source, context=None):
        self.name = source.name
        # The agent call that the toolset is open for.
        self.agent_key = (context or {}).get("key", "")
        self.tools = {}
        self.toolset = None
        # The context variables as they were set when the toolset was entered.
        self.context = None
        # Why the toolset ended before it was closed.
        self.problem = None
        self._source = source
        self._leave = None
        self._closing = None
        self._has_exited = False

    def open(self, call, opened):
        """Starts the task of the instance, which answers `call` and then calls `opened`."""
        self._closing = call.calls.loop.create_future()
        call.start_task(self._live(call, opened))

    def close(self, call):
        """Lets the task of the instance leave the toolset and answer `call`."""
        if self._closing.done():
            call.run_as_task(self._close)
        else:
            self._closing.set_result(call)

    async def _live(self, call, opened):
        """Enters the toolset, waits until it is to be closed, and leaves it."""
        if not await call.answer(lambda: self._enter(run_context(call))):
            return await self._close()
        opened()
        try:
            closing = await self._closing
        except asyncio.CancelledError as problem:
            return await self._break_off(problem)
        closing.adopt_running_task()
        if closing.cancelled:
            await self._close()
        await closing.answer(self._close)

    async def _enter(self, context):
        """Makes and enters the toolset and learns its tools; what was begun is undone where that fails."""
        try:
            await self._make_and_enter(context)
        except BaseException:
            await self._close()
            raise

    async def _make_and_enter(self, context):
        """Makes and enters the toolset and learns its tools."""
        self.toolset = await self._source.make(context)
        if hasattr(type(self.toolset), "__aenter__"):
            await self.toolset.__aenter__()
            self._leave = self.toolset.__aexit__
        if self.toolset is not None:
            self.tools = dict(await awaited(self.toolset.get_tools(context)))
        self.context = contextvars.copy_context()

    async def _break_off(self, problem):
        """Leaves a toolset whose own scope has cancelled the task, such as a task group in which a task failed."""
        try:
            raised = await self._exit(problem)
        except BaseException as another:
            raised = another
        self.problem = exception_text(raised or problem)

    async def _close(self):
        """Leaves the toolset; what goes wrong has been said."""
        await self._exit()

    async def _exit(self, problem=None):
        """Leaves the toolset and, where it belongs to this call alone, cleans it up; returns what leaving raised."""
        if self._has_exited:
            return None
        self._has_exited = True
        leave, raised = self._leave, None
        details = (None, None, None) if problem is None else (type(problem), problem, problem.__traceback__)
        try:
            if leave is not None:
                raised = await attempt(self._source.name, "__aexit__", lambda: leave(*details))
        finally:
            if self._source.shared is None:
                await clean_up(self._source.name, self.toolset)
        return raised
