"""Output schemas: what return annotations say about results."""

import search_paths  # noqa: F401  (sets the path)

import collections
import dataclasses
import datetime
import enum
import functools
import pathlib
import typing
import unittest

from support import HostCase

from llm_do_host.output_schema import output_schema


class Color(enum.Enum):
    RED = "red"
    BLUE = 2


class Odd(enum.Enum):
    PAIR = (1, 2)


class Key(typing.TypedDict, total=False):
    name: typing.Required[str] if hasattr(typing, "Required") else str
    size: int


@dataclasses.dataclass
class Node:
    name: str
    children: "list[Node]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class BinaryContent:
    data: bytes
    media_type: str


class ToolResult:
    pass


@dataclasses.dataclass
class WithFile:
    file: BinaryContent


Pair = collections.namedtuple("Pair", "a b")


def schema_of(hint):
    """Returns the schema of a function with this return annotation."""

    def function():
        pass

    function.__annotations__["return"] = hint
    return output_schema(function)


class Annotations(unittest.TestCase):
    maxDiff = None

    def test_plain_types(self):
        text, whole = {"type": "string"}, {"type": "integer"}
        for hint, schema in [
            (int, whole),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            ("str", text),
            (pathlib.Path, text),
            (datetime.datetime, text),
            (list, {"type": "array"}),
            (dict, {"type": "object"}),
            (list[int], {"type": "array", "items": whole}),
            (set[str], {"type": "array", "items": text}),
            (list[typing.Any], {"type": "array"}),
            (dict[str, int], {"type": "object", "additionalProperties": whole}),
            (tuple[int, str], {"type": "array", "prefixItems": [whole, text], "minItems": 2, "maxItems": 2}),
            (tuple[int, ...], {"type": "array", "items": whole}),
            (typing.Optional[int], {"anyOf": [whole, {"type": "null"}]}),
            (int | str, {"anyOf": [whole, text]}),
            (typing.Literal["a", 1], {"enum": ["a", 1]}),
            (typing.Annotated[int, "how many"], whole),
            (Color, {"enum": ["red", 2]}),
            (Pair, {"type": "array"}),
        ]:
            with self.subTest(hint=hint):
                self.assertEqual(schema_of(hint), schema)

    def test_classes_with_fields(self):
        point = dataclasses.make_dataclass("Point", [("x", int), ("y", int, 0)])
        self.assertEqual(
            schema_of(point),
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                "required": ["x"],
            },
        )
        key = schema_of(Key)
        self.assertEqual(key["properties"], {"name": {"type": "string"}, "size": {"type": "integer"}})
        node = schema_of(Node)
        self.assertEqual(node["properties"]["children"]["items"]["properties"]["name"], {"type": "string"})

    def test_what_has_no_schema(self):
        for hint in [
            None,
            typing.Any,
            object,
            "Unknown",
            ToolResult,
            BinaryContent,
            list[BinaryContent],
            str | BinaryContent,
            typing.Optional[ToolResult],
            WithFile,
            typing.Awaitable[int],
            typing.Iterator[int],
            typing.Callable[[], int],
            typing.Union[int, typing.Any],
            Odd,
            bytes,
            datetime.timedelta,
        ]:
            with self.subTest(hint=hint):
                self.assertIsNone(schema_of(hint))
        self.assertIsNone(output_schema(len))

        def silent():
            pass

        self.assertIsNone(output_schema(silent))

    def test_wrappers_of_a_project_have_no_schema(self):
        def count() -> int:
            return 1

        @functools.wraps(count)
        def shouting():
            return "ONE"

        self.assertIsNone(output_schema(shouting))
        self.assertEqual(output_schema(functools.lru_cache(count)), {"type": "integer"})
        self.assertEqual(output_schema(functools.partial(count)), {"type": "integer"})


MODELS = """
    import dataclasses, decimal, enum, pathlib, typing, uuid, datetime
    from pydantic import BaseModel, Field, field_serializer
    class Inner(BaseModel):
        size: int = 1
        path: pathlib.Path = pathlib.Path("a")
    class Outer(BaseModel):
        name: str = Field(alias="fullName")
        inner: Inner = Inner()
        secret: str = Field(default="x", exclude=True)
        price: decimal.Decimal = decimal.Decimal("1.5")
        many: "list[Inner]" = []
    class Written(BaseModel):
        when: int
        @field_serializer("when")
        def write(self, value):
            return str(value)
    @dataclasses.dataclass
    class Point:
        x: int
        y: float = 0
        total: int = dataclasses.field(init=False, default=0)
    async def model() -> Outer:
        return Outer(fullName="n")
    def as_dict() -> Outer:
        return {"fullName": "n"}
    def written() -> Written:
        return Written(when=1)
    def point() -> Point:
        return Point(1, 2)
    def truth() -> int:
        return True
    def whole() -> float:
        return 3
    def text() -> str:
        return pathlib.Path("a/b")
    def pairs() -> "list[tuple[str, int]]":
        return {("a", 1)}
    def identity() -> uuid.UUID:
        return uuid.UUID(int=1)
    def nothing() -> None:
        return 5
    def many() -> "dict[str, Inner]":
        return {"a": Inner()}
    TOOLS = [model, as_dict, written, point, truth, whole, text, pairs, identity, nothing, many]
    """


class Results(HostCase):
    """Results of many kinds are the JSON that their schema describes."""

    def test_results_fit_the_schema_of_their_annotation(self):
        host, answer = self.loaded(MODELS)
        for tool in answer["tools"]:
            with self.subTest(tool["name"]):
                value = host.call(tool["id"])["value"]
                self.assertEqual(mismatches(value, tool["output"]), [])
        outputs = {tool["name"]: tool["output"] for tool in answer["tools"]}
        self.assertIsNone(outputs["nothing"])
        self.assertIsNone(outputs["written"])
        self.assertNotIn("secret", outputs["model"]["properties"])
        self.assertEqual(outputs["truth"], {"type": "integer"})

    def test_a_number_beyond_64_bits_needs_an_annotation_that_allows_text(self):
        host, tools = self.tools(
            """
            def whole() -> int:
                return 10**30
            def text() -> "int | str":
                return 10**30
            TOOLS = [whole, text]
            """
        )
        self.assertIn("`int | str`", host.call(tools["whole"])["error"]["message"])
        self.assertEqual(host.call(tools["text"])["value"], str(10**30))

    def test_functions_of_toolsets_have_output_schemas(self):
        _, answer = self.loaded(
            """
            from pydantic_ai.toolsets import FunctionToolset
            kit = FunctionToolset()
            @kit.tool_plain
            def count() -> list[int]:
                return [1]
            @kit.tool_plain
            def silent():
                return 1
            """
        )
        tools = {tool["name"]: tool["output"] for tool in answer["toolsets"][0]["tools"]}
        self.assertEqual(tools, {"count": {"type": "array", "items": {"type": "integer"}}, "silent": None})


KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def mismatches(value, schema, place="result"):
    """Returns where a value does not fit a schema of the few keywords that output schemas use."""
    if not schema:
        return []
    if "anyOf" in schema:
        fits = any(not mismatches(value, option) for option in schema["anyOf"])
        return [] if fits else [f"{place}: {value!r} fits none of {schema}"]
    kind = KINDS.get(schema.get("type"))
    if kind and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        return [f"{place}: {value!r} is not {schema['type']}"]
    found = [f"{place}: {key} is missing" for key in schema.get("required", ()) if key not in value]
    for key, inner in schema.get("properties", {}).items():
        found += mismatches(value[key], inner, f"{place}.{key}") if key in value else []
    for item in value if "items" in schema else ():
        found += mismatches(item, schema["items"], f"{place}[]")
    return found


if __name__ == "__main__":
    unittest.main()
