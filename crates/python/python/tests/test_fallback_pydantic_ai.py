"""Tools and toolsets: the same assertions hold for the real pydantic_ai and for the one that stands in."""

import asyncio
import dataclasses
import subprocess
import sys
import unittest
from typing import Any, List

import search_paths
from pydantic import BaseModel
from pydantic_ai import (
    BinaryContent,
    ModelRetry,
    RunContext,
    Tool,
    ToolReturn,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.exceptions import ModelRetry as SameModelRetry
from pydantic_ai.messages import BinaryContent as SameBinaryContent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.tools import RunContext as SameRunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FilteredToolset,
    FunctionToolset,
    PrefixedToolset,
    RenamedToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_ai.toolsets.abstract import AbstractToolset as SameAbstractToolset
from pydantic_ai.toolsets.function import FunctionToolset as SameFunctionToolset
from llm_do_host import coerce

REAL = search_paths.installed("pydantic_ai")


class Order(BaseModel):
    """What to buy."""

    item: str
    count: int = 1


def context(deps=None):
    """Returns the context of a run, as far as the tools here need it."""
    if not REAL:
        return RunContext(deps=deps)
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.usage import RunUsage

    return RunContext(deps=deps, model=TestModel(), usage=RunUsage())


def run(waiting):
    """Runs one coroutine to its end."""
    return asyncio.run(waiting)


def tools_of(toolset, deps=None):
    """Returns the tools of a toolset."""
    return run(toolset.get_tools(context(deps)))


def call(toolset, name, args, deps=None):
    """Calls a tool as the host does: get it, validate its arguments, call it."""

    async def calling():
        ctx = context(deps)
        tool = (await toolset.get_tools(ctx))[name]
        validated = tool.args_validator.validate_python(args)
        return await toolset.call_tool(name, validated, ctx, tool)

    return run(calling())


def shop():
    """Returns a toolset with three tools."""
    toolset = FunctionToolset(id="shop", max_retries=2)

    @toolset.tool
    def price(ctx: RunContext[float], item: str, count: int = 1) -> float:
        """Says what something costs.

        Args:
            item: What to buy.
            count: How many of it.
        """
        return ctx.deps * count

    @toolset.tool(name="buy", retries=5)
    async def buy_order(ctx: RunContext[float], order: Order) -> str:
        """Buys."""
        return "%d %s" % (order.count, order.item)

    def stock(items: List[str]) -> int:
        """Counts."""
        return len(items)

    toolset.add_function(stock)
    return toolset


class Names(unittest.TestCase):
    def test_every_module_has_the_same_classes(self):
        self.assertIs(SameModelRetry, ModelRetry)
        self.assertIs(SameBinaryContent, BinaryContent)
        self.assertIs(SameRunContext, RunContext)
        self.assertIs(SameAbstractToolset, AbstractToolset)
        self.assertIs(SameFunctionToolset, FunctionToolset)
        self.assertTrue(issubclass(UnexpectedModelBehavior, RuntimeError))
        self.assertIsNotNone(ModelMessage)
        self.assertTrue(ToolsetTool)

    def test_contents_and_results_hold_what_they_are_given(self):
        content = BinaryContent(data=b"abc", media_type="image/png")
        self.assertEqual((content.data, content.media_type, content.is_image), (b"abc", "image/png", True))
        self.assertEqual(content, BinaryContent(data=b"abc", media_type="image/png"))
        result = ToolReturn(return_value=1, content=["see", content])
        self.assertEqual((result.return_value, result.metadata), (1, None))

    def test_models_and_providers_hold_what_they_are_given(self):
        try:
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider
        except ImportError as problem:
            self.skipTest(str(problem))
        provider = OpenAIProvider(base_url="http://localhost:1/v1", api_key="k")
        model = OpenAIChatModel("small", provider=provider)
        self.assertEqual(model.model_name, "small")
        self.assertEqual(str(model.base_url).rstrip("/"), "http://localhost:1/v1")

    @unittest.skipIf(REAL, "the real package has agents")
    def test_an_agent_is_refused_in_words(self):
        from pydantic_ai import Agent

        with self.assertRaises(UserError) as caught:
            Agent("openai:gpt", system_prompt="x")
        self.assertIn("needs the real pydantic_ai", str(caught.exception))

    @unittest.skipIf(REAL, "the real package has all names")
    def test_a_name_that_is_missing_says_why(self):
        import pydantic_ai

        with self.assertRaises(AttributeError) as caught:
            pydantic_ai.Embedder
        self.assertIn("the real pydantic_ai is not installed", str(caught.exception))


class Contexts(unittest.TestCase):
    def test_a_context_can_be_replaced_as_a_dataclass(self):
        ctx = dataclasses.replace(context(1), deps=2, tool_name="x")
        self.assertEqual((ctx.deps, ctx.tool_name, ctx.retry), (2, "x", 0))
        self.assertTrue(dataclasses.is_dataclass(ctx))
        self.assertIn("deps", [field.name for field in dataclasses.fields(RunContext)])

    @unittest.skipIf(REAL, "the real package imports dataclasses")
    def test_importing_and_using_tools_imports_nothing_heavy(self):
        program = (
            "import sys; sys.path[:0] = %r; sys.path.append(%r)\n"
            "from pydantic_ai import RunContext, Tool\nfrom pydantic_ai.toolsets import FunctionToolset\n"
            "import llm_do.runtime.args\n"
            "def add(ctx: RunContext[int], a: int, b: 'list[str]' = []): pass\n"
            "FunctionToolset([add]); RunContext(deps=1); 'deps' in RunContext.__dataclass_fields__\n"
            "print([name for name in ('asyncio', 'dataclasses', 'inspect', 'pydantic') if name in sys.modules])"
        )
        front = [search_paths.PYTHON + "/names", search_paths.PYTHON + "/host"]
        program %= (front, search_paths.PYTHON + "/fallback")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.stdout.strip(), done.stderr), ("[]", ""))

    def test_a_definition_can_be_replaced_as_a_dataclass(self):
        definition = ToolDefinition(name="a", description="b", parameters_json_schema={"type": "object"})
        self.assertEqual(dataclasses.replace(definition, name="c").name, "c")


class Toolsets(unittest.TestCase):
    def test_tools_have_names_descriptions_and_schemas(self):
        tools = tools_of(shop())
        self.assertEqual(list(tools), ["price", "buy", "stock"])
        definition = tools["price"].tool_def
        self.assertEqual((definition.name, definition.description), ("price", "Says what something costs."))
        properties = definition.parameters_json_schema["properties"]
        self.assertEqual(properties["item"], {"type": "string", "description": "What to buy."})
        self.assertEqual(
            properties["count"], {"type": "integer", "description": "How many of it.", "default": 1}
        )
        self.assertEqual(definition.parameters_json_schema["required"], ["item"])
        self.assertIs(definition.parameters_json_schema["additionalProperties"], False)
        self.assertEqual((tools["price"].max_retries, tools["buy"].max_retries), (2, 5))

    def test_a_single_model_is_the_schema_of_its_tool(self):
        written = tools_of(shop())["buy"].tool_def.parameters_json_schema
        self.assertEqual(list(written["properties"]), ["item", "count"])
        self.assertEqual(call(shop(), "buy", {"item": "tea"}), "1 tea")

    def test_tools_are_called_with_typed_arguments_and_the_context(self):
        self.assertEqual(call(shop(), "price", {"item": "tea", "count": 3}, deps=2.5), 7.5)
        self.assertEqual(call(shop(), "stock", {"items": ["a", "b"]}), 2)

    def test_wrong_arguments_are_refused_by_the_validator(self):
        for args in [{}, {"item": 5}, {"item": "tea", "count": "many"}, {"item": "tea", "other": 1}]:
            with self.subTest(args=args):
                with self.assertRaises(ValueError) as caught:
                    call(shop(), "price", args)
                self.assertIn("parameter '", coerce.describe(caught.exception))

    def test_arguments_may_be_json_text(self):
        tool = tools_of(shop())["price"]
        self.assertEqual(tool.args_validator.validate_json('{"item": "tea"}')["item"], "tea")

    def test_tools_given_at_once_or_added_later(self):
        def double(number: int) -> int:
            return number * 2

        def half(ctx: RunContext[Any], number: int) -> float:
            return number / 2

        toolset = FunctionToolset(tools=[double, Tool(half, name="halve", description="Halves.")])
        toolset.add_function(double, name="twice")
        toolset.add_tool(Tool(double, name="again"))
        self.assertEqual(list(tools_of(toolset)), ["double", "halve", "twice", "again"])
        self.assertEqual(call(toolset, "halve", {"number": 3}), 1.5)
        with self.assertRaises(UserError):
            toolset.add_function(double)

    @unittest.skipUnless(hasattr(FunctionToolset, "tool_plain"), "this pydantic_ai has no tool_plain")
    def test_a_plain_tool_takes_no_context(self):
        toolset = FunctionToolset()

        @toolset.tool_plain
        def half(number: int) -> float:
            return number / 2

        self.assertEqual(call(toolset, "half", {"number": 3}), 1.5)

    @unittest.skipIf(REAL, "newer versions of the real package insist on a context")
    def test_a_tool_may_take_no_context(self):
        toolset = FunctionToolset()

        @toolset.tool
        def half(number: int) -> float:
            return number / 2

        self.assertEqual(call(toolset, "half", {"number": 3}), 1.5)

    def test_tool_as_a_plain_call_returns_the_function(self):
        toolset = FunctionToolset()

        def double(ctx: RunContext[Any], number: int) -> int:
            return number * 2

        self.assertIs(toolset.tool(double), double)
        self.assertEqual(call(toolset, "double", {"number": 2}), 4)

    def test_prepare_may_change_or_drop_a_tool(self):
        async def only_rich(ctx, definition):
            return dataclasses.replace(definition, description="For you.") if ctx.deps > 10 else None

        toolset = FunctionToolset()

        @toolset.tool(prepare=only_rich)
        def yacht(ctx: RunContext[int]) -> str:
            return "sold"

        self.assertEqual(list(tools_of(toolset, 1)), [])
        self.assertEqual(tools_of(toolset, 11)["yacht"].tool_def.description, "For you.")

    def test_wrappers_rename_and_filter(self):
        self.assertEqual(list(tools_of(PrefixedToolset(shop(), "my"))), ["my_price", "my_buy", "my_stock"])
        self.assertEqual(list(tools_of(RenamedToolset(shop(), {"cost": "price"}))), ["cost", "buy", "stock"])
        self.assertEqual(
            list(tools_of(FilteredToolset(shop(), lambda ctx, tool: tool.name != "buy"))), ["price", "stock"]
        )
        self.assertEqual(call(shop().prefixed("my").renamed({"n": "my_stock"}), "n", {"items": []}), 0)

    def test_a_dataclass_may_extend_a_wrapper(self):
        @dataclasses.dataclass
        class Logged(WrapperToolset):
            log: list = dataclasses.field(default_factory=list)

            async def call_tool(self, name, tool_args, ctx, tool):
                self.log.append(name)
                return await super().call_tool(name, tool_args, ctx, tool)

        toolset = Logged(shop())
        self.assertEqual(call(toolset, "stock", {"items": ["a"]}), 1)
        self.assertEqual(toolset.log, ["stock"])

    def test_combined_toolsets_must_not_share_names(self):
        combined = CombinedToolset([shop(), shop().prefixed("other")])
        self.assertEqual(len(tools_of(combined)), 6)
        self.assertEqual(call(combined, "other_stock", {"items": ["a"]}), 1)
        with self.assertRaises(UserError) as caught:
            tools_of(CombinedToolset([shop(), shop()]))
        self.assertIn("conflicts with existing tool", str(caught.exception))

    def test_a_toolset_of_its_own(self):
        class Echo(AbstractToolset):
            @property
            def id(self):
                return "echo"

            async def get_tools(self, ctx):
                from pydantic import TypeAdapter

                validator = TypeAdapter(dict) if not REAL else TypeAdapter(dict).validator
                definition = ToolDefinition(name="echo", parameters_json_schema={"type": "object"})
                return {
                    "echo": ToolsetTool(
                        toolset=self, tool_def=definition, max_retries=0, args_validator=validator
                    )
                }

            async def call_tool(self, name, tool_args, ctx, tool):
                return tool_args

        self.assertEqual(call(Echo(), "echo", {"a": 1}), {"a": 1})
        with self.assertRaises(TypeError):
            AbstractToolset()

    def test_a_tool_that_takes_too_long_is_given_back_to_the_model(self):
        try:
            toolset = FunctionToolset(timeout=0.01)
        except TypeError:
            self.skipTest("this pydantic_ai has no time limits")

        async def sleep() -> None:
            await asyncio.Event().wait()

        toolset.add_function(sleep)
        with self.assertRaises(ModelRetry) as caught:
            call(toolset, "sleep", {})
        self.assertIn("Timed out", str(caught.exception))

    def test_a_function_that_cannot_be_offered_is_the_users_error(self):
        toolset = FunctionToolset()
        with self.assertRaisesRegex(Exception, "Engine"):
            toolset.add_function(print_engine)


class Engine:
    """A class without a JSON form."""


def print_engine(engine: Engine):
    """Takes something that no model can give."""


if __name__ == "__main__":
    unittest.main()
