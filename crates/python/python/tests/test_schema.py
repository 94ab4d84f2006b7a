"""Signatures: what a model sees of a function, and what the function is given."""

import collections
import datetime
import decimal
import enum
import functools
import json
import pathlib
import typing
import unittest
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, Optional, TypedDict, Union

import search_paths  # noqa: F401
from llm_do_host import coerce, hints, schema, shapes


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """A place."""

    x: int
    y: float = 0.5


@dataclass
class Node:
    name: str
    children: List["Node"] = field(default_factory=list)
    color: Color = Color.RED


@dataclass
class Circle:
    radius: float


class Movie(TypedDict, total=False):
    title: str
    year: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


UserName = typing.NewType("UserName", str)
Number = typing.TypeVar("Number", bound=int)
Json = Union[None, bool, float, str, List["Json"], Dict[str, "Json"]]


def of_hint(hint):
    """Returns the schema and the signature of a function with one parameter of this hint."""

    def function(value):
        return value

    function.__annotations__ = {"value": hint}
    return schema.signature(function)


def schema_of(hint):
    """Returns the schema of the parameter."""
    whole = of_hint(hint).schema
    part = whole["properties"]["value"]
    if "$defs" in whole:
        part = dict(part, **{"$defs": whole["$defs"]})
    return part


def given(hint, value):
    """Returns what a function with this hint gets for a JSON value."""
    return of_hint(hint).bind({"value": json.loads(json.dumps(value))}, None)[1]["value"]


class Hints(unittest.TestCase):
    def test_schemas_of_plain_hints(self):
        table = [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (Any, {}),
            (object, {}),
            (list, {"type": "array", "items": {}}),
            (List[int], {"type": "array", "items": {"type": "integer"}}),
            (typing.Sequence[str], {"type": "array", "items": {"type": "string"}}),
            (typing.Iterable[str], {"type": "array", "items": {"type": "string"}}),
            (typing.Set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
            (typing.Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (dict, {"type": "object", "additionalProperties": True}),
            (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (typing.Mapping[str, Any], {"type": "object", "additionalProperties": True}),
            (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            (Literal["a"], {"const": "a", "type": "string"}),
            (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
            (Literal["a", 1, None], {"enum": ["a", 1, None]}),
            (Color, {"enum": ["red", "blue"], "type": "string"}),
            (Level, {"enum": [1, 2], "type": "integer"}),
            (datetime.datetime, {"type": "string", "format": "date-time"}),
            (datetime.date, {"type": "string", "format": "date"}),
            (datetime.time, {"type": "string", "format": "time"}),
            (datetime.timedelta, {"type": "string", "format": "duration"}),
            (uuid.UUID, {"type": "string", "format": "uuid"}),
            (pathlib.Path, {"type": "string", "format": "path"}),
            (UserName, {"type": "string"}),
            (Number, {"type": "integer"}),
            ("List[int]", {"type": "array", "items": {"type": "integer"}}),
            (List["int"], {"type": "array", "items": {"type": "integer"}}),
        ]
        for hint, expected in table:
            with self.subTest(hint=hint):
                book = shapes.Book()
                built = hints.Builder(hints.Scope(globals())).shape(hints.Scope(globals()).resolve(hint))
                self.assertEqual(book.bound(built.schema(book)), expected)

    def test_a_tuple_of_fixed_length_has_its_items_in_order(self):
        book = shapes.Book()
        row = hints.Builder(hints.Scope()).shape(typing.Tuple[int, str])
        self.assertEqual(
            row.schema(book),
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        )

    def test_values_become_what_the_hint_says(self):
        table = [
            (float, 3, 3.0),
            (Optional[int], None, None),
            (Color, "blue", Color.BLUE),
            (Level, 2, Level.HIGH),
            (List[Color], ["red"], [Color.RED]),
            (typing.Set[int], [1, 1, 2], {1, 2}),
            (typing.FrozenSet[int], [1], frozenset([1])),
            (typing.Tuple[int, ...], [1, 2], (1, 2)),
            (typing.Tuple[int, str], [1, "a"], (1, "a")),
            (Dict[int, str], {"1": "a"}, {1: "a"}),
            (Dict[Color, int], {"red": 1}, {Color.RED: 1}),
            (
                datetime.datetime,
                "2024-05-06T07:08:09Z",
                datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc),
            ),
            (datetime.date, "2024-05-06", datetime.date(2024, 5, 6)),
            (datetime.time, "07:08:09", datetime.time(7, 8, 9)),
            (datetime.timedelta, "PT90S", datetime.timedelta(seconds=90)),
            (uuid.UUID, "12345678123456781234567812345678", uuid.UUID("12345678123456781234567812345678")),
            (pathlib.Path, "a/b", pathlib.Path("a/b")),
            (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
            (Point, {"x": 1}, Point(1, 0.5)),
            (List[Point], [{"x": 1, "y": 2}], [Point(1, 2.0)]),
            (Pair, [1], Pair(1)),
            (Pair, {"left": 1, "right": "x"}, Pair(1, "x")),
            (Union[Circle, Point], {"x": 1}, Point(1)),
            (Union[int, str], "5", "5"),
            (Union[float, int], 5, 5),
            (collections.deque, [1], collections.deque([1])),
            (Movie, {"title": "M"}, {"title": "M"}),
            (UserName, "ann", "ann"),
        ]
        for hint, value, expected in table:
            with self.subTest(hint=hint):
                made = given(hint, value)
                self.assertEqual(made, expected)
                self.assertIs(type(made), type(expected))

    def test_values_of_the_wrong_kind_are_refused(self):
        table = [
            (str, 5),
            (int, "x"),
            (int, 1.5),
            (int, None),
            (float, "x"),
            (List[int], {"a": 1}),
            (List[int], ["x"]),
            (Dict[str, int], [1]),
            (Literal["a", "b"], "c"),
            (Color, "green"),
            (datetime.date, "yesterday"),
            (uuid.UUID, "no"),
            (typing.Tuple[int, str], [1]),
            (Point, {}),
            (Point, 5),
            (Pair, []),
            (Optional[int], "x"),
        ]
        for hint, value in table:
            with self.subTest(hint=hint, value=value):
                with self.assertRaises(coerce.ArgumentProblem) as caught:
                    given(hint, value)
                self.assertIn("'value", str(caught.exception))

    def test_a_recursive_class_refers_to_itself(self):
        whole = of_hint(Node).schema
        self.assertEqual(whole["properties"]["value"]["$ref"], "#/$defs/Node")
        self.assertEqual(whole["$defs"]["Node"]["properties"]["children"]["items"], {"$ref": "#/$defs/Node"})
        made = given(Node, {"name": "a", "children": [{"name": "b", "color": "blue"}]})
        self.assertEqual(made, Node("a", [Node("b", [], Color.BLUE)]))

    def test_a_recursive_alias_refers_to_itself(self):
        scope = hints.Scope(globals())
        built = hints.Builder(scope).shape(scope.resolve(Json))
        book = shapes.Book()
        written = book.bound(built.schema(book))
        self.assertEqual(list(written["$defs"]), ["Json"])
        self.assertEqual(built.make({"a": [1.5, {"b": None}]}), {"a": [1.5, {"b": None}]})
        with self.assertRaises(coerce.Mismatch):
            built.make({"a": [object()]})

    def test_two_classes_of_one_name_have_two_definitions(self):
        first, second = Point, dataclass(
            type("Point", (), {"__annotations__": {"z": int}, "__module__": __name__})
        )
        Both = TypedDict("Both", {"first": first, "second": second})
        written = schema.class_schema(Both)
        self.assertEqual(len(written["$defs"]), 2)

    def test_bool_is_no_integer_and_a_text_is_no_number(self):
        strict = hints.Builder(hints.Scope())
        for hint, value in [
            (int, True),
            (float, False),
            (int, "5"),
            (float, "5"),
            (bool, 1),
            (bool, "true"),
            (str, 5),
        ]:
            with self.subTest(hint=hint, value=value):
                with self.assertRaises(coerce.Mismatch):
                    strict.shape(hint).make(value)

    def test_a_class_without_a_json_form_is_refused_by_name(self):
        class Engine:
            pass

        def drive(engine: Engine):
            pass

        with self.assertRaises(schema.SignatureProblem) as caught:
            schema.signature(drive)
        self.assertIn(
            "parameter 'engine' of drive(): the type Engine has no JSON form", str(caught.exception)
        )

    def test_a_function_as_a_parameter_is_refused_by_name(self):
        def run(callback: typing.Callable[[int], int]):
            pass

        with self.assertRaisesRegex(schema.SignatureProblem, "the type Callable has no JSON form"):
            schema.signature(run)

    def test_an_unknown_name_is_refused_by_name(self):
        def drive(engine: "Motor"):  # noqa: F821
            pass

        with self.assertRaises(schema.SignatureProblem) as caught:
            schema.signature(drive)
        self.assertIn("names 'Motor', which is not known", str(caught.exception))


class Limits(unittest.TestCase):
    def test_limits_of_any_note_are_written_and_checked(self):
        class AtLeast:
            ge = 1
            description = "How many."

        shape = hints.Builder(hints.Scope()).shape(Annotated[Optional[int], AtLeast()])
        self.assertEqual(
            shape.schema(shapes.Book()),
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "description": "How many."},
        )
        self.assertEqual(shape.make(1), 1)
        self.assertIsNone(shape.make(None))
        with self.assertRaises(coerce.Mismatch) as caught:
            shape.make(0)
        self.assertIn("greater than or equal to 1", str(caught.exception))

    def test_lengths_and_patterns_follow_the_kind_of_value(self):
        from llm_do_host import limits

        builder = hints.Builder(hints.Scope())
        table = [
            (str, {"min_length": 2}, {"minLength": 2}, "ab", "a"),
            (List[int], {"max_length": 1}, {"maxItems": 1}, [1], [1, 2]),
            (Dict[str, int], {"min_length": 1}, {"minProperties": 1}, {"a": 1}, {}),
            (str, {"pattern": "^a+$"}, {"pattern": "^a+$"}, "aa", "ab"),
            (int, {"multiple_of": 5}, {"multipleOf": 5}, 10, 11),
            (float, {"lt": 1}, {"exclusiveMaximum": 1}, 0.5, 1.0),
        ]
        for hint, given_limits, keys, good, bad in table:
            with self.subTest(hint=hint, limits=given_limits):
                shape = limits.limited(builder.shape(hint), given_limits)
                written = shape.schema(shapes.Book())
                self.assertEqual({key: written[key] for key in keys}, keys)
                self.assertEqual(shape.make(good), good)
                with self.assertRaises(coerce.Mismatch):
                    shape.make(bad)


class Functions(unittest.TestCase):
    def test_a_function_gives_name_description_schema_and_defaults(self):
        def search(
            query: str, limit: int = 10, *, color: Color = Color.RED, where: Optional[pathlib.Path] = None
        ) -> str:
            """Searches.

            Args:
                query: What to look for.
            """

        found = schema.signature(search)
        self.assertEqual(
            (found.name, found.description, found.context, found.is_async),
            ("search", "Searches.", None, False),
        )
        self.assertEqual(found.schema["required"], ["query"])
        self.assertIs(found.schema["additionalProperties"], False)
        self.assertEqual(
            found.schema["properties"]["query"], {"type": "string", "description": "What to look for."}
        )
        self.assertEqual(found.schema["properties"]["limit"], {"type": "integer", "default": 10})
        self.assertEqual(found.schema["properties"]["color"]["default"], "red")
        self.assertEqual(found.bind({"query": "x"}, None), ([], {"query": "x"}))

    def test_explicit_descriptions_win(self):
        def search(query: Annotated[str, "noted"], limit: Annotated[int, "kept"] = 1):
            """Searches.

            :param query: documented
            :param limit: documented
            """

        found = schema.signature(
            search, name="find", description="Finds.", parameter_descriptions={"query": "explicit"}
        )
        self.assertEqual((found.name, found.description), ("find", "Finds."))
        self.assertEqual(found.schema["properties"]["query"]["description"], "explicit")
        self.assertEqual(found.schema["properties"]["limit"]["description"], "kept")

    def test_a_default_of_none_lets_none_through(self):
        def search(limit: int = None):
            pass

        found = schema.signature(search)
        self.assertEqual(found.bind({"limit": None}, None)[1], {"limit": None})
        self.assertEqual(found.bind({"limit": 3}, None)[1], {"limit": 3})

    def test_a_hint_that_lets_none_through_stays_as_it_is(self):
        def search(limit: Annotated[Optional[int], "How many."] = None, more: Any = None):
            pass

        number = {
            "anyOf": [{"type": "integer"}, {"type": "null"}],
            "description": "How many.",
            "default": None,
        }
        self.assertEqual(
            schema.signature(search).schema["properties"], {"limit": number, "more": {"default": None}}
        )

    def test_arguments_that_are_no_object_are_refused(self):
        for args in [[], "x", None, 5]:
            with self.subTest(args=args):
                with self.assertRaises(coerce.ArgumentProblem):
                    schema.signature(lambda a=1: None).bind(args, None)

    def test_parameters_without_hints_take_anything(self):
        found = schema.signature(lambda first, second=2: None)
        self.assertEqual(found.schema["properties"], {"first": {}, "second": {"default": 2}})

    def test_positional_only_parameters_are_passed_by_position(self):
        def divide(left: float, right: float = 2, /, *, digits: int = 3):
            pass

        found = schema.signature(divide)
        self.assertEqual(found.bind({"left": 1}, None), ([1.0, 2], {}))
        self.assertEqual(found.bind({"left": 1, "right": 4, "digits": 1}, None), ([1.0, 4.0], {"digits": 1}))

    def test_star_args_are_refused_in_words(self):
        def add(*numbers: int):
            pass

        with self.assertRaises(schema.SignatureProblem) as caught:
            schema.signature(add)
        self.assertEqual(
            str(caught.exception),
            "add() takes *numbers, but a model passes arguments by name: give it a list parameter instead",
        )

    def test_double_star_takes_everything_else(self):
        def note(title: str, **others):
            pass

        def count(**numbers: int):
            pass

        found = schema.signature(note)
        self.assertIs(found.schema["additionalProperties"], True)
        self.assertEqual(found.bind({"title": "a", "more": 1}, None)[1], {"title": "a", "more": 1})
        self.assertEqual(schema.signature(count).schema["additionalProperties"], {"type": "integer"})
        with self.assertRaises(coerce.ArgumentProblem):
            schema.signature(count).bind({"a": "x"}, None)

    def test_all_problems_of_a_call_are_told_at_once(self):
        def search(query: str, limit: int):
            pass

        with self.assertRaises(coerce.ArgumentProblem) as caught:
            schema.signature(search).bind({"limit": "many", "other": 1}, None)
        text = str(caught.exception)
        self.assertIn("parameter 'query' is missing", text)
        self.assertIn("parameter 'limit' should be a valid integer", text)
        self.assertIn('given the string "many"', text)
        self.assertIn("parameter 'other' is not known: the parameters are query, limit", text)

    def test_a_place_inside_an_argument_is_named(self):
        with self.assertRaises(coerce.ArgumentProblem) as caught:
            given(List[Point], [{"x": 1}, {"x": "no"}])
        self.assertIn("[1].x'", str(caught.exception))

    def test_methods_partials_wrappers_and_callable_objects_are_functions_too(self):
        class Counter:
            def add(self, amount: int = 1):
                """Adds."""

            async def __call__(self, amount: int):
                """Counts."""

        def logged(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)

            return wrapper

        @logged
        def read(path: pathlib.Path):
            """Reads."""

        def power(base: int, exponent: int):
            """Raises."""

        self.assertEqual(list(schema.signature(Counter().add).schema["properties"]), ["amount"])
        called = schema.signature(Counter(), name="count")
        self.assertEqual(
            (called.description, called.is_async, list(called.schema["properties"])),
            ("Counts.", True, ["amount"]),
        )
        self.assertEqual(schema.signature(read).bind({"path": "a"}, None)[1], {"path": pathlib.Path("a")})
        square = schema.signature(functools.partial(power, exponent=2))
        self.assertEqual((square.name, square.schema["required"]), ("power", ["base"]))

    def test_a_local_class_in_a_written_out_hint_is_found(self):
        @dataclass
        class Local:
            size: int

        def measure(thing: "Local", things: "List[Local]" = ()):
            return Local  # keeps the name in the closure

        def measure_unbound(thing: "Local"):
            pass

        self.assertEqual(schema.signature(measure).bind({"thing": {"size": 1}}, None)[1]["thing"], Local(1))
        self.assertEqual(
            schema.signature(measure_unbound).bind({"thing": {"size": 2}}, None)[1]["thing"], Local(2)
        )

    def test_an_async_function_is_known_as_such(self):
        async def wait():
            pass

        self.assertTrue(schema.signature(wait).is_async)
        self.assertTrue(schema.signature(functools.partial(wait)).is_async)


class Contexts(unittest.TestCase):
    def test_the_context_is_injected_and_hidden(self):
        from pydantic_ai import RunContext

        def tool(ctx: RunContext[int], size: int):
            pass

        def written_out(ctx: "RunContext[int]", size: int):
            return RunContext

        def bare(ctx: RunContext, size: int):
            pass

        def procedure(size: int, runtime_context=None):
            pass

        for function, name in [
            (tool, "ctx"),
            (written_out, "ctx"),
            (bare, "ctx"),
            (procedure, "runtime_context"),
        ]:
            with self.subTest(function=function.__name__):
                found = schema.signature(function)
                self.assertEqual(found.context, name)
                self.assertEqual(list(found.schema["properties"]), ["size"])
                self.assertEqual(found.bind({"size": 1}, "the context")[1], {name: "the context", "size": 1})

    def test_a_context_that_only_type_checkers_import_is_known_by_its_name(self):
        def tool(ctx: "CallContext", other: "llm.RunContext[Deps]" = None):  # noqa: F821
            pass

        with self.assertRaises(schema.SignatureProblem):
            schema.signature(tool)
        self.assertEqual(schema.signature(tool, hidden=["other"]).context, "ctx")

    def test_the_context_cannot_be_passed_by_a_model(self):
        def procedure(size: int, runtime_context=None):
            pass

        with self.assertRaises(coerce.ArgumentProblem):
            schema.signature(procedure).bind({"size": 1, "runtime_context": {}}, None)

    def test_hidden_parameters_are_neither_shown_nor_passed(self):
        def entry(args: Point, ctx: int, size: int):
            pass

        found = schema.signature(entry, hidden=["args", "ctx"])
        self.assertEqual(found.bind({"size": 1}, None), ([], {"size": 1}))


class Classes(unittest.TestCase):
    def test_a_dataclass_has_its_fields_defaults_and_docstring(self):
        written = schema.class_schema(Point)
        self.assertEqual(written["required"], ["x"])
        self.assertEqual(written["properties"]["y"]["default"], 0.5)
        self.assertEqual(coerce.make(Point, {"x": 1}), Point(1))

    def test_a_typed_dict_knows_what_is_required(self):
        self.assertEqual(schema.class_schema(Movie).get("required", []), [])
        if hasattr(typing, "NotRequired"):
            Film = TypedDict("Film", {"title": str, "year": typing.NotRequired[int]})
            self.assertEqual(schema.class_schema(Film)["required"], ["title"])

    def test_the_schema_of_a_recursive_class_is_an_object_itself(self):
        written = schema.class_schema(Node)
        self.assertEqual(written["type"], "object")
        self.assertEqual(written["properties"]["children"]["items"], {"$ref": "#/$defs/Node"})
        self.assertIn("name", written["$defs"]["Node"]["properties"])

    def test_enums_and_named_tuples_have_schemas(self):
        self.assertEqual(schema.class_schema(Color)["enum"], ["red", "blue"])
        self.assertEqual(schema.class_schema(Pair)["type"], "array")

    def test_a_dataclass_that_refuses_its_values_says_why(self):
        @dataclass
        class Even:
            number: int

            def __post_init__(self):
                if self.number % 2:
                    raise ValueError("must be even")

        with self.assertRaises(coerce.ArgumentProblem) as caught:
            coerce.make(Even, {"number": 3})
        self.assertIn("must be even", str(caught.exception))

    def test_a_generic_dataclass_takes_the_types_it_is_given(self):
        Item = typing.TypeVar("Item")

        @dataclass
        class Box(typing.Generic[Item]):
            item: Item

        shape = hints.Builder(hints.Scope()).shape(Box[int])
        self.assertEqual(shape.make({"item": 1}), Box(1))
        with self.assertRaises(coerce.Mismatch):
            shape.make({"item": "x"})


if __name__ == "__main__":
    unittest.main()
