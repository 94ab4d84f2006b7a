"""Calls: arguments and results, errors, questions, output."""

import json
import time

from support import HostCase


class Values(HostCase):
    def test_sync_and_async_functions_get_typed_arguments(self):
        host, tools = self.tools(
            """
            import pathlib
            def add(a: int, b: int = 1) -> int:
                return a + b
            async def parent(path: pathlib.Path) -> str:
                return path.parent
            TOOLS = [add, parent]
            """
        )
        self.assertEqual(host.call(tools["add"], {"a": 2, "b": 3})["value"], 5)
        self.assertEqual(host.call(tools["parent"], {"path": "a/b"})["value"], "a")
        self.assertEqual(host.call(tools["add"], {"a": "x"})["error"]["kind"], "arguments")
        self.assertEqual(host.call(tools["add"], {"a": 1, "c": 1})["error"]["kind"], "arguments")

    def test_results_of_many_types_become_json(self):
        host, tools = self.tools(
            """
            import dataclasses, datetime, decimal, enum, pathlib, uuid, collections
            class Color(enum.Enum):
                RED = "red"
            class Level(enum.IntEnum):
                HIGH = 3
            @dataclasses.dataclass
            class Point:
                x: int
                y: object
            Pair = collections.namedtuple("Pair", "a b")
            VALUES = {
                "none": None, "text": "é", "true": True, "float": 1.5, "enum": Color.RED, "intenum": Level.HIGH,
                "path": pathlib.Path("a/b"), "date": datetime.date(2020, 1, 2), "decimal": decimal.Decimal("1.10"),
                "uuid": uuid.UUID(int=1), "set": {1}, "tuple": (1, 2), "point": Point(1, Point(2, None)),
                "keys": {1: "a", None: "b", True: "c"}, "pair": Pair(1, 2), "huge": 10**30, "surrogate": "a\\ud800b",
            }
            def get(name: str):
                return VALUES[name]
            TOOLS = [get]
            """
        )
        expected = {
            "none": None,
            "text": "é",
            "true": True,
            "float": 1.5,
            "enum": "red",
            "intenum": 3,
            "path": "a/b",
            "date": "2020-01-02",
            "decimal": "1.10",
            "uuid": "00000000-0000-0000-0000-000000000001",
            "set": [1],
            "tuple": [1, 2],
            "point": {"x": 1, "y": {"x": 2, "y": None}},
            "keys": {"1": "c", "null": "b"},
            "pair": [1, 2],
            "huge": "1" + "0" * 30,
            "surrogate": "a\ufffdb",
        }
        for name, value in expected.items():
            with self.subTest(name):
                self.assertEqual(host.call(tools["get"], {"name": name})["value"], value)

    def test_what_json_cannot_write_is_refused_by_name(self):
        host, tools = self.tools(
            """
            class Odd: pass
            LOOP = []
            LOOP.append(LOOP)
            DEEP = []
            for _ in range(200):
                DEEP = [DEEP]
            VALUES = {"odd": Odd(), "bytes": b"x", "nan": float("nan"), "loop": LOOP, "deep": DEEP, "class": Odd,
                      "generator": (x for x in "ab"), "large": "x" * 34_000_000, "key": {(1, 2): 3}, "inner": [1, {"a": Odd()}]}
            def get(name: str):
                return VALUES[name]
            TOOLS = [get]
            """
        )
        for name, word in {
            "odd": "Odd",
            "bytes": "bytes",
            "nan": "nan",
            "loop": "itself",
            "deep": "100",
            "class": "type",
            "generator": "generator",
            "large": "34000",
            "key": "tuple",
            "inner": "Odd",
        }.items():
            with self.subTest(name):
                error = host.call(tools["get"], {"name": name})["error"]
                self.assertEqual(error["kind"], "output", error)
                self.assertIn(word, error["message"])

    def test_binary_content_becomes_an_attachment(self):
        host, tools = self.tools(
            """
            from pydantic_ai import BinaryContent
            from llm_do.runtime import Attachment
            PNG = BinaryContent(data=b"abc", media_type="image/png")
            def one(): return PNG
            def many(): return ["text", PNG, Attachment("b.pdf")]
            TOOLS = [one, many]
            """
        )
        png = {"name": "attachment-1.png", "media_type": "image/png", "data": "YWJj"}
        self.assertEqual(host.call(tools["one"]), host.call(tools["one"]) | {"id": 1, "attachments": [png]})
        many = host.call(tools["many"])
        self.assertEqual((many["value"], many["attachments"]), (["text"], [png, {"name": "b.pdf", "path": "b.pdf"}]))

    def test_an_awaitable_from_a_sync_function_is_awaited(self):
        host, tools = self.tools(
            """
            async def inner(): return "later"
            def outer(): return inner()
            TOOLS = [outer]
            """
        )
        self.assertEqual(host.call(tools["outer"])["value"], "later")


class Errors(HostCase):
    def test_an_exception_names_type_text_and_line(self):
        host, tools = self.tools(
            """
            import json, sys
            def fail(): raise ValueError("no")
            def deep(): return json.loads("{")
            def leave(): sys.exit(3)
            async def leave_async(): sys.exit(3)
            def again(): return again()
            def stop(): raise KeyboardInterrupt
            def memory(): raise MemoryError
            class Odd(Exception):
                def __str__(self): raise RuntimeError("inner")
            def odd(): raise Odd()
            def long(): raise ValueError("x" * 10000)
            def retry():
                from pydantic_ai import ModelRetry
                raise ModelRetry("try b")
            async def cancelled():
                import asyncio
                raise asyncio.CancelledError("mine")
            TOOLS = [fail, deep, leave, leave_async, again, stop, memory, odd, long, retry, cancelled]
            """
        )
        messages = {name: host.call(id)["error"] for name, id in tools.items()}
        self.assertEqual({error["kind"] for error in messages.values()}, {"tool"})
        text = {name: error["message"] for name, error in messages.items()}
        self.assertEqual(text["fail"], "ValueError: no (tools.py:3)")
        self.assertRegex(text["deep"], r"^JSONDecodeError: .* \(tools.py:4\)$")
        self.assertEqual(text["leave"], "SystemExit: 3 (tools.py:5)")
        self.assertEqual(text["leave_async"], "SystemExit: 3 (tools.py:6)")
        self.assertRegex(text["again"], r"^RecursionError: .* \(tools.py:7\)$")
        self.assertEqual(text["stop"], "KeyboardInterrupt (tools.py:8)")
        self.assertEqual(text["memory"], "MemoryError (tools.py:9)")
        self.assertEqual(text["odd"], "Odd: (its text cannot be read: RuntimeError) (tools.py:12)")
        self.assertEqual(text["long"], "ValueError: " + "x" * 10_000 + " (tools.py:13)")
        self.assertEqual(text["retry"], "try b")
        self.assertEqual(text["cancelled"], "CancelledError: mine (tools.py:19)")
        self.assertEqual(host.call(tools["fail"])["error"]["message"], text["fail"])

    def test_sys_exit_in_a_task_of_the_tool_leaves_the_host_alive(self):
        host, tools = self.tools(
            """
            import asyncio, sys
            async def leave(): sys.exit(4)
            async def start():
                await asyncio.create_task(leave())
            async def other(): return 1
            TOOLS = [start, other]
            """
        )
        self.assertIn("SystemExit: 4", host.call(tools["start"])["error"]["message"])
        self.assertEqual(host.call(tools["other"])["value"], 1)

    def test_a_child_of_fork_never_answers(self):
        host, tools = self.tools(
            """
            import os
            def fork():
                pid = os.fork()
                if pid == 0:
                    print("in the child")
                    reader, writer = os.pipe()
                    if os.fork() == 0:
                        os.fstat(reader), os.fstat(writer)
                        return "grandchild"
                    os._exit(os.wait()[1])
                return os.waitpid(pid, 0)[1]
            async def fork_async():
                pid = os.fork()
                if pid == 0:
                    return "child"
                return os.waitpid(pid, 0)[1]
            TOOLS = [fork, fork_async]
            """
        )
        self.assertEqual(host.call(tools["fork"])["value"], 0)
        self.assertEqual(host.call(tools["fork_async"])["value"], 0)
        self.assertEqual(host.call(tools["fork"])["value"], 0)


class Questions(HostCase):
    TOOLS = """
        import asyncio
        from llm_do import ApprovalDenied, CallError
        from llm_do.runtime import CallContext
        async def both(ctx: CallContext):
            return await asyncio.gather(ctx.call_agent("a", "one"), ctx.call("b", x=2), ctx.tools.c(y=[1]))
        async def caught(ctx: CallContext):
            try:
                await ctx.call("x")
            except ApprovalDenied as problem:
                assert isinstance(problem, CallError) and isinstance(problem, PermissionError)
                return ["denied", problem.kind, str(problem), problem.hint]
            except CallError as problem:
                return ["failed", problem.kind, str(problem)]
        async def uncaught(ctx: CallContext):
            await ctx.call("x")
        def threaded(ctx: CallContext):
            return ctx.call_sync("deep", {"a": 1})
        def own_loop(ctx: CallContext):
            return asyncio.run(ctx.call("deep"))
        async def blocking(ctx: CallContext):
            return ctx.call_sync("deep")
        KEPT = []
        async def keep(ctx: CallContext):
            KEPT.append(ctx)
        async def use_kept():
            return await KEPT[0].call("x")
        async def rest(ctx: CallContext):
            ctx.progress("half"); ctx.notice("note"); ctx.stderr("log")
            return [await ctx.approve("push", {"to": "x"}, "why"), await ctx.inspect(),
                    ctx.run_id, ctx.key, ctx.path, ctx.agent, ctx.depth, ctx.model, str(ctx.project_root), ctx.prompt,
                    ctx.frame.config.depth, ctx.frame.prompt]
        async def hand_over(ctx: CallContext):
            from llm_do.runtime import Attachment
            from pydantic_ai.messages import BinaryContent
            page, picture = Attachment("a.pdf"), BinaryContent(data=b"x", media_type="image/png")
            for given in (["see", page], page, {"input": "see", "attachments": ["b.pdf", page]}, {"picture": picture}):
                await ctx.call_agent("a", given)
        TOOLS = [both, caught, uncaught, threaded, own_loop, blocking, keep, use_kept, rest, hand_over]
        """

    def setUp(self):
        super().setUp()
        self.host, self.ids = self.tools(self.TOOLS)

    def test_attachments_reach_the_agent_wherever_they_stand_in_its_input(self):
        number, given = self.host.begin_call(self.ids["hand_over"]), []
        for _ in range(4):
            ask = self.host.ask()
            given.append(ask["input"])
            self.host.send(op="answer", id=ask["id"], value=None)
        self.assertNotIn("error", self.host.done(number))
        page = {"name": "a.pdf", "path": "a.pdf"}
        self.assertEqual(given[0], [{"text": "see"}, {"attachment": page}])
        self.assertEqual(given[1], [{"attachment": page}])
        self.assertEqual(given[2], {"input": "see", "attachments": ["b.pdf", "a.pdf"]})
        self.assertEqual(given[3]["attachments"][0]["data"], "eA==")

    def test_gathered_questions_are_answered_in_any_order(self):
        number = self.host.begin_call(self.ids["both"])
        asked = [self.host.ask() for _ in range(3)]
        self.assertEqual([(ask["name"], ask["input"], ask["agents_only"]) for ask in asked],
                         [("a", "one", True), ("b", {"x": 2}, False), ("c", {"y": [1]}, False)])
        for ask in reversed(asked):
            self.host.send(op="answer", id=ask["id"], value=ask["name"].upper())
        self.assertEqual(self.host.done(number)["value"], ["A", "B", "C"])

    def answered(self, name, **answer):
        number = self.host.begin_call(self.ids[name])
        self.host.send(op="answer", id=self.host.ask()["id"], **answer)
        return self.host.done(number)

    def test_a_failed_inner_call_is_an_exception(self):
        denied = {"kind": "denied", "message": "not now", "hint": "ask later"}
        self.assertEqual(self.answered("caught", error=denied)["value"], ["denied", "denied", "not now", "ask later"])
        blocked = {"kind": "blocked", "message": "never"}
        self.assertEqual(self.answered("caught", error=blocked)["value"], ["denied", "blocked", "never", None])
        failed = {"kind": "limit", "message": "too deep"}
        self.assertEqual(self.answered("caught", error=failed)["value"], ["failed", "limit", "too deep"])
        self.assertEqual(self.answered("uncaught", error=denied)["error"],
                         {"kind": "denied", "message": "not now", "hint": "ask later"})
        self.assertRegex(self.answered("uncaught", error=failed)["error"]["message"], r"^CallError: too deep \(tools.py:")

    def test_threads_and_loops_of_their_own_can_ask(self):
        self.assertEqual(self.answered("threaded", value={"b": 1})["value"], {"b": 1})
        self.assertEqual(self.answered("own_loop", value="x")["value"], "x")
        self.assertIn("await ctx.call", self.host.call(self.ids["blocking"])["error"]["message"])

    def test_a_context_ends_with_its_call(self):
        self.host.call(self.ids["keep"])
        self.assertIn("this call has ended", self.host.call(self.ids["use_kept"])["error"]["message"])

    def test_the_context_knows_its_call(self):
        number = self.host.begin_call(self.ids["rest"])
        ask = self.host.ask()
        self.assertEqual([ask["what"], ask["name"], ask["payload"], ask["reason"]], ["approve", "push", {"to": "x"}, "why"])
        self.host.send(op="answer", id=ask["id"], value={"to": "y"})
        ask = self.host.ask()
        self.assertEqual(ask["what"], "inspect")
        self.host.send(op="answer", id=ask["id"], value={"usage": {}})
        self.assertEqual(self.host.done(number)["value"],
                         [{"to": "y"}, {"usage": {}}, "run-1", "t1/tool/1", "main > tool", "main", 1, "test",
                          self.directory, "hello", 1, "hello"])
        said = [(message["kind"], message["text"]) for message in self.host.said]
        self.assertEqual(said, [("progress", "half"), ("notice", "note"), ("stderr", "log")])


class Keys(HostCase):
    def test_keys_that_become_one_are_an_error(self):
        host, tools = self.tools(
            r"""
            import enum, pathlib
            from types import MappingProxyType
            from pydantic import BaseModel
            class Color(enum.Enum):
                RED = "red"
            class Model(BaseModel):
                values: dict
            RESULTS = [
                {1: "a", "1": "b"}, {None: 1, "null": 2}, {True: 1, "true": 2}, {1.5: 1, "1.5": 2},
                {Color.RED: 1, "red": 2}, {pathlib.Path("x"): 1, "x": 2}, {"\ud800": 1, "\ud801": 2},
                [{"deep": {2: 1, "2": 2}}], MappingProxyType({1: 1, "1": 2}), Model(values={1: 1, "1": 2}),
            ]
            def result(number: int):
                return RESULTS[number]
            def apart() -> dict:
                return {1: "a", "2": "b", "1.0": "c"}
            TOOLS = [result, apart]
            """
        )
        for number in range(10):
            answer = host.call(tools["result"], {"number": number})
            self.assertIn("two keys", answer.get("error", {}).get("message", str(answer)), number)
        self.assertEqual(host.call(tools["apart"])["value"], {"1": "a", "2": "b", "1.0": "c"})


class Output(HostCase):
    def test_what_is_printed_belongs_to_its_call(self):
        host, tools = self.tools(
            """
            import asyncio, sys, logging
            print("at import")
            async def say(text: str):
                print(text, "one")
                await asyncio.sleep(0.01)
                print(text, "two", end="")
            def log(text: str):
                logging.warning(text)
                sys.stdout.buffer.write(b"bytes\\n")
            TOOLS = [say, log]
            """
        )
        numbers = [host.begin_call(tools["say"], {"text": text}) for text in "ab"]
        numbers.append(host.begin_call(tools["log"], {"text": "c"}))
        for number in numbers:
            host.done(number)
        self.assertEqual(host.lines(None), ["at import"])
        self.assertEqual(host.lines(numbers[0]), ["a one", "a two"])
        self.assertEqual(host.lines(numbers[1]), ["b one", "b two"])
        self.assertEqual(host.lines(numbers[2]), ["WARNING:root:c", "bytes"])

    def test_lines_of_threads_and_tasks_do_not_mix(self):
        host, tools = self.tools(
            """
            import asyncio, sys, threading
            async def both():
                async def slow(name):
                    print(name, end="")
                    await asyncio.sleep(0)
                    print(" done")
                barrier = threading.Barrier(2)
                def thread(name):
                    sys.stdout.write(name)
                    barrier.wait()
                    sys.stdout.write(" done\\n")
                loop = asyncio.get_running_loop()
                await asyncio.gather(
                    slow("a"), slow("b"), *(loop.run_in_executor(None, thread, name) for name in "cd"),
                    *(asyncio.to_thread(thread, name) for name in "ef"),
                )
            def unfinished():
                ended = threading.Thread(target=lambda: print("no newline", end=""))
                ended.start()
                ended.join()
            TOOLS = [both, unfinished]
            """
        )
        host.call(tools["both"])
        said = sorted(message["text"] for message in host.said)
        self.assertEqual(said, [f"{name} done" for name in "abcdef"])
        host.said.clear()
        host.call(tools["unfinished"])
        self.assertEqual([message["text"] for message in host.said], ["no newline"])

    def test_a_line_that_is_cut_by_the_end_of_its_call_is_one_line(self):
        host, tools = self.tools(
            """
            import asyncio, contextvars, sys, threading
            GO = threading.Event()
            def begin():
                written = threading.Event()
                def work():
                    sys.stdout.write("begun")
                    written.set()
                    GO.wait()
                    sys.stdout.write("\\nafter\\n")
                    GO.clear()
                context = contextvars.copy_context()
                threading.Thread(target=context.run, args=(work,)).start()
                written.wait()
            def end():
                GO.set()
                while GO.is_set():
                    pass
            TOOLS = [begin, end]
            """
        )
        host.call(tools["begin"])
        host.call(tools["end"])
        self.assertEqual([message["text"] for message in host.said], ["begun", "after"])

    def test_a_flood_is_cut(self):
        host, tools = self.tools(
            """
            def flood():
                for _ in range(100_000):
                    print("x" * 99)
            TOOLS = [flood]
            """
        )
        host.call(tools["flood"])
        lines = [message["text"] for message in host.said]
        self.assertLess(sum(map(len, lines)), 300_000)
        self.assertRegex(lines[-1], r"^\(\d+ more characters of output were dropped\)$")


class Concurrency(HostCase):
    def test_many_calls_run_at_once(self):
        host, tools = self.tools(
            """
            import asyncio, threading
            BARRIER = threading.Barrier(100)
            def meet():
                BARRIER.wait(10)
                return 1
            async def nap():
                await asyncio.sleep(0.1)
            TOOLS = [meet, nap]
            """
        )
        numbers = [host.begin_call(tools["meet"]) for _ in range(100)]
        self.assertEqual(sum(host.done(number)["value"] for number in numbers), 100)
        began = time.monotonic()
        numbers = [host.begin_call(tools["nap"]) for _ in range(1000)]
        for number in numbers:
            host.done(number)
        self.assertLess(time.monotonic() - began, 5)

    def test_large_messages_pass_in_both_directions(self):
        host, tools = self.tools("def same(text: str): return text\nTOOLS = [same]")
        text = "é" * 5_000_000
        self.assertEqual(host.call(tools["same"], {"text": text})["value"], text)


class Llmproc(HostCase):
    def test_a_registered_function_gets_its_runtime_context(self):
        host, answer = self.loaded(
            """
            from llmproc import register_tool
            from llmproc.common import AccessLevel
            from llmproc.common.results import ToolResult
            @register_tool
            def plain(x: int):
                "Does it.\\n\\nAnd more."
                return x
            @register_tool(name="where", description="Where it is.", param_descriptions={"what": "the thing"},
                           requires_context=True, required_context_keys=["process", "region"], access=AccessLevel.READ)
            async def find(what: str, runtime_context=None):
                runtime_context["stderr"].append("looking")
                process = runtime_context["process"]
                result = await process.call_tool("y", a=1)
                return [runtime_context["region"], process.model_name, result.content, process.get_stderr_log()]
            @register_tool()
            def result(kind: str):
                return getattr(ToolResult, kind)({"a": 1})
            """
        )
        tools = {tool["name"]: tool for tool in answer["tools"]}
        self.assertEqual(sorted(tools), ["plain", "result", "where"])
        self.assertEqual([tools["plain"]["description"], tools["plain"]["access"]], ["Does it.", "write"])
        where = tools["where"]
        self.assertEqual([where["access"], where["needs"]], ["read", ["process", "region"]])
        self.assertEqual(list(where["input"]["properties"]), ["what"])
        self.assertEqual(where["input"]["properties"]["what"]["description"], "the thing")
        self.assertEqual(
            host.call(where["id"], {"what": "x"})["error"],
            {"kind": "context", "message": "Tool 'where' error: Runtime context missing required keys: region", "hint": None},
        )
        number = host.begin_call(where["id"], {"what": "x"}, values={"region": "eu"})
        host.send(op="answer", id=host.ask()["id"], value="z")
        question = host.ask()
        self.assertEqual(question["what"], "stderr")
        host.send(op="answer", id=question["id"], value=["looking"])
        self.assertEqual(host.done(number)["value"], ["eu", "test", "z", ["looking"]])
        self.assertEqual(host.lines(number), ["looking"])
        result = tools["result"]["id"]
        self.assertEqual(host.call(result, {"kind": "from_success"})["value"], {"a": 1})
        error = host.call(result, {"kind": "from_error"})["error"]
        self.assertEqual((error["kind"], json.loads(error["message"])), ("tool", {"a": 1}))
        self.assertEqual(host.call(result, {"kind": "from_abort"})["error"]["kind"], "abort")


class InnerResults(HostCase):
    def test_the_result_of_an_inner_tool_can_be_part_of_a_result(self):
        host, tools = self.tools(
            """
            from llmproc import register_tool
            @register_tool(requires_context=True)
            def both(runtime_context=None):
                process = runtime_context["process"]
                return {"good": process.call_tool("good"), "bad": process.call_tool("bad")}
            """
        )
        number = host.begin_call(tools["both"])
        host.send(op="answer", id=host.ask()["id"], value={"tripled": 12})
        error = {"kind": "tool", "message": "no luck", "hint": None}
        host.send(op="answer", id=host.ask()["id"], error=error)
        expected = {"good": {"tripled": 12}, "bad": {"content": "no luck", "is_error": True}}
        self.assertEqual(host.done(number)["value"], expected)


class Reads(HostCase):
    """Attributes that an async tool reads without awaiting: the loop waits for the answer."""

    TOOLS = """
        import asyncio
        from llm_do import CallContext
        async def read(ctx: CallContext):
            return len(ctx.trace)
        async def wait(ctx: CallContext):
            return await ctx.call("other")
        def block(ctx: CallContext):
            return ctx.call_sync("other")
        TOOLS = [read, wait, block]
        """

    def test_messages_that_arrive_meanwhile_are_kept_in_order(self):
        host, tools = self.tools(self.TOOLS)
        waiting, blocked = host.begin_call(tools["wait"]), host.begin_call(tools["block"])
        questions = [host.ask(), host.ask()]
        number = host.begin_call(tools["read"])
        reading = host.ask()
        self.assertEqual(reading["what"], "trace")
        # Answers of other calls, and a new call, arrive before the answer.
        for index, question in enumerate(questions):
            host.send(op="answer", id=question["id"], value=index)
        late = host.begin_call(tools["read"])
        host.send(op="answer", id=reading["id"], value=[])
        self.assertEqual(host.done(number)["value"], 0)
        host.send(op="answer", id=host.ask()["id"], value=[])
        self.assertEqual(host.done(late)["value"], 0)
        values = [host.done(waiting)["value"], host.done(blocked)["value"]]
        self.assertEqual(sorted(values), [0, 1])

    def test_a_call_that_is_cancelled_while_it_reads_ends(self):
        host, tools = self.tools(self.TOOLS)
        number = host.begin_call(tools["read"])
        host.ask()
        host.send(op="cancel", id=number)
        self.assertEqual(host.done(number)["error"]["kind"], "cancelled")
        # The loop goes on.
        other = host.begin_call(tools["read"])
        host.send(op="answer", id=host.ask()["id"], value=[])
        self.assertEqual(host.done(other)["value"], 0)

    def test_a_refused_question_raises(self):
        host, tools = self.tools(self.TOOLS)
        number = host.begin_call(tools["read"])
        error = {"kind": "tool", "message": "not here", "hint": None}
        host.send(op="answer", id=host.ask()["id"], error=error)
        self.assertIn("not here", host.done(number)["error"]["message"])

    def test_nothing_was_used_while_the_project_is_loaded(self):
        self.loaded(
            """
            from pydantic_ai.toolsets import FunctionToolset
            def make(ctx):
                assert ctx.deps.usage == {} and ctx.deps.trace == []
                return FunctionToolset()
            TOOLSETS = {"kit": make}
            """
        )
