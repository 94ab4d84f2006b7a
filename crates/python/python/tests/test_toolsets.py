"""Toolsets: factories, shared ones, approvals, their lives."""

import sys
import unittest

from support import HostCase


class Toolsets(HostCase):
    def open(self, host, toolset, instance):
        return host.done(host.begin("open", toolset=toolset, instance=instance, context=host.context()))

    def close(self, host, instance):
        return host.done(host.begin("close", instance=instance))

    def test_each_open_makes_an_instance_with_a_life_of_its_own(self):
        host, answer = self.loaded(
            """
            from pydantic_ai.tools import RunContext
            from pydantic_ai.toolsets import FunctionToolset
            from llm_do.runtime import CallContext
            class Counting(FunctionToolset):
                count = 0
                async def __aenter__(self):
                    print("enter"); return self
                async def __aexit__(self, *problem):
                    print("exit")
                def cleanup(self):
                    print("cleanup")
                    raise ValueError("odd")
            async def counters(ctx: RunContext[CallContext]):
                made = Counting()
                @made.tool
                def count(ctx: RunContext[CallContext], step: int = 1) -> int:
                    "Counts."
                    made.count += step
                    return made.count
                return made
            TOOLSETS = [counters]
            """
        )
        (toolset,) = answer["toolsets"]
        self.assertEqual([toolset["id"], toolset["name"], toolset["kind"], toolset["line"]], ["s1", "counters", "python", 14])
        (tool,) = toolset["tools"]
        self.assertEqual([tool["name"], tool["description"], tool["approval"]], ["count", "Counts.", None])
        # To learn its tools it is made and cleaned up, and not entered.
        self.assertEqual(host.lines(None), ["cleanup", host.lines(None)[1]])
        self.assertIn("cleanup failed: ValueError: odd", host.lines(None)[1])
        self.open(host, "s1", 1)
        self.open(host, "s1", 2)
        self.assertEqual([host.call(tool["id"], {}, 1)["value"] for _ in range(2)], [1, 2])
        self.assertEqual(host.call(tool["id"], {"step": 5}, 2)["value"], 5)
        said = len(host.said)
        self.close(host, 1)
        self.assertEqual([message["text"] for message in host.said[said:]][:2], ["exit", "cleanup"])
        self.assertEqual(host.call(tool["id"], {}, 1)["error"]["kind"], "tool")
        self.assertEqual(host.call(tool["id"], {}, 2)["value"], 6)
        self.assertEqual(host.call(tool["id"], {"step": "x"}, 2)["error"]["kind"], "arguments")

    def test_a_toolset_that_fails_to_open_is_closed_again(self):
        host, _ = self.loaded(
            """
            from pydantic_ai.toolsets import FunctionToolset
            MADE = []
            class Failing(FunctionToolset):
                async def get_tools(self, ctx):
                    if len(MADE) > 1:
                        raise OSError("no database")
                    return {}
                async def __aexit__(self, *problem):
                    print("exit")
            def failing():
                MADE.append(1)
                return Failing()
            def strange(ctx):
                return None if not ctx.deps.run_id else 5
            TOOLSETS = {"failing": failing, "strange": strange}
            """
        )
        host.said.clear()
        self.assertIn("OSError: no database", self.open(host, "s1", 1)["error"]["message"])
        self.assertEqual([message["text"] for message in host.said], ["exit"])
        self.assertIn("expected a toolset or None", self.open(host, "s2", 2)["error"]["message"])

    def test_one_task_enters_and_leaves_a_toolset_and_calls_see_its_context(self):
        host, answer = self.loaded(
            """
            import asyncio, contextvars
            from pydantic_ai.toolsets import FunctionToolset
            session = contextvars.ContextVar("session", default="unset")
            class Own(FunctionToolset):
                async def __aenter__(self):
                    self.task, self.token = asyncio.current_task(), session.set("entered")
                    return self
                async def __aexit__(self, *problem):
                    print("exit", session.get(), asyncio.current_task() is self.task)
                    session.reset(self.token)
            def make():
                made = Own()
                @made.tool_plain
                async def see(change: str = "") -> list:
                    before = session.get()
                    session.set(change or before)
                    return [before, asyncio.current_task() is made.task]
                @made.tool_plain
                def see_in_thread() -> str:
                    return session.get()
                return made
            TOOLSETS = {"own": make}
            """
        )
        tools = {tool["name"]: tool["id"] for tool in answer["toolsets"][0]["tools"]}
        self.open(host, "s1", 1)
        self.assertEqual(host.call(tools["see"], {"change": "changed"}, 1)["value"], ["entered", False])
        self.assertEqual(host.call(tools["see"], {}, 1)["value"], ["entered", False])
        self.assertEqual(host.call(tools["see_in_thread"], {}, 1)["value"], "entered")
        closing = host.begin("close", instance=1)
        self.assertEqual(host.done(closing)["value"], None)
        self.assertEqual(host.lines(closing), ["exit entered True"])

    def test_calls_of_one_instance_run_side_by_side_and_are_cancelled_alone(self):
        host, answer = self.loaded(
            """
            import asyncio
            from pydantic_ai.toolsets import FunctionToolset
            def make():
                made, arrived = FunctionToolset(), asyncio.Event()
                @made.tool_plain
                async def wait() -> str:
                    await arrived.wait()
                    return "met"
                @made.tool_plain
                async def arrive() -> str:
                    arrived.set()
                    return "arrived"
                return made
            TOOLSETS = {"own": make}
            """
        )
        tools = {tool["name"]: tool["id"] for tool in answer["toolsets"][0]["tools"]}
        self.open(host, "s1", 1)
        first, second = host.begin_call(tools["wait"], {}, 1), host.begin_call(tools["wait"], {}, 1)
        host.send(op="cancel", id=first)
        self.assertEqual(host.done(first)["error"]["kind"], "cancelled")
        self.assertEqual(host.call(tools["arrive"], {}, 1)["value"], "arrived")
        self.assertEqual(host.done(second)["value"], "met")
        self.assertIsNone(self.close(host, 1).get("error"))

    @unittest.skipIf(sys.version_info < (3, 11), "task groups and timeouts of asyncio are new in Python 3.11")
    def test_task_groups_and_timeouts_may_be_open_as_long_as_the_toolset(self):
        host, answer = self.loaded(
            """
            import asyncio
            from pydantic_ai.toolsets import FunctionToolset
            class Own(FunctionToolset):
                async def __aenter__(self):
                    self.limit = asyncio.timeout(1000)
                    await self.limit.__aenter__()
                    self.group = asyncio.TaskGroup()
                    await self.group.__aenter__()
                    return self
                async def __aexit__(self, *problem):
                    await self.group.__aexit__(*problem)
                    await self.limit.__aexit__(*problem)
                    print("left")
            def make():
                made = Own()
                async def work(text):
                    await asyncio.sleep(0)
                    print(text)
                async def fail():
                    raise ValueError("lost")
                @made.tool_plain
                async def start(text: str):
                    made.group.create_task(work(text))
                @made.tool_plain
                async def break_it():
                    made.group.create_task(fail())
                @made.tool_plain
                def use() -> str:
                    return "used"
                return made
            TOOLSETS = {"own": make}
            """
        )
        tools = {tool["name"]: tool["id"] for tool in answer["toolsets"][0]["tools"]}
        self.open(host, "s1", 1)
        self.open(host, "s1", 2)
        host.call(tools["start"], {"text": "worked"}, 1)
        self.assertIsNone(self.close(host, 1).get("error"))
        self.assertEqual(sorted(message["text"] for message in host.said), ["left", "worked"])
        host.call(tools["break_it"], {}, 2)
        host.until(lambda message: message["op"] == "say" and "__aexit__ failed" in message["text"] and "lost" in message["text"])
        self.assertIn("ValueError: lost", host.call(tools["use"], {}, 2)["error"]["message"])
        self.assertIsNone(self.close(host, 2).get("error"))

    def test_opening_and_closing_can_be_cancelled(self):
        host, answer = self.loaded(
            """
            import asyncio
            from pydantic_ai.toolsets import FunctionToolset
            class Own(FunctionToolset):
                async def __aenter__(self):
                    print("entering")
                    if SLOW["enter"]:
                        await asyncio.sleep(1000)
                    return self
                async def __aexit__(self, *problem):
                    print("leaving")
                    await asyncio.sleep(1000)
                def cleanup(self):
                    print("cleanup")
            SLOW = {"enter": False}
            def make():
                made = Own()
                @made.tool_plain
                def slow_down():
                    SLOW["enter"] = True
                return made
            TOOLSETS = {"own": make}
            """
        )
        self.open(host, "s1", 1)
        host.call(answer["toolsets"][0]["tools"][0]["id"], {}, 1)
        for op, more, last in [
            ("open", {"toolset": "s1", "instance": 2, "context": host.context()}, "entering"),
            ("close", {"instance": 1}, "leaving"),
        ]:
            number = host.begin(op, **more)
            host.until(lambda message: message["op"] == "say" and message["text"] == last)
            host.send(op="cancel", id=number)
            self.assertEqual(host.done(number)["error"]["kind"], "cancelled")
        self.assertEqual(self.close(host, 2)["value"], None)

    def test_a_module_level_toolset_is_shared(self):
        host, answer = self.loaded(
            """
            from pydantic_ai.toolsets import FunctionToolset
            shared = FunctionToolset()
            seen = []
            @shared.tool_plain
            def see(x: int) -> list:
                seen.append(x)
                return seen
            """
        )
        tool = answer["toolsets"][0]["tools"][0]["id"]
        self.assertEqual(answer["toolsets"][0]["name"], "shared")
        self.open(host, "s1", 1)
        self.open(host, "s1", 2)
        host.call(tool, {"x": 1}, 1)
        self.close(host, 1)
        self.assertEqual(host.call(tool, {"x": 2}, 2)["value"], [1, 2])

    def test_any_object_with_the_protocol_is_a_toolset_and_may_judge(self):
        host, answer = self.loaded(
            """
            from llm_do import ApprovalResult
            from llm_do.toolsets.approval import set_toolset_approval_config
            class Definition:
                name, description, parameters_json_schema = "push", "Pushes.", {"type": "object", "properties": {"to": {}}}
            class Tool:
                tool_def = Definition()
                args_validator = None
            class Own:
                async def get_tools(self, ctx):
                    return {"push": Tool(), "pull": Tool(), "stop": Tool()}
                async def call_tool(self, name, args, ctx, tool):
                    return [name, args, ctx.deps.agent]
                async def needs_approval(self, name, args, ctx, config):
                    if args.get("to") == "prod":
                        return ApprovalResult.blocked("never")
                    return ApprovalResult.needs_approval() if name == "push" else ApprovalResult.pre_approved()
                def get_approval_description(self, name, args, ctx):
                    return f"Push to {args.get('to')}"
            own = Own()
            set_toolset_approval_config(own, {"push": {"pre_approved": False}, "pull": {"pre_approved": True}, "stop": {"blocked": True}})
            """
        )
        tools = {tool["name"]: tool for tool in answer["toolsets"][0]["tools"]}
        self.assertEqual([tools[name]["approval"] for name in ("push", "pull", "stop")], ["ask", "pre_approved", "blocked"])
        self.assertTrue(tools["push"]["judges"])
        self.open(host, "s1", 1)
        push = tools["push"]["id"]
        assess = lambda id, to: host.done(  # noqa: E731
            host.begin("assess", target=id, instance=1, args={"to": to}, context=host.context())
        )["value"]
        self.assertEqual(assess(push, "x"), {"approval": "ask", "description": "Push to x", "reason": None})
        self.assertEqual(assess(push, "prod"), {"approval": "blocked", "description": None, "reason": "never"})
        self.assertEqual(assess(tools["pull"]["id"], "x"), {"approval": "pre_approved", "description": None, "reason": None})
        self.assertEqual(host.call(push, {"to": "x"}, 1)["value"], ["push", {"to": "x"}, "main"])

    def test_toolsets_of_llm_do_are_declared_only(self):
        _, answer = self.loaded(
            """
            from llm_do.toolsets import FileSystemToolset, ReadOnlyFileSystemToolset, ShellToolset
            def docs(ctx):
                return ReadOnlyFileSystemToolset(config={"base_path": "docs"})
            TOOLSETS = {"docs": docs, "git": ShellToolset(config={"rules": [{"pattern": "git"}]}), "all": FileSystemToolset({})}
            """
        )
        shown = [(known["name"], known["kind"], known["config"], known["read_only"]) for known in answer["toolsets"]]
        self.assertEqual(
            shown,
            [
                ("docs", "filesystem", {"base_path": "docs"}, True),
                ("git", "shell", {"rules": [{"pattern": "git"}]}, False),
                ("all", "filesystem", {}, False),
            ],
        )

    def test_a_changed_toolset_of_llm_do_is_a_problem(self):
        problems = self.refused(
            """
            from llm_do.toolsets.shell import ShellToolset
            class Guarded(ShellToolset):
                def needs_approval(self, name, args, ctx, config=None):
                    pass
            TOOLSETS = {"guarded": Guarded}
            """
        )
        self.assertIn("changes `needs_approval` of ShellToolset", problems[0]["message"])

    def test_a_spec_and_a_class_are_factories(self):
        host, answer = self.loaded(
            """
            from pydantic_ai.toolsets import FunctionToolset
            from llm_do.runtime import ToolsetSpec
            def make():
                made = FunctionToolset()
                made.tool_plain(lambda: 1, name="one")
                return made
            class Own(FunctionToolset):
                pass
            later = ToolsetSpec(make)
            """
        )
        self.assertEqual([known["name"] for known in answer["toolsets"]], ["later"])
        self.open(host, "s1", 1)
        self.assertEqual(host.call(answer["toolsets"][0]["tools"][0]["id"], {}, 1)["value"], 1)

    def test_a_function_without_a_context_is_taken_whatever_is_installed(self):
        host, answer = self.loaded(
            """
            from pydantic_ai import RunContext
            from pydantic_ai.toolsets import FunctionToolset
            calc = FunctionToolset()
            @calc.tool
            def plain(n: int) -> int:
                return n
            @calc.tool(name="renamed")
            def other(n: int) -> int:
                return -n
            @calc.tool
            def with_context(ctx: RunContext, n: int) -> int:
                return n + 1
            """
        )
        tools = {tool["name"]: tool["id"] for tool in answer["toolsets"][0]["tools"]}
        self.open(host, "s1", 1)
        results = [host.call(tools[name], {"n": 1}, 1)["value"] for name in ("plain", "renamed", "with_context")]
        self.assertEqual(results, [1, -1, 2])
