"""Docstrings of three styles, and odd ones."""

import unittest

import search_paths  # noqa: F401
from llm_do_host import docstrings

GOOGLE = """Adds two numbers.

    More about it:
    it is exact.

    Args:
        left (int): The first one,
            which may be long.
        right: The second one.
        **others: All the rest.

    Returns:
        The sum.
    """

NUMPY = """Adds two numbers.

    Parameters
    ----------
    left : int
        The first one,
        which may be long.
    right, other : float, optional
        One of the others.

    Returns
    -------
    float
        The sum.
    """

SPHINX = """Adds two numbers.

    :param int left: The first one,
        which may be long.
    :param right: The second one.
    :type right: int
    :returns: The sum.
    :rtype: int
    """


class Styles(unittest.TestCase):
    def test_google_sections_give_parameters_and_leave_the_rest(self):
        description, parameters = docstrings.parse(GOOGLE)
        self.assertEqual(
            description, "Adds two numbers.\n\nMore about it:\nit is exact.\n\nReturns:\n    The sum."
        )
        self.assertEqual(
            parameters,
            {
                "left": "The first one,\nwhich may be long.",
                "right": "The second one.",
                "others": "All the rest.",
            },
        )

    def test_numpy_sections_give_parameters_also_for_several_names(self):
        description, parameters = docstrings.parse(NUMPY)
        self.assertTrue(description.startswith("Adds two numbers.\n\nReturns\n-------"))
        self.assertEqual(parameters["left"], "The first one,\nwhich may be long.")
        self.assertEqual(parameters["right"], "One of the others.")
        self.assertEqual(parameters["other"], "One of the others.")

    def test_sphinx_fields_give_parameters_without_their_types(self):
        description, parameters = docstrings.parse(SPHINX)
        self.assertEqual(description, "Adds two numbers.\n\n:returns: The sum.")
        self.assertEqual(
            parameters, {"left": "The first one,\nwhich may be long.", "right": "The second one."}
        )

    def test_text_after_the_parameters_stays_in_the_description(self):
        description, parameters = docstrings.parse("Reads.\n\nArgs:\n    path: Where.\n\nNever writes.")
        self.assertEqual(description, "Reads.\n\nNever writes.")
        self.assertEqual(parameters, {"path": "Where."})


class Odd(unittest.TestCase):
    def test_odd_docstrings_never_fail(self):
        odd = [
            None,
            5,
            "",
            "\n\n",
            "Args:",
            "Args:\n",
            "Args:\n    ",
            ":param",
            ":param:",
            ":param :",
            "Parameters\n---",
            "---\n---",
        ]
        odd += [
            "Args:\n    no colon here",
            "Args:\n\tx: tab\n  y: mixed",
            "\udcff",
            "Parameters\n----------\n",
            "x\n" * 50,
        ]
        for docstring in odd:
            with self.subTest(docstring=docstring):
                description, parameters = docstrings.parse(docstring)
                self.assertIsInstance(description, str)
                self.assertIsInstance(parameters, dict)

    def test_a_section_without_parameters_stays_text(self):
        self.assertEqual(docstrings.parse("Takes:\n\nArgs:")[0], "Takes:\n\nArgs:")

    def test_a_text_with_colons_is_no_section(self):
        self.assertEqual(docstrings.parse("Note: this\nis one: text"), ("Note: this\nis one: text", {}))


if __name__ == "__main__":
    unittest.main()
