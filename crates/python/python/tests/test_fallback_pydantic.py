"""Models: the same assertions hold for the real pydantic and for the one that stands in."""

import datetime
import enum
import json
import pathlib
import typing
import unittest
from typing import Annotated, ClassVar, Dict, List, Optional

import search_paths
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)
from llm_do.runtime.args import (
    AgentArgs,
    Attachment,
    PromptContent,
    PromptInput,
    WorkerArgs,
    get_display_text,
)
from llm_do_host import coerce, hints, schema


class Kind(str, enum.Enum):
    BOOK = "book"
    FILM = "film"


class Author(BaseModel):
    """Who wrote it."""

    name: str
    born: Optional[datetime.date] = None


class Work(BaseModel):
    title: str = Field(min_length=1, description="Its title.", examples=["Emma"])
    kind: Kind = Kind.BOOK
    authors: List[Author] = []
    tags: Dict[str, int] = Field(default_factory=dict)
    rating: float = Field(default=3, ge=1, le=5)
    path: Optional[pathlib.Path] = None
    counted: ClassVar[int] = 0


class Tree(BaseModel):
    label: str
    children: List["Tree"] = []


class Topic(AgentArgs):
    subject: str
    limit: int = Field(default=3, ge=1)

    def prompt_messages(self) -> List[PromptContent]:
        return ["About %s, %d items" % (self.subject, self.limit), Attachment("a.txt")]


def faults(error):
    """Returns what an error is about, in short."""
    return [(each["loc"], each["type"]) for each in error.errors()]


class Models(unittest.TestCase):
    def refused(self, cls, **values):
        with self.assertRaises(ValidationError) as caught:
            cls(**values)
        self.assertIsInstance(caught.exception, ValueError)
        return caught.exception

    def test_fields_are_typed_and_have_defaults(self):
        work = Work(title="Emma", kind="film", authors=[{"name": "Jane", "born": "1775-12-16"}], path="a/b")
        self.assertIs(work.kind, Kind.FILM)
        self.assertEqual(work.authors, [Author(name="Jane", born=datetime.date(1775, 12, 16))])
        self.assertEqual(work.path, pathlib.Path("a/b"))
        self.assertEqual((work.rating, work.tags), (3, {}))

    def test_defaults_are_not_shared(self):
        first, second = Work(title="a"), Work(title="b")
        first.authors.append(Author(name="x"))
        first.tags["x"] = 1
        self.assertEqual((second.authors, second.tags), ([], {}))

    def test_errors_name_the_place_and_the_kind(self):
        error = self.refused(Work, title="", rating=9, authors=[{"name": "a"}, {}])
        self.assertEqual(
            sorted(faults(error), key=str),
            sorted(
                [
                    (("title",), "string_too_short"),
                    (("rating",), "less_than_equal"),
                    (("authors", 1, "name"), "missing"),
                ],
                key=str,
            ),
        )
        self.assertEqual(error.error_count(), 3)
        text = str(error)
        self.assertIn("3 validation errors for Work", text)
        self.assertIn(
            "title\n  String should have at least 1 character [type=string_too_short, input_value='', input_type=str",
            text,
        )
        self.assertIn("authors.1.name\n  Field required [type=missing", text)

    def test_equality_and_text(self):
        self.assertEqual(Author(name="a"), Author(name="a"))
        self.assertNotEqual(Author(name="a"), Author(name="b"))
        self.assertEqual(repr(Author(name="a")), "Author(name='a', born=None)")
        self.assertEqual(str(Author(name="a")), "name='a' born=None")

    def test_fields_may_have_any_name(self):
        class Odd(BaseModel):
            shown: bool
            fields: int = 1
            values: List[int] = []
            shape: str = "x"

        odd = Odd(shown=True)
        self.assertEqual(repr(odd), "Odd(shown=True, fields=1, values=[], shape='x')")
        self.assertEqual(odd.model_dump(), {"shown": True, "fields": 1, "values": [], "shape": "x"})

    def test_dumps(self):
        work = Work(
            title="Emma",
            authors=[Author(name="Jane", born=datetime.date(1775, 12, 16))],
            path=pathlib.Path("x"),
        )
        self.assertIs(work.model_dump()["kind"], Kind.BOOK)
        self.assertEqual(work.model_dump(mode="json")["kind"], "book")
        self.assertEqual(work.model_dump(mode="json")["authors"], [{"name": "Jane", "born": "1775-12-16"}])
        self.assertEqual(work.model_dump(include={"title"}), {"title": "Emma"})
        self.assertNotIn("title", work.model_dump(exclude={"title"}))
        self.assertEqual(set(work.model_dump(exclude_unset=True)), {"title", "authors", "path"})
        self.assertEqual(Author(name="a").model_dump(exclude_none=True), {"name": "a"})
        self.assertEqual(Author(name="a").model_dump(exclude_defaults=True), {"name": "a"})
        self.assertEqual(Author(name="ä").model_dump_json(), '{"name":"ä","born":null}')
        self.assertEqual(Work.model_validate_json(work.model_dump_json()), work)

    def test_inheritance_keeps_fields_and_their_order(self):
        class Editor(Author):
            house: str
            name: str = "nobody"

        self.assertEqual(list(Editor.model_fields), ["name", "born", "house"])
        self.assertEqual(Editor(house="h").name, "nobody")
        self.assertIsInstance(Editor(house="h"), Author)

    def test_extra_values_are_ignored_forbidden_or_kept(self):
        class Strict(BaseModel):
            model_config = ConfigDict(extra="forbid")
            a: int

        class Open(BaseModel, extra="allow"):
            a: int

        self.assertFalse(hasattr(Author(name="a", other=1), "other"))
        self.assertEqual(faults(self.refused(Strict, a=1, b=2)), [(("b",), "extra_forbidden")])
        self.assertEqual(Open(a=1, b=2).b, 2)
        self.assertEqual(Open(a=1, b=2).model_dump(), {"a": 1, "b": 2})
        self.assertIs(Strict.model_json_schema()["additionalProperties"], False)
        self.assertIs(Open.model_json_schema()["additionalProperties"], True)

    def test_aliases(self):
        class Aliased(BaseModel):
            size: int = Field(alias="Size")

        class Both(BaseModel):
            model_config = ConfigDict(populate_by_name=True)
            size: int = Field(alias="Size")

        self.assertEqual(Aliased(Size=1).size, 1)
        self.refused(Aliased, size=1)
        self.assertEqual((Both(size=1).size, Both(Size=1).size), (1, 1))
        self.assertEqual(Aliased(Size=1).model_dump(by_alias=True), {"Size": 1})
        self.assertEqual(list(Aliased.model_json_schema()["properties"]), ["Size"])

    def test_field_validators(self):
        class Range(BaseModel):
            low: int
            high: int
            name: str = "x"

            @field_validator("high")
            @classmethod
            def above_low(cls, value, info):
                if value < info.data["low"]:
                    raise ValueError("must not be below low")
                return value

            @field_validator("name", mode="before")
            @classmethod
            def as_text(cls, value):
                return str(value)

            @field_validator("name")
            def lower(cls, value):
                return value.lower()

        self.assertEqual(Range(low=1, high=2, name=5).name, "5")
        self.assertEqual(Range(low=1, high=2, name="AB").name, "ab")
        error = self.refused(Range, low=2, high=1)
        self.assertEqual(faults(error), [(("high",), "value_error")])
        self.assertEqual(error.errors()[0]["msg"], "Value error, must not be below low")

    def test_model_validators(self):
        class Pair(BaseModel):
            a: int
            b: int

            @model_validator(mode="before")
            @classmethod
            def from_list(cls, data):
                return {"a": data[0], "b": data[1]} if isinstance(data, list) else data

            @model_validator(mode="after")
            def ordered(self):
                assert self.a <= self.b, "out of order"
                return self

        self.assertEqual(Pair.model_validate([1, 2]), Pair(a=1, b=2))
        self.assertEqual(faults(self.refused(Pair, a=2, b=1)), [((), "assertion_error")])

    def test_annotated_fields_and_validators(self):
        class Note(BaseModel):
            text: Annotated[str, Field(min_length=2, description="What.")]
            words: Annotated[
                List[str], BeforeValidator(lambda value: value.split() if isinstance(value, str) else value)
            ] = []

        self.assertEqual(Note(text="ab", words="a b").words, ["a", "b"])
        self.refused(Note, text="a")
        self.assertEqual(Note.model_json_schema()["properties"]["text"]["description"], "What.")
        self.assertEqual(Note.model_json_schema()["properties"]["text"]["minLength"], 2)

    def test_computed_fields_serializers_and_private_attributes(self):
        class Square(BaseModel):
            side: float
            _cache: dict = PrivateAttr(default_factory=dict)

            @computed_field
            @property
            def area(self) -> float:
                return self.side**2

            @field_serializer("side")
            def written(self, value):
                return "%s m" % value

        square = Square(side=2)
        square._cache["x"] = 1
        self.assertEqual(square._cache, {"x": 1})
        self.assertEqual(square.model_dump(), {"side": "2.0 m", "area": 4.0})

    def test_copies_and_assignment(self):
        first = Author(name="a")
        second = first.model_copy(update={"name": "b"})
        self.assertEqual((first.name, second.name), ("a", "b"))
        first.name = "c"
        self.assertEqual(first.name, "c")
        with self.assertRaises(ValueError):
            first.unknown = 1

        class Frozen(BaseModel):
            model_config = ConfigDict(frozen=True)
            a: int

        with self.assertRaises(ValidationError):
            Frozen(a=1).a = 2
        self.assertEqual(len({Frozen(a=1), Frozen(a=1)}), 1)

        class Watched(BaseModel):
            model_config = ConfigDict(validate_assignment=True)
            a: int

        with self.assertRaises(ValidationError):
            Watched(a=1).a = "x"

    def test_recursive_models(self):
        tree = Tree.model_validate({"label": "a", "children": [{"label": "b"}]})
        self.assertEqual(tree.children[0].label, "b")
        self.assertIn("Tree", Tree.model_json_schema()["$defs"])

    def test_local_models_know_the_names_around_them(self):
        class Inner(BaseModel):
            a: int

        class Outer(BaseModel):
            inner: "Inner"
            many: "List[Inner]" = []

        self.assertEqual(Outer(inner={"a": 1}).inner, Inner(a=1))

    def test_generic_models(self):
        Item = typing.TypeVar("Item")

        class Box(BaseModel, typing.Generic[Item]):
            item: Item

        class Holder(BaseModel):
            box: Box[int]

        self.assertEqual(Holder.model_validate({"box": {"item": 1}}).box.item, 1)
        with self.assertRaises(ValidationError):
            Holder.model_validate({"box": {"item": "x"}})

    def test_type_adapter(self):
        adapter = TypeAdapter(List[Author])
        self.assertEqual(adapter.validate_python([{"name": "a"}]), [Author(name="a")])
        self.assertEqual(adapter.validate_json('[{"name":"a"}]'), [Author(name="a")])
        self.assertEqual(adapter.dump_python([Author(name="a")]), [{"name": "a", "born": None}])
        self.assertEqual(adapter.dump_json([Author(name="a")]), b'[{"name":"a","born":null}]')
        self.assertEqual(adapter.json_schema()["type"], "array")
        with self.assertRaises(ValidationError):
            adapter.validate_python([{}])

    def test_schemas_of_models(self):
        written = Work.model_json_schema()
        self.assertEqual(written["required"], ["title"])
        title = written["properties"]["title"]
        self.assertEqual(
            (title["minLength"], title["description"], title["examples"]), (1, "Its title.", ["Emma"])
        )
        rating = written["properties"]["rating"]
        self.assertEqual((rating["minimum"], rating["maximum"], rating["default"]), (1, 5, 3))
        self.assertEqual(written["$defs"]["Author"]["description"], "Who wrote it.")


class FunctionsWithModels(unittest.TestCase):
    def test_a_parameter_may_be_a_model(self):
        def save(
            work: Work,
            others: List[Author] = [],
            count: int = Field(default=2, ge=1, description="How often."),
        ):
            """Saves.

            Args:
                work: What to save.
            """

        found = schema.signature(save)
        self.assertEqual(found.schema["required"], ["work"])
        self.assertEqual(found.schema["properties"]["work"]["description"], "What to save.")
        self.assertIn("Author", found.schema["$defs"])
        self.assertEqual(found.schema["properties"]["count"]["description"], "How often.")
        self.assertEqual(found.schema["properties"]["count"]["minimum"], 1)
        values = found.bind({"work": {"title": "Emma"}, "others": [{"name": "a"}]}, None)[1]
        self.assertEqual(values, {"work": Work(title="Emma"), "others": [Author(name="a")], "count": 2})
        with self.assertRaises(coerce.ArgumentProblem) as caught:
            found.bind({"work": {"title": ""}, "count": 0}, None)
        self.assertIn(
            "parameter 'work.title': String should have at least 1 character", str(caught.exception)
        )
        self.assertIn(
            "parameter 'count' should be greater than or equal to 1, given the integer 0",
            str(caught.exception),
        )

    def test_a_single_model_may_stand_for_all_parameters(self):
        def save(author: Author):
            pass

        found = schema.signature(save, single_object=True)
        self.assertEqual(list(found.schema["properties"]), ["name", "born"])
        self.assertEqual(found.bind({"name": "a"}, None)[1], {"author": Author(name="a")})
        self.assertEqual(found.bind({"author": {"name": "a"}}, None)[1], {"author": Author(name="a")})
        with self.assertRaises(coerce.ArgumentProblem) as caught:
            found.bind({"born": "1775-12-16"}, None)
        self.assertIn("'name' is missing", str(caught.exception))

    def test_limits_in_annotated_parameters_are_kept(self):
        def search(query: Annotated[str, Field(max_length=3, pattern="^[a-z]+$", description="What.")]):
            pass

        found = schema.signature(search)
        part = found.schema["properties"]["query"]
        self.assertEqual((part["maxLength"], part["pattern"], part["description"]), (3, "^[a-z]+$", "What."))
        for bad in ["abcd", "A"]:
            with self.assertRaises(coerce.ArgumentProblem):
                found.bind({"query": bad}, None)


class Inputs(unittest.TestCase):
    def test_agent_args_are_models_of_this_pydantic(self):
        self.assertTrue(issubclass(AgentArgs, BaseModel))
        self.assertIs(WorkerArgs, AgentArgs)
        self.assertEqual(
            Topic(subject="bees").prompt_messages(), ["About bees, 3 items", Attachment("a.txt")]
        )
        self.assertEqual(coerce.make(Topic, {"subject": "bees", "limit": 2}), Topic(subject="bees", limit=2))
        with self.assertRaises(coerce.ArgumentProblem) as caught:
            coerce.make(Topic, {"subject": "bees", "limit": 0})
        self.assertIn("field 'limit' should be greater than or equal to 1", str(caught.exception))
        written = schema.class_schema(Topic)
        self.assertEqual((written["required"], written["properties"]["limit"]["minimum"]), (["subject"], 1))

    def test_agent_args_without_a_prompt_cannot_be_made(self):
        class Mute(AgentArgs):
            a: int

        with self.assertRaises(TypeError):
            Mute(a=1)

    def test_prompt_input_has_text_then_attachments(self):
        prompt = PromptInput(input="look", attachments=["a.png"])
        self.assertEqual(prompt.prompt_messages(), ["look", Attachment("a.png")])
        self.assertEqual(get_display_text(["a", Attachment("x"), "b"]), "a b")
        self.assertEqual(get_display_text([Attachment("x"), " "]), "(no input)")
        self.assertEqual(schema.class_schema(PromptInput)["required"], ["input"])

    def test_an_attachment_reads_its_file(self):
        here = pathlib.Path(__file__)
        content = Attachment(here.name).render(here.parent)
        self.assertEqual((content.data, content.media_type), (here.read_bytes(), "text/x-python"))
        with self.assertRaises(FileNotFoundError):
            Attachment("no such file").render(here.parent)

    def test_attachments_may_be_fields(self):
        class Report(BaseModel):
            files: List[Attachment] = []

        report = Report.model_validate({"files": [{"path": "a.txt"}, Attachment("b.txt")]})
        self.assertEqual(report.files, [Attachment("a.txt"), Attachment("b.txt")])
        self.assertEqual(
            json.loads(report.model_dump_json()), {"files": [{"path": "a.txt"}, {"path": "b.txt"}]}
        )


class WhichPydantic(unittest.TestCase):
    def test_the_real_pydantic_is_used_exactly_where_it_is_installed(self):
        self.assertEqual(hints.real_pydantic() is not None, search_paths.installed("pydantic"))


if __name__ == "__main__":
    unittest.main()
