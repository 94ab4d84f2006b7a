"""Our schemas say the same as pydantic's: compared where the real one is installed."""

import collections.abc
import datetime
import decimal
import enum
import json
import pathlib
import typing
import unittest
import uuid
from unittest import mock
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, Optional, Set, Tuple, Union

import search_paths
from llm_do_host import hints, schema, shapes

IGNORED = ("title", "format", "discriminator", "description")  # words differ between versions
REAL = search_paths.installed("pydantic")
if REAL:
    from pydantic import Field
    from typing_extensions import TypedDict
else:
    from typing import TypedDict

    Field = None


class Color(enum.Enum):
    """Colors."""

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
class Shape:
    points: List[Point]
    color: Color = Color.RED
    names: List[str] = field(default_factory=list)
    inner: Optional["Shape"] = None


class Movie(TypedDict):
    title: str
    cast: List[str]


class Partial(Movie, total=False):
    year: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


HINTS = [
    str,
    int,
    float,
    bool,
    None,
    Any,
    list,
    dict,
    tuple,
    set,
    List[int],
    List[List[str]],
    Set[str],
    typing.FrozenSet[int],
    Tuple[int, str],
    Tuple[int, ...],
    Dict[str, int],
    Dict[str, List[float]],
    Dict[int, str],
    collections.abc.Mapping[str, int],
    collections.abc.Sequence[int],
    collections.abc.Iterable[int],
    Optional[int],
    Union[int, str, None],
    int | None,
    Literal["a"],
    Literal["a", "b"],
    Literal[1, 2],
    Literal["a", 1],
    Color,
    Level,
    Optional[Color],
    List[Level],
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    uuid.UUID,
    pathlib.Path,
    decimal.Decimal,
    bytes,
    Point,
    List[Point],
    Shape,
    Optional[Shape],
    Union[Point, Shape],
    Pair,
    Movie,
    Partial,
    typing.NewType("Name", str),
    typing.TypeVar("Bounded", bound=int),
    typing.TypeVar("Free"),
]
VALUES = [None, True, 1, 1.5, "a", "red", "2024-05-06", [], [1], ["a"], [1, "a"], {}, {"a": 1}, {"1": "a"}]
VALUES += [
    {"x": 1},
    {"x": 1, "y": 2},
    {"points": [{"x": 1}]},
    {"points": [], "inner": {"points": []}},
    2,
    [[]],
    [{"x": 1}],
]


def ours(hint):
    """Returns our schema of a hint."""
    book = shapes.Book()
    return book.bound(hints.Builder(hints.Scope(globals())).shape(hint).schema(book))


def theirs(hint):
    """Returns pydantic's schema of a hint."""
    import pydantic

    book = shapes.Book()
    return book.bound(book.adopt(pydantic.TypeAdapter(hint).json_schema()))


def meaning(written, definitions=None, inside=()):
    """Returns what a schema means: references followed, words left out, alternatives in any order."""
    definitions = written.get("$defs", {}) if definitions is None else definitions
    if "$ref" in written:
        name = written["$ref"].rpartition("/")[2]
        if name in inside:
            return {"circle": name}
        rest = {key: part for key, part in written.items() if key != "$ref"}
        return meaning(dict(definitions[name], **rest), definitions, inside + (name,))
    found = {}
    for key, part in written.items():
        if key in IGNORED or key == "$defs":
            continue
        if key == "properties":
            found[key] = {name: meaning(each, definitions, inside) for name, each in part.items()}
        elif key in ("anyOf", "prefixItems"):
            each = [meaning(member, definitions, inside) for member in part]
            found[key] = sorted(each, key=sorted_text) if key == "anyOf" else each
        elif key in ("items", "additionalProperties") and isinstance(part, dict):
            found[key] = meaning(part, definitions, inside)
        else:
            found[key] = sorted(part) if key == "required" else part
    return without_decimal_pattern(found)


def descriptions(written):
    """Returns how a schema describes its properties, those aside that are classes."""
    plain_parts = {
        name: part for name, part in written["properties"].items() if not {"$ref", "properties"} & set(part)
    }
    return {name: part.get("description") for name, part in plain_parts.items()}


def sorted_text(schema):
    """Writes a schema so that equal ones are written equally."""
    return json.dumps(schema, sort_keys=True, default=str)


def without_decimal_pattern(schema):
    """Leaves out the pattern by which pydantic describes the text of a Decimal."""
    if schema.get("type") == "string" and "(?!" in str(schema.get("pattern", "")):
        return {key: part for key, part in schema.items() if key != "pattern"}
    return schema


@unittest.skipUnless(REAL, "pydantic is not installed")
class SameAsPydantic(unittest.TestCase):
    maxDiff = None

    def test_schemas_mean_the_same(self):
        for hint in HINTS:
            with self.subTest(hint=hint):
                self.assertEqual(meaning(ours(hint)), meaning(theirs(hint)))

    def test_typed_dicts_require_the_same_keys(self):
        from typing_extensions import NotRequired

        Film = TypedDict("Film", {"title": str, "year": NotRequired[int]})
        self.assertEqual(meaning(ours(Film)), meaning(theirs(Film)))

    def test_limits_mean_the_same(self):
        hints_with_limits = [
            Annotated[int, Field(ge=1, lt=10, description="How many.")],
            Annotated[float, Field(gt=0, le=1)],
            Annotated[str, Field(min_length=1, max_length=5, pattern="^a")],
            Annotated[List[int], Field(min_length=1, max_length=5)],
            Annotated[Dict[str, int], Field(min_length=1)],
            Optional[Annotated[int, Field(ge=1)]],
        ]
        for hint in hints_with_limits:
            with self.subTest(hint=hint):
                self.assertEqual(meaning(ours(hint)), meaning(theirs(hint)))

    def test_what_we_accept_pydantic_accepts_with_the_same_result(self):
        import pydantic

        from llm_do_host.coerce import Mismatch

        accepted = 0
        for hint in HINTS:
            adapter = pydantic.TypeAdapter(hint)
            shape = hints.Builder(hints.Scope(globals())).shape(hint)
            for value in VALUES:
                with self.subTest(hint=hint, value=value):
                    try:
                        made = shape.make(value)
                    except Mismatch:
                        continue
                    accepted += 1
                    expected = adapter.validate_python(value)
                    expected = list(expected) if "Iterator" in type(expected).__name__ else expected
                    self.assertEqual(made, expected)
        self.assertGreater(accepted, 100)


def plain(a: int, b: str = "x", *, c: Optional[List[Color]] = None) -> str:
    """Does it.

    Args:
        a: The first.
        b: The second,
            on two lines.
    """


def numpy_style(a: int, b: float = 1.0):
    """Does it.

    Parameters
    ----------
    a : int
        The first.
    b : float
        The second.
    """


def sphinx_style(a: int, b: float = 1.0):
    """Does it.

    :param a: The first.
    :param b: The second.
    """


def single(point: Point):
    """Does it."""


def single_dictionary(movie: Movie):
    """Does it."""


def two(point: Point, shape: Shape):
    """Does it."""


def nothing():
    """Does it."""


def without_hints(a, b=1):
    """Does it."""


def anything_else(a: int, **others: Any):
    """Does it."""


FUNCTIONS = [
    plain,
    numpy_style,
    sphinx_style,
    single,
    single_dictionary,
    two,
    nothing,
    without_hints,
    anything_else,
]


@unittest.skipUnless(search_paths.installed("pydantic_ai"), "pydantic_ai is not installed")
class SameAsPydanticAI(unittest.TestCase):
    maxDiff = None

    def compare(self, function):
        from pydantic_ai import Tool

        definition = Tool(function).tool_def
        found = schema.signature(function, single_object=True)
        self.assertEqual(meaning(found.schema), meaning(definition.parameters_json_schema))
        self.assertEqual(found.description, definition.description)
        self.assertEqual(descriptions(found.schema), descriptions(definition.parameters_json_schema))

    def test_functions_have_the_same_schemas_with_pydantic(self):
        for function in FUNCTIONS:
            with self.subTest(function=function.__name__):
                self.compare(function)

    def test_functions_have_the_same_schemas_without_pydantic(self):
        with mock.patch.object(hints, "real_pydantic", lambda: None):
            for function in FUNCTIONS:
                with self.subTest(function=function.__name__):
                    self.compare(function)


if __name__ == "__main__":
    unittest.main()
