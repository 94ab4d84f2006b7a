"""Calls of plain functions."""

from support import HostCase


class PlainFunctions(HostCase):
    def test_a_function_is_called_with_typed_arguments(self):
        host, tools = self.tools(
            """
            def add(a: int, b: int) -> int:
                "Adds."
                return a + b
            async def hello(name: str) -> str:
                return "hello " + name
            TOOLS = [add, hello]
            """
        )
        self.assertEqual(host.call(tools["add"], {"a": 2, "b": 3})["value"], 5)
        self.assertEqual(host.call(tools["hello"], {"name": "x"})["value"], "hello x")
