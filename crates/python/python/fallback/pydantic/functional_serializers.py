"""How a project writes its fields itself."""


class Serializer:
    """A method of a model that writes some of its fields."""

    def __init__(self, function, fields, when_used="always"):
        self.function = function
        self.fields = fields
        self.when_used = when_used

    def __get__(self, instance, owner):
        return self if instance is None else self.function.__get__(instance)

    def written(self, model, value, mode):
        """Returns what is written for the value of a field."""
        if self.when_used.startswith("json") and mode != "json":
            return value
        if self.when_used.endswith("unless-none") and value is None:
            return value
        function = self.function
        return function.__func__(value) if isinstance(function, staticmethod) else function(model, value)


def field_serializer(*fields, mode="plain", when_used="always", return_type=None, check_fields=None):
    """Marks a method that writes fields."""
    if mode != "plain":
        raise NotImplementedError(
            "field_serializer(mode=%r) needs the real pydantic: install pydantic" % mode
        )

    def decorate(function):
        return Serializer(function, fields, when_used)

    return decorate
