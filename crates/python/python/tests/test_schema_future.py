"""Hints that are all written out, because the module says so."""

from __future__ import annotations

import typing
import unittest
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Optional, TypedDict

import search_paths  # noqa: F401
from pydantic import BaseModel, Field
from pydantic_ai import RunContext
from llm_do.runtime.args import AgentArgs
from llm_do_host import coerce, schema

if TYPE_CHECKING:
    from llm_do.runtime import CallContext


@dataclass
class Leaf:
    size: int
    next: Optional[Leaf] = None


class Row(NamedTuple):
    key: str
    value: Optional[int] = None


class Settings(TypedDict, total=False):
    mode: Literal["fast", "slow"]


class Topic(AgentArgs):
    subject: str
    parts: list[Leaf] = []
    limit: Annotated[int, Field(ge=1)] = 3

    def prompt_messages(self):
        return [self.subject]


class WrittenOut(unittest.TestCase):
    def test_functions(self):
        def tool(
            ctx: RunContext[int],
            leaf: Leaf,
            row: Row,
            mode: Literal["a", "b"] = "a",
            count: int | None = None,
        ) -> str:
            """Does it."""

        found = schema.signature(tool)
        self.assertEqual(found.context, "ctx")
        self.assertEqual(found.schema["required"], ["leaf", "row"])
        values = found.bind({"leaf": {"size": 1, "next": {"size": 2}}, "row": ["a"]}, None)[1]
        self.assertEqual((values["leaf"], values["row"]), (Leaf(1, Leaf(2)), Row("a")))

    def test_a_context_for_type_checkers_only(self):
        def entry(args: Topic, ctx: CallContext):
            pass

        self.assertEqual(schema.signature(entry).context, "ctx")

    def test_typed_dicts(self):
        def tool(settings: Settings):
            pass

        self.assertEqual(
            schema.signature(tool).bind({"settings": {"mode": "fast"}}, None)[1],
            {"settings": {"mode": "fast"}},
        )
        with self.assertRaises(coerce.ArgumentProblem):
            schema.signature(tool).bind({"settings": {"mode": "slower"}}, None)

    @unittest.skipUnless(hasattr(typing, "NotRequired"), "Python has no NotRequired")
    def test_marks_of_required_keys_count_although_python_cannot_see_them(self):
        namespace = {}
        source = (
            "from __future__ import annotations\nfrom typing import NotRequired, TypedDict\n"
            "class Film(TypedDict):\n    title: str\n    year: NotRequired[int]\n"
        )
        import sys
        import types

        module = types.ModuleType("film_module")
        sys.modules["film_module"] = module
        self.addCleanup(sys.modules.pop, "film_module")
        exec(source, vars(module), namespace)
        vars(module).update(namespace)
        from llm_do_host import hints, shapes

        book = shapes.Book()
        written = book.bound(hints.Builder(hints.Scope()).shape(namespace["Film"]).schema(book))
        self.assertEqual(written["required"], ["title"])

    def test_typed_inputs(self):
        made = coerce.make(Topic, {"subject": "x", "parts": [{"size": 1}], "limit": 1})
        self.assertEqual(made.parts, [Leaf(1)])
        with self.assertRaises(coerce.ArgumentProblem):
            coerce.make(Topic, {"subject": "x", "limit": 0})

    def test_local_models_in_local_functions(self):
        class Inner(BaseModel):
            a: int

        class Outer(BaseModel):
            inner: Inner

        def tool(outer: Outer, many: list[Inner] = []):
            pass

        values = schema.signature(tool).bind({"outer": {"inner": {"a": 1}}, "many": [{"a": 2}]}, None)[1]
        self.assertEqual((values["outer"], values["many"]), (Outer(inner=Inner(a=1)), [Inner(a=2)]))


if __name__ == "__main__":
    unittest.main()
