"""Checks and writes values of any type, without a model."""

import sys

from llm_do_host import hints, shapes
from llm_do_host.coerce import Mismatch

from . import writing
from .errors import PydanticSchemaGenerationError, ValidationError


class TypeAdapter:
    """Validates and writes values of one type."""

    def __init__(self, type, *, config=None, module=None, **options):
        frame = sys._getframe(1)
        try:
            self.shape = hints.shape_of(type, hints.Scope(frame.f_globals, dict(frame.f_locals)))
        except hints.HintProblem as problem:
            raise PydanticSchemaGenerationError(str(problem)) from None
        self.title = hints.hint_text(type)

    def validate_python(self, object, /, **options):
        """Returns the typed value."""
        try:
            return self.shape.make(object)
        except Mismatch as problem:
            raise ValidationError(self.title, problem.faults) from None

    def validate_json(self, data, /, **options):
        """Returns the typed value of JSON text."""
        import json

        return self.validate_python(json.loads(data))

    def dump_python(self, instance, /, *, mode="python", **settings):
        """Returns a value without models in it."""
        return writing.plain(instance, mode, settings)

    def dump_json(self, instance, /, *, indent=None, **settings):
        """Returns a value as JSON, in bytes."""
        import json

        separators = (",", ":") if indent is None else None
        plain = writing.plain(instance, "json", settings)
        return json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False).encode()

    def json_schema(self, **options):
        """Returns the JSON Schema of the type."""
        book = shapes.Book()
        return book.bound(self.shape.schema(book))
