"""Loading: what is found, and what is refused with file and line."""

import os
import subprocess
import sys
import unittest

import search_paths
from support import START, HostCase


class Problems(HostCase):
    def assert_problem(self, problem, line, words, hint=None):
        self.assertEqual((os.path.basename(problem["file"]), problem["line"]), ("tools.py", line), problem)
        self.assertIn(words, problem["message"])
        if hint:
            self.assertIn(hint, problem["hint"])

    def test_a_failed_import_names_the_line(self):
        for text, line, words, hint in [
            ("x = 1\ndef f(:\n", 2, "SyntaxError", None),
            ("import os\nimport no_such_package\n", 2, "ModuleNotFoundError", "pip install no_such_package"),
            ("def f():\n    1 / 0\n\nf()\n", 2, "ZeroDivisionError", None),
            ("import json\njson.loads('{')\n", 2, "JSONDecodeError", None),
            ("import sys\nsys.exit(2)\n", 2, "SystemExit", "__main__"),
            ("def f():\n    f()\nf()\n", 2, "RecursionError", None),
        ]:
            with self.subTest(words):
                (problem,) = self.refused(text)
                self.assert_problem(problem, line, words, hint)

    def test_wrong_declarations_are_all_told_at_once(self):
        problems = self.refused(
            """
            class Thing: pass
            def two(): pass
            def many(*args): pass
            def other(): pass
            other.__name__ = "two"
            TOOLS = [Thing, 5, two, other, lambda: 1, many]
            TOOLSETS = {"one": 5, 2: two, "three": other}
            """
        )
        for problem, (line, words) in zip(
            problems,
            [
                (7, "which is no function"),
                (7, "TOOLS contains 5"),
                (5, "tool `two` is declared twice"),
                (7, "a function without a name"),
                (4, "`many` cannot be a tool"),
                (8, "toolset `one` is a int"),
                (8, "a key of TOOLSETS is 2"),
            ],
        ):
            self.assert_problem(problem, line, words)
        self.assertEqual(len(problems), 7, problems)

    def test_a_factory_that_fails_is_a_problem_at_its_line(self):
        (problem,) = self.refused(
            """
            def make(ctx):
                return open("/no/such/file")
            TOOLSETS = {"made": make}
            """
        )
        self.assert_problem(problem, 3, "toolset `made`: FileNotFoundError")
        (problem,) = self.refused("def make(ctx):\n    return ctx.deps.call_sync('x')\nTOOLSETS = [make]")
        self.assert_problem(problem, 2, "nothing can be called while the project is loaded")

    def test_a_problem_of_an_imported_file_is_told_once(self):
        self.file("broken.py", "x = 1\ny = z\n")
        self.file("tools.py", "import broken\n")
        answer = self.host().load(["tools.py", "broken.py"])
        (problem,) = answer["problems"]
        self.assertEqual((os.path.basename(problem["file"]), problem["line"]), ("broken.py", 2))

    def test_missing_names_are_told_with_the_nearest(self):
        problems = self.refused(
            "class Topic: pass\ndef main(): pass\n",
            classes=[{"file": "tools.py", "name": "Topics", "use": "input"}],
            entry={"file": "tools.py", "name": "mian"},
        )
        self.assertEqual([problem["hint"] for problem in problems], ["did you mean `Topic`?", "did you mean `main`?"])

    def test_an_old_python_is_refused_in_the_protocol(self):
        with open(START) as file:
            compile(file.read(), START, "exec")
        for version in ("2.7.18", "3.6.15", "3.9.18"):
            python = os.path.expanduser(f"~/.pyenv/versions/{version}/bin/python")
            if not os.path.exists(python):
                continue
            with self.subTest(version):
                os.environ["LLM_DO_TEST_PYTHON"], before = python, os.environ.get("LLM_DO_TEST_PYTHON")
                try:
                    self.file("tools.py", "")
                    (problem,) = self.host().load(["tools.py"])["problems"]
                finally:
                    os.environ.pop("LLM_DO_TEST_PYTHON")
                    if before:
                        os.environ["LLM_DO_TEST_PYTHON"] = before
                self.assertIn(f"Python {version} is too old", problem["message"])


class Found(HostCase):
    def names(self, text):
        return [tool["name"] for tool in self.loaded(text)[1]["tools"]]

    def test_every_way_of_declaring_tools(self):
        self.assertEqual(self.names("def f(): pass\nTOOLS = {'g': f}\n"), ["g"])
        self.assertEqual(self.names("def f(): pass\ndef g(): pass\nTOOLS = [f]\n__all__ = ['g']\n"), ["f"])
        self.assertEqual(self.names("def f(): pass\nclass C: pass\nX = 1\n__all__ = ['f', 'C', 'X']\n"), ["f"])
        self.assertEqual(self.names("def f(): pass\n"), [])
        self.assertEqual(
            self.names("from pydantic_ai import Tool\ndef f(): pass\nTOOLS = [Tool(f, name='g', description='G.')]\n"), ["g"]
        )
        self.assertEqual(
            self.names("class C:\n    def m(self, x: int): return x\nc = C()\nTOOLS = {'m': c.m}\n"), ["m"]
        )

    def test_settings_of_a_tool_object(self):
        _, answer = self.loaded(
            """
            from pydantic_ai import Tool
            def f(x: int): pass
            TOOLS = [Tool(f, description="G.", requires_approval=True, sequential=True)]
            """
        )
        (tool,) = answer["tools"]
        self.assertEqual([tool["description"], tool["approval"], tool["sequential"], tool["line"]], ["G.", "ask", True, 3])

    def test_a_file_is_executed_once_however_it_is_named(self):
        self.file("helpers/schemas.py", "print('schemas')\nfrom llm_do.runtime import AgentArgs\nclass Topic(AgentArgs):\n    name: str\n    def prompt_messages(self): return [self.name]\n")
        self.file("tools.py", "import schemas, helpers.schemas\nassert schemas is helpers.schemas\nprint('tools')\ndef f(): pass\nTOOLS = [f]\n")
        self.file("more.py", "import tools\nfrom tools import f\nfrom llmproc import register_tool\n")
        host = self.host()
        answer = host.load(
            ["more.py", "tools.py"], classes=[{"file": "helpers/schemas.py", "name": "Topic", "use": "input"}]
        )
        self.assertEqual(answer["op"], "loaded", answer)
        self.assertEqual(host.lines(None), ["schemas", "tools"])
        self.assertEqual([tool["name"] for tool in answer["tools"]], ["f"])

    def test_an_object_of_two_files_belongs_to_the_one_that_made_it(self):
        self.file("a.py", "from b import shared\n")
        self.file("b.py", "from pydantic_ai.toolsets import FunctionToolset\nshared = FunctionToolset()\n")
        answer = self.host().load(["a.py", "b.py"])
        self.assertEqual([os.path.basename(known["file"]) for known in answer["toolsets"]], ["b.py"])

    def test_agents_may_name_what_other_files_declare(self):
        self.file("a.py", "from llm_do import AgentSpec\nfrom b import shared, make, f\nTOOLS = [f]\n"
                          "one = AgentSpec('one', 'x', tools=[f], toolsets=[shared, make])\n")
        self.file("b.py", "from pydantic_ai.toolsets import FunctionToolset\nshared = FunctionToolset()\n"
                          "def make(): return FunctionToolset()\ndef f(): pass\n"
                          "TOOLS = [f]\nTOOLSETS = {'first': shared, 'second': make}\n")
        answer = self.host().load(["a.py", "b.py"])
        self.assertEqual(answer["op"], "loaded", answer)
        self.assertEqual([answer["agents"][0]["tools"], answer["agents"][0]["toolsets"]], [["f"], ["first", "second"]])

    def test_a_file_may_have_the_name_of_a_standard_module(self):
        self.file("calendar.py", "import json, calendar\ndef f(): return calendar.isleap(2024)\nTOOLS = [f]\n")
        self.file("queue.py", "def g(): return 1\nTOOLS = [g]\n")
        host = self.host()
        answer = host.load(["calendar.py", "queue.py"])
        self.assertEqual([host.call(tool["id"])["value"] for tool in answer["tools"]], [True, 1])

    def test_a_change_within_the_same_second_is_seen(self):
        for value in (1, 2):
            host, tools = self.tools(f"def f(): return {value}\nTOOLS = [f]\n")
            self.assertEqual(host.call(tools["f"])["value"], value)

    def test_agents_are_found(self):
        _, answer = self.loaded(
            """
            from llm_do import AgentSpec
            from llm_do.runtime import AgentArgs
            from pydantic import BaseModel
            from pydantic_ai.toolsets import FunctionToolset
            class Topic(AgentArgs):
                name: str
                def prompt_messages(self): return [self.name]
            class Answer(BaseModel):
                text: str
            def f(x: int): pass
            extra = FunctionToolset()
            helper = AgentSpec(name="helper", instructions="Help.", model="test")
            main = AgentSpec(name="main", instructions="Do.", description="Does.", tools=[f], toolsets=[extra, "shell_readonly", helper],
                             input_model=Topic, output_model=Answer)
            """
        )
        helper, main = answer["agents"]
        self.assertEqual([helper["name"], helper["model"], helper["class"], helper["line"]], ["helper", "test", None, 13])
        self.assertEqual([main["tools"], main["toolsets"]], [["f"], ["extra", "shell_readonly", "helper"]])
        self.assertEqual(main["output"]["properties"]["text"]["type"], "string")
        self.assertEqual(answer["classes"][0]["id"], main["class"])
        self.assertEqual([tool["name"] for tool in answer["tools"]], ["f"])

    def test_several_entries_without_a_manifest_entry_are_a_problem(self):
        text = """
            from llm_do import EntrySpec, FunctionEntry
            async def main(args, ctx): pass
            one = EntrySpec(name="one", main=main)
            two = FunctionEntry("two", main)
            """
        (problem,) = self.refused(text)
        self.assertIn("`one`, `two`", problem["message"])
        _, answer = self.loaded(text, entry={"file": "tools.py", "name": "two"})
        self.assertEqual([(entry["name"], entry["manifest"]) for entry in answer["entries"]], [("one", False), ("two", True)])


class EntriesAndClasses(HostCase):
    def test_an_entry_gets_its_input_and_its_context(self):
        text = """
            from llm_do.runtime import AgentArgs, CallContext, PromptInput
            class Topic(AgentArgs):
                name: str
                def prompt_messages(self): return ["about " + self.name]
            async def typed(args: Topic, ctx: CallContext):
                "Runs it."
                return [type(args).__name__, args.name, await ctx.call_agent("a", args)]
            async def plain(args, runtime):
                return [type(args).__name__, args.input, args.attachments]
            def sync(args):
                return args.input
            def nothing():
                return "done"
            """
        host, answer = self.loaded(text, entry={"file": "tools.py", "name": "typed"})
        (entry,) = answer["entries"]
        self.assertEqual([entry["name"], entry["description"], entry["manifest"], entry["class"]], ["typed", "Runs it.", True, "c1"])
        self.assertEqual(entry["input"]["required"], ["name"])
        number = host.begin_call("e1", {"name": "x"})
        ask = host.ask()
        self.assertEqual(ask["input"], {"name": "x"})
        host.send(op="answer", id=ask["id"], value="z")
        self.assertEqual(host.done(number)["value"], ["Topic", "x", "z"])
        self.assertEqual(host.call("e1", {})["error"]["kind"], "arguments")
        for name, value in [("plain", ["PromptInput", "hi", []]), ("sync", "hi"), ("nothing", "done")]:
            host, answer = self.loaded(text, entry={"file": "tools.py", "name": name})
            self.assertEqual(host.call("e1", {"input": "hi"})["value"], value)

    def test_an_input_class_makes_its_prompt(self):
        host, answer = self.loaded(
            """
            from llm_do.runtime import AgentArgs, Attachment
            class Topic(AgentArgs):
                name: str
                def prompt_messages(self): return ["about " + self.name, Attachment("a.pdf"), " "]
            class Odd(AgentArgs):
                def prompt_messages(self): return [5]
            """,
            classes=[{"file": "tools.py", "name": name, "use": "input"} for name in ("Topic", "Odd")],
        )
        self.assertEqual([known["id"] for known in answer["classes"]], ["c1", "c2"])
        prompt = lambda cls, args: host.done(host.begin("prompt", **{"class": cls}, args=args))  # noqa: E731
        self.assertEqual(
            prompt("c1", {"name": "x"})["value"],
            [{"text": "about x"}, {"attachment": {"name": "a.pdf", "path": "a.pdf"}}, {"text": "(no input)"}],
        )
        self.assertEqual(prompt("c1", {})["error"]["kind"], "arguments")
        self.assertIn("returned a int", prompt("c2", {})["error"]["message"])

    def test_an_input_class_that_makes_no_prompt_is_a_problem(self):
        host = self.host()
        self.file("tools.py", "from llm_do.runtime import AgentArgs\nclass Plain:\n    a: str\nclass Mute(AgentArgs):\n    a: str\n")
        classes = [{"file": "tools.py", "name": name, "use": "input"} for name in ("Plain", "Mute")]
        problems = host.load(["tools.py"], classes=classes)["problems"]
        self.assertEqual([problem["line"] for problem in problems], [2, 4])
        self.assertIn("no AgentArgs", problems[0]["message"])
        self.assertIn("prompt_messages()", problems[1]["message"])


def can_import_openai_models():
    """Says whether pydantic_ai's models of OpenAI can be imported: the real ones need a client."""
    return not search_paths.installed("pydantic_ai") or search_paths.installed("openai")


class Models(HostCase):
    @unittest.skipUnless(can_import_openai_models(), "pydantic_ai is installed without openai")
    def test_a_model_factory_is_asked(self):
        host, answer = self.loaded(
            """
            from pydantic_ai.models.openai import OpenAIChatModel
            from llm_do import register_model_factory
            from llm_do.providers import OpenAICompatibleProvider
            class Local(OpenAICompatibleProvider):
                def __init__(self):
                    super().__init__(base_url="http://127.0.0.1:11434/v1", name="local")
            register_model_factory("local", lambda name: OpenAIChatModel(name, provider=Local()))
            class Own:
                base_url, api_key, model_name = "http://x/v1", "k", "big"
            register_model_factory("own", lambda name: Own())
            register_model_factory("odd", lambda name: 5)
            """
        )
        self.assertEqual(answer["providers"], ["local", "odd", "own"])
        model = lambda name: host.done(host.begin("model", name=name))  # noqa: E731
        expected = {"api": "openai-chat", "base_url": "http://127.0.0.1:11434/v1", "api_key": "unused", "headers": {}, "model": "small"}
        self.assertEqual(model("local:small")["value"], expected)
        self.assertEqual(model("own:x")["value"]["model"], "big")
        self.assertIn("understood are", model("odd:x")["error"]["message"])
        self.assertIn("no model factory", model("none:x")["error"]["message"])


class StartTime(HostCase):
    def test_nothing_heavy_is_imported_before_the_project_is_loaded(self):
        self.file("tools.py", "import sys\ndef f(x: int): pass\nTOOLS = [f]\nprint(sorted(set(sys.modules) & HEAVY))\n".replace(
            "HEAVY", "{'asyncio', 'inspect', 'dataclasses', 'pydantic', 'logging', 'ctypes', 'socket', 'ast'}"))
        host = self.host()
        host.load(["tools.py"])
        self.assertEqual(host.lines(None), ["[]"])

    def test_the_host_may_be_imported_by_child_processes(self):
        subprocess.run([sys.executable, "-c", f"import runpy; runpy.run_path({START!r}, run_name='__mp_main__')"], check=True)
