"""What a value may be: each shape writes its JSON Schema and turns JSON into a typed value.

A shape is made once from a type hint (see `hints`) and used for every call: `schema(book)` returns
the schema, `make(value)` the typed value, or raises `coerce.Mismatch`. Values that are typed
already (an enum member, a `Path`, an instance of the class) pass as they are.
"""

from .coerce import Fault, Mismatch, mismatch

MISSING = object()


class Book:
    """Collects the schemas of classes while one schema is written: they become its `$defs`."""

    def __init__(self):
        self.definitions = {}
        self.names = {}

    def reference(self, owner, name, write):
        """Returns a reference to the schema of `owner`, which `write(book)` makes the first time."""
        if owner not in self.names:
            self.names[owner] = self.free_name(name)
            self.definitions[self.names[owner]] = None  # taken, so that recursion ends here
            self.definitions[self.names[owner]] = write(self)
        return {"$ref": "#/$defs/" + self.names[owner]}

    def free_name(self, name):
        """Returns `name`, with a number where another class has it already."""
        candidate, number = name, 2
        while candidate in self.definitions:
            candidate, number = "%s_%d" % (name, number), number + 1
        return candidate

    def adopt(self, schema):
        """Takes over the `$defs` of a finished schema; returns the rest of it."""
        definitions = schema.get("$defs")
        if not definitions:
            return schema
        renamed = {}
        for name, definition in definitions.items():
            same = self.definitions.get(name, MISSING) in (MISSING, definition)
            renamed[name] = name if same else self.free_name(name)
        for name, definition in definitions.items():
            self.definitions[renamed[name]] = with_references(definition, renamed)
        return with_references({key: part for key, part in schema.items() if key != "$defs"}, renamed)

    def bound(self, schema):
        """Returns a finished schema with its `$defs`; the outermost class stands in its own place."""
        definitions = dict(self.definitions)
        if set(schema) == {"$ref"}:
            target = schema["$ref"]
            name = target[len("#/$defs/") :]
            schema = definitions[name]
            if not mentions(definitions, target):
                del definitions[name]
        return dict(schema, **{"$defs": definitions}) if definitions else schema


def with_references(schema, renamed):
    """Copies a schema, its references renamed."""
    if isinstance(schema, dict):
        copy = {key: with_references(part, renamed) for key, part in schema.items()}
        target = schema.get("$ref")
        if isinstance(target, str) and target.startswith("#/$defs/"):
            name = target[len("#/$defs/") :]
            copy["$ref"] = "#/$defs/" + renamed.get(name, name)
        return copy
    if isinstance(schema, list):
        return [with_references(part, renamed) for part in schema]
    return schema


def mentions(schema, target):
    """Tells whether a reference to `target` stands anywhere in a schema."""
    if isinstance(schema, dict):
        return schema.get("$ref") == target or any(mentions(part, target) for part in schema.values())
    return isinstance(schema, list) and any(mentions(part, target) for part in schema)


class Shape:
    """Any value at all; the base of all shapes."""

    expected = "any value"
    kind = None  # the JSON type that limits such as `min_length` apply to

    def schema(self, book):
        """Returns the JSON Schema; classes go into the book."""
        return {}

    def make(self, value):
        """Returns the typed value, or raises `Mismatch`."""
        return value

    def exact(self, value):
        """Tells whether the value is of this shape without any conversion."""
        return False

    def fit(self, value):
        """Says how well an object fits, where several members of a union accept it."""
        return 0

    def make_key(self, text):
        """Returns the typed key of a dict, from a JSON object's key."""
        return self.make(text)

    def refuse(self, error, value):
        """Makes the mismatch that says what this shape expects."""
        return mismatch(error, "Input should be " + self.expected, value)


class Scalar(Shape):
    """One of the classes that JSON has itself."""

    def __init__(self, cls, kind, expected, error):
        self.cls = cls
        self.kind = kind
        self.expected = expected
        self.error = error

    def schema(self, book):
        return {"type": self.kind}

    def make(self, value):
        if isinstance(value, self.cls) and (self.cls is bool or not isinstance(value, bool)):
            return value
        return self.convert(value)

    def exact(self, value):
        return type(value) is self.cls

    def convert(self, value):
        """Turns a related value into one of the class, or refuses it."""
        if self.cls is int and type(value) is float and value.is_integer():
            return int(value)
        if self.cls is float and type(value) is int:
            return self.whole_number(value)
        raise self.refuse(self.error, value)

    def whole_number(self, value):
        """Turns an integer into a float, unless it is too large for one."""
        try:
            return float(value)
        except OverflowError:
            raise self.refuse(self.error, value) from None

    def make_key(self, text):
        if self.cls in (int, float) and isinstance(text, str):
            try:
                return self.cls(text)
            except ValueError:
                raise self.refuse(self.error, text) from None
        return self.make(text)


ANY = Shape()
STRING = Scalar(str, "string", "a valid string", "string_type")
INTEGER = Scalar(int, "integer", "a valid integer", "int_type")
NUMBER = Scalar(float, "number", "a valid number", "float_type")
BOOLEAN = Scalar(bool, "boolean", "a valid boolean", "bool_type")
NULL = Scalar(type(None), "null", "None", "none_required")


class Choice(Shape):
    """One of some constants: a Literal, or the members of an Enum by their values."""

    def __init__(self, options, error="literal_error", cls=None, description=""):
        self.options = options  # pairs: what JSON says, what Python gets
        self.error = error
        self.cls = cls
        self.description = description
        names = [repr(given) for given, _ in options]
        self.expected = " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

    def schema(self, book):
        given = [json for json, _ in self.options]
        schema = {"const": given[0]} if len(given) == 1 else {"enum": given}
        kinds = {JSON_TYPES.get(type(json)) for json in given}
        if len(kinds) == 1 and None not in kinds:
            schema["type"] = kinds.pop()
        if self.description:
            schema["description"] = self.description
        return schema

    def make(self, value):
        if self.cls is not None and isinstance(value, self.cls):
            return value
        for given, typed in self.options:
            if type(given) is type(value) and given == value:
                return typed
        raise self.refuse(self.error, value)

    def exact(self, value):
        return any(type(given) is type(value) and given == value for given, _ in self.options)

    def make_key(self, text):
        for given, typed in self.options:
            if str(given) == text:
                return typed
        raise self.refuse(self.error, text)


JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Text(Shape):
    """A class that is written as a string: a date, a path, a number of exact digits."""

    def __init__(self, cls, form, parse, expected, error, numbers=False):
        self.cls = cls
        self.form = form
        self.parse = parse
        self.expected = expected
        self.error = error
        self.numbers = numbers
        self.kind = "number" if numbers else None

    def schema(self, book):
        text = {"type": "string", "format": self.form}
        return {"anyOf": [{"type": "number"}, text]} if self.numbers else text

    def make(self, value):
        if isinstance(value, self.cls):
            return value
        if isinstance(value, str) or (self.numbers and type(value) in (int, float)):
            return self.parsed(value)
        raise self.refuse(self.error, value)

    def parsed(self, value):
        """Reads the text, or says that it is none of the kind."""
        try:
            return self.parse(str(value))
        except (ValueError, ArithmeticError):
            raise self.refuse(self.error, value) from None

    def exact(self, value):
        return isinstance(value, self.cls)


class Union(Shape):
    """One of several shapes: the one that needs no conversion, else the first that accepts."""

    def __init__(self, members):
        self.members = members
        self.expected = " or ".join(unique(member.expected for member in members))

    def schema(self, book):
        return {"anyOf": unique(member.schema(book) for member in self.members)}

    def make(self, value):
        for member in self.members:
            if member.exact(value):
                return member.make(value)
        made, faults = [], []
        for member in self.members:
            try:
                made.append((member.fit(value), member.make(value)))
            except Mismatch as problem:
                faults.extend(problem.faults)
        if not made:
            raise self.refusal(value, faults)
        best = max(fit for fit, _ in made)
        return next(typed for fit, typed in made if fit == best)

    def refusal(self, value, faults):
        """Makes the mismatch: what is wrong inside a member where that says more, else all members."""
        plain = ["Input should be " + member.expected for member in self.members]
        inner = [fault for fault in faults if fault.place or fault.message not in plain]
        return Mismatch(inner) if inner else self.refuse("union_error", value)

    def make_key(self, text):
        for member in self.members:
            try:
                return member.make_key(text)
            except Mismatch:
                continue
        raise self.refuse("union_error", text)

    def exact(self, value):
        return any(member.exact(value) for member in self.members)

    def fit(self, value):
        return max(member.fit(value) for member in self.members)


def unique(items):
    """Returns the items without repetition, in their order."""
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen


class Many(Shape):
    """Any number of items of one shape: a list, set, frozenset, deque or tuple of one kind."""

    kind = "array"

    def __init__(self, cls, item):
        self.cls = cls
        self.item = item
        self.distinct = issubclass(cls, (set, frozenset))
        self.expected = "a valid %s" % cls.__name__

    def schema(self, book):
        schema = {"type": "array", "items": self.item.schema(book)}
        if self.distinct:
            schema["uniqueItems"] = True
        return schema

    def make(self, value):
        if not isinstance(value, (list, tuple, set, frozenset, self.cls)):
            raise self.refuse("%s_type" % self.cls.__name__, value)
        items = made_items([(index, self.item, item) for index, item in enumerate(value)])
        try:
            return items if self.cls is list else self.cls(items)
        except TypeError:  # items of a set that cannot be in one
            raise self.refuse("%s_type" % self.cls.__name__, value) from None


class Row(Shape):
    """A fixed number of items, each of its own shape: a tuple or NamedTuple."""

    kind = "array"

    def __init__(self, cls, items=(), names=(), defaults=None):
        self.cls = cls
        self.items = list(items)
        self.names = list(names)
        self.defaults = defaults or {}
        self.expected = "a list of %d items" % len(self.items) if not names else "a valid %s" % cls.__name__

    def schema(self, book):
        if self.names:
            return book.reference(self, self.cls.__name__, self.row_schema)
        return self.row_schema(book)

    def row_schema(self, book):
        """Writes the schema itself; items of a NamedTuple have their names as titles."""
        items = [shape.schema(book) for shape in self.items]
        for position, name in enumerate(self.names):
            items[position] = dict(items[position], title=name)
            default = json_form(self.defaults.get(name, MISSING))
            if default is not MISSING:
                items[position]["default"] = default
        least = len(self.items) - len(self.defaults)
        return {"type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}

    def make(self, value):
        if self.names and isinstance(value, self.cls):
            return value
        if self.names and isinstance(value, dict):
            return self.make_named(value)
        if not isinstance(value, (list, tuple)) or not self.takes(len(value)):
            raise self.refuse("tuple_type", value)
        typed = made_items(
            [(index, shape, item) for index, (shape, item) in enumerate(zip(self.items, value))]
        )
        return self.cls(*typed) if self.names else tuple(typed)

    def takes(self, count):
        """Tells whether this many items are enough and not too many."""
        return len(self.items) - len(self.defaults) <= count <= len(self.items)

    def make_named(self, value):
        """Makes a NamedTuple from an object."""
        shapes = dict(zip(self.names, self.items))
        faults = [
            Fault("extra_forbidden", "Unexpected keyword argument", value[key], (key,))
            for key in value
            if key not in shapes
        ]
        for name in self.names:
            if name not in value and name not in self.defaults:
                faults.append(Fault("missing", "Field required", value, (name,), shapes[name].expected))
        if faults:
            raise Mismatch(faults)
        keys = list(value)
        return self.cls(**dict(zip(keys, made_items([(key, shapes[key], value[key]) for key in keys]))))

    def exact(self, value):
        return bool(self.names) and isinstance(value, self.cls)


class Table(Shape):
    """An object with any keys, all values of one shape: a dict or Mapping."""

    kind = "object"
    expected = "a valid dictionary"

    def __init__(self, cls, key, item):
        self.cls = cls
        self.key = key
        self.item = item

    def schema(self, book):
        return {"type": "object", "additionalProperties": self.item.schema(book) or True}

    def make(self, value):
        if not is_mapping(value):
            raise self.refuse("dict_type", value)
        keys = made_items([(key, KeyOf(self.key), key) for key in value])
        items = made_items([(key, self.item, item) for key, item in value.items()])
        made = dict(zip(keys, items))
        return made if self.cls is dict else self.cls(made)


class KeyOf(Shape):
    """The keys of a dict: always strings in JSON."""

    def __init__(self, shape):
        self.shape = shape

    def make(self, value):
        return self.shape.make_key(value)


def made_items(parts):
    """Makes all parts, given as (place, shape, value); raises one mismatch with all their faults."""
    made, faults = [], []
    for place, shape, value in parts:
        try:
            made.append(shape.make(value))
        except Mismatch as problem:
            faults.extend(fault.inside(place) for fault in problem.faults)
    if faults:
        raise Mismatch(faults)
    return made


def is_mapping(value):
    """Tells whether a value is a dict or something like it."""
    if isinstance(value, dict):
        return True
    return hasattr(value, "keys") and hasattr(value, "__getitem__") and not isinstance(value, type)


class Field:
    """One field of an object: its JSON name, its shape, and what is used when it is absent."""

    __slots__ = ("name", "key", "shape", "default", "description", "required", "extra_schema")

    def __init__(
        self, name, shape, default=MISSING, description=None, required=True, key=None, extra_schema=None
    ):
        self.name = name
        self.key = key or name
        self.shape = shape
        self.default = default  # only for the schema: Python fills in its own
        self.description = description
        self.required = required
        self.extra_schema = extra_schema

    def schema(self, book):
        """Returns the schema of the field with its description and default."""
        schema = dict(self.shape.schema(book))
        if self.description:
            schema["description"] = self.description
        default = json_form(self.default)
        if default is not MISSING:
            schema["default"] = default
        schema.update(self.extra_schema or {})
        return schema


def json_form(value):
    """Returns a default as JSON, or `MISSING` where it has no JSON form."""
    from enum import Enum

    if isinstance(value, Enum):
        return json_form(value.value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else MISSING  # neither infinite nor NaN
    if isinstance(value, (list, tuple, set, frozenset)):
        return json_list(value)
    if type(value) is dict:
        return json_object(value)
    return str(value) if hasattr(value, "__fspath__") else MISSING


def json_list(values):
    """Returns a list default as JSON, or `MISSING`."""
    items = [json_form(value) for value in values]
    return MISSING if any(item is MISSING for item in items) else items


def json_object(values):
    """Returns a dict default as JSON, or `MISSING`."""
    items = {key: json_form(value) for key, value in values.items()}
    fine = all(isinstance(key, str) and item is not MISSING for key, item in items.items())
    return items if fine else MISSING


class Object(Shape):
    """An object with known fields: a dataclass, TypedDict or model.

    `fields` is filled after the shape was made, so that a class can refer to itself. `extra` is
    what happens to unknown keys: "ignore", "forbid" or "allow".
    """

    kind = "object"

    def __init__(self, cls, build, description="", extra="ignore", name=None):
        self.cls = cls
        self.name = name or cls.__name__
        self.build = build  # makes the instance from a dict of typed fields
        self.description = description
        self.extra = extra
        self.fields = []
        self.expected = "a valid dictionary or instance of %s" % self.name

    def schema(self, book):
        return book.reference(self, self.name, self.object_schema)

    def object_schema(self, book):
        """Writes the schema itself."""
        schema = {"type": "object"}
        if self.description:
            schema["description"] = self.description
        schema["properties"] = {field.key: field.schema(book) for field in self.fields}
        required = [field.key for field in self.fields if field.required]
        if required:
            schema["required"] = required
        if self.extra != "ignore":
            schema["additionalProperties"] = self.extra == "allow"
        return schema

    def make(self, value):
        if self.exact(value):
            return value
        if not is_mapping(value):
            raise self.refuse("model_type", value)
        return self.build(self.typed_fields(value))

    def typed_fields(self, value):
        """Returns the typed values of the fields that are there, by their Python names."""
        faults, typed, known = [], {}, set()
        for field in self.fields:
            key = self.key_in(value, field)
            if key is None:
                if field.required:
                    faults.append(
                        Fault("missing", "Field required", value, (field.key,), field.shape.expected)
                    )
                continue
            known.add(key)
            try:
                typed[field.name] = self.make_field(field, value[key], typed)
            except Mismatch as problem:
                faults.extend(fault.inside(key) for fault in problem.faults)
        self.add_extra(value, known, typed, faults)
        if faults:
            raise Mismatch(faults)
        return typed

    def make_field(self, field, value, typed):
        """Makes the value of one field; `typed` holds those before it."""
        return field.shape.make(value)

    def key_in(self, value, field):
        """Returns the key under which a field is given, or None."""
        return field.key if field.key in value else None

    def add_extra(self, value, known, typed, faults):
        """Deals with the keys that are no fields."""
        for key in value.keys():
            if key in known or self.extra == "ignore":
                continue
            if self.extra == "allow":
                typed[key] = value[key]
            else:
                faults.append(Fault("extra_forbidden", "Extra inputs are not permitted", value[key], (key,)))

    def exact(self, value):
        return isinstance(self.cls, type) and self.cls is not dict and isinstance(value, self.cls)

    def fit(self, value):
        if not is_mapping(value):
            return 0
        return sum(1 for field in self.fields if self.key_in(value, field) is not None)


class TypedDictionary(Object):
    """A TypedDict: its instances are plain dicts, so every dict is checked."""

    def exact(self, value):
        return False


class Later(Shape):
    """A shape that is still being made: breaks the circle of an alias that refers to itself."""

    def __init__(self, name):
        self.name = name
        self.target = ANY

    expected = "a valid value"

    def schema(self, book):
        return book.reference(self, self.name, self.target.schema)

    def make(self, value):
        return self.target.make(value)

    def make_key(self, text):
        return self.target.make_key(text)

    def exact(self, value):
        return self.target.exact(value)


class Wrapping(Shape):
    """A shape around another one, which does all that a subclass does not."""

    def __init__(self, inner):
        self.inner = inner
        self.expected = inner.expected
        self.kind = inner.kind

    def schema(self, book):
        return self.inner.schema(book)

    def make(self, value):
        return self.inner.make(value)

    def make_key(self, text):
        return self.inner.make_key(text)

    def exact(self, value):
        return self.inner.exact(value)

    def fit(self, value):
        return self.inner.fit(value)


class Described(Wrapping):
    """A shape with a description of its own inside another type: a described item of a list."""

    def __init__(self, inner, description):
        super().__init__(inner)
        self.description = description

    def schema(self, book):
        return dict(self.inner.schema(book), description=self.description)


class Adapter(Shape):
    """A type hint that the real pydantic deals with (a TypeAdapter)."""

    expected = "a valid value"

    def __init__(self, adapter, expected=None):
        self.adapter = adapter
        self.expected = expected or self.expected

    def schema(self, book):
        return book.adopt(self.adapter.json_schema())

    def make(self, value):
        return validated(self.adapter.validate_python, value)


class Model(Shape):
    """A model of the real pydantic."""

    kind = "object"

    def __init__(self, cls):
        self.cls = cls
        self.expected = "a valid dictionary or instance of %s" % cls.__name__

    def schema(self, book):
        return book.adopt(self.cls.model_json_schema())

    def make(self, value):
        return validated(self.cls.model_validate, value)

    def exact(self, value):
        return isinstance(value, self.cls)


def validated(validate, value):
    """Lets pydantic validate a value; its errors become faults."""
    try:
        return validate(value)
    except ValueError as problem:
        if not hasattr(problem, "errors"):
            raise mismatch("value_error", "Value error, %s" % problem, value) from None
        raise Mismatch([fault_of(error) for error in problem.errors()]) from None


def fault_of(error):
    """Turns an entry of pydantic's `errors()` into a fault."""
    return Fault(error["type"], error["msg"], error.get("input"), tuple(error["loc"]))
