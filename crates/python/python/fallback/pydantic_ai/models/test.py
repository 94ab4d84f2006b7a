"""The model of pydantic_ai for tests."""

from . import Model


class TestModel(Model):
    """Stands for pydantic_ai's TestModel in hints."""

    __test__ = False

    def __init__(self, *values, **options):
        super().__init__("test")
