"""Cancellation, and the end of the process."""

import os
import signal
import time

from support import Ended, HostCase


class Cancellation(HostCase):
    TOOLS = """
        import asyncio, time
        from pydantic_ai.tools import RunContext
        from pydantic_ai.toolsets import FunctionToolset
        from llm_do.runtime import CallContext
        async def wait():
            print("begun", flush=True)
            await asyncio.sleep(100)
        def spin():
            print("begun")
            while True:
                time.sleep(0.001)
        def spin_printing():
            print("begun")
            while True:
                print("x")
        async def spin_loop():
            print("begun")
            while True:
                pass
        async def print_loop():
            print("begun")
            while True:
                print("x")
        async def sleep_loop():
            print("begun")
            time.sleep(100)
        async def swallow():
            print("begun")
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                return "kept"
        async def ask(ctx: CallContext):
            print("begun")
            await ctx.call("x")
        def ask_from_thread(ctx: CallContext):
            print("begun")
            ctx.call_sync("x")
        def quick():
            return "quick"
        TOOLS = [wait, spin, spin_printing, spin_loop, print_loop, sleep_loop, swallow, ask, ask_from_thread, quick]
        def make():
            made = FunctionToolset()
            @made.tool_plain
            def spin_too():
                print("begun")
                while True:
                    time.sleep(0.001)
            return made
        TOOLSETS = {"spinners": make}
        """

    def setUp(self):
        super().setUp()
        self.host_process, self.answer = self.loaded(self.TOOLS)
        self.ids = {tool["name"]: tool["id"] for tool in self.answer["tools"]}

    def begun(self, target, instance=None):
        number = self.host_process.begin_call(target, instance=instance)
        self.host_process.until(lambda message: message["op"] == "say" and message["text"] == "begun")
        return number

    def cancelled(self, target, with_signal=False, instance=None):
        host = self.host_process
        number = self.begun(target, instance)
        host.send(op="cancel", id=number)
        if with_signal:
            time.sleep(0.05)
            host.signal()
        self.assertEqual(host.done(number)["error"]["kind"], "cancelled")
        self.assertEqual(host.call(self.ids["quick"])["value"], "quick")

    def test_async_functions(self):
        for name in ("wait", "swallow", "ask"):
            with self.subTest(name):
                self.cancelled(self.ids[name])

    def test_functions_in_threads(self):
        for name in ("spin", "spin_printing", "ask_from_thread"):
            with self.subTest(name):
                self.cancelled(self.ids[name])

    def test_a_function_that_keeps_the_loop_busy_is_interrupted_by_the_signal(self):
        for name in ("spin_loop", "print_loop", "sleep_loop"):
            with self.subTest(name):
                self.cancelled(self.ids[name], with_signal=True)

    def test_a_sync_tool_of_a_toolset(self):
        host = self.host_process
        host.done(host.begin("open", toolset="s1", instance=1, context=host.context()))
        self.cancelled(self.answer["toolsets"][0]["tools"][0]["id"], instance=1)

    def test_only_the_cancelled_call_is_interrupted(self):
        host = self.host_process
        first, second = self.begun(self.ids["wait"]), self.begun(self.ids["wait"])
        spinning = self.begun(self.ids["spin"])
        host.send(op="cancel", id=first)
        self.assertEqual(host.done(first)["error"]["kind"], "cancelled")
        host.signal()
        self.assertEqual(host.call(self.ids["quick"])["value"], "quick")
        host.send(op="cancel", id=second)
        host.send(op="cancel", id=spinning)
        self.assertEqual(host.done(second)["error"]["kind"], "cancelled")
        self.assertEqual(host.done(spinning)["error"]["kind"], "cancelled")
        host.send(op="cancel", id=999)
        self.assertEqual(host.call(self.ids["quick"])["value"], "quick")

    def test_a_call_that_is_cancelled_before_it_begins(self):
        host = self.host_process
        for name in ("wait", "spin", "ask", "spin_loop"):
            with self.subTest(name):
                context = host.context()
                call = {"op": "call", "id": 500, "target": self.ids[name], "instance": None, "args": {}, "context": context}
                host.send_together(call, {"op": "cancel", "id": 500})
                self.assertEqual(host.done(500)["error"]["kind"], "cancelled")

    def test_a_thread_is_reused_without_the_old_interruption(self):
        for _ in range(30):
            self.cancelled(self.ids["spin"])


class TheEnd(HostCase):
    def test_the_process_ends_with_the_channel_and_takes_its_group_along(self):
        host, tools = self.tools(
            """
            import subprocess
            def child():
                return subprocess.Popen(["sleep", "100"]).pid
            async def busy():
                print("begun")
                while True: pass
            TOOLS = [child, busy]
            """
        )
        child = host.call(tools["child"])["value"]
        host.begin_call(tools["busy"])
        host.until(lambda message: message["op"] == "say")
        self.assertEqual(host.close(), -signal.SIGKILL)
        for _ in range(200):
            if not is_running(child):
                return
            time.sleep(0.01)
        self.fail("the child of the tool is still running")

    def test_the_end_is_seen_while_the_project_is_loading(self):
        self.file("tools.py", "print('begun')\nwhile True: pass")
        host = self.host()
        host.send(op="load", root=self.directory, files=[os.path.join(self.directory, "tools.py")])
        host.until(lambda message: message["op"] == "say")
        self.assertEqual(host.close(), -signal.SIGKILL)

    def test_exit_cleans_up_shared_toolsets(self):
        host, _ = self.loaded(
            """
            import atexit
            from pydantic_ai.toolsets import FunctionToolset
            class Shared(FunctionToolset):
                async def cleanup(self):
                    print("cleaned up")
            shared = Shared()
            atexit.register(print, "atexit")
            """
        )
        host.send(op="exit")
        with self.assertRaises(Ended):
            host.receive_all()
        self.assertEqual(host.lines(None), ["cleaned up", "atexit"])
        self.assertEqual(host.process.wait(10), 0)


def is_running(process):
    """Says whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
