"""Reads docstrings: the description of a function, and what they say about its parameters.

Google, NumPy and Sphinx style are understood. The description is the docstring without its
section about parameters; whatever else it says (results, examples) stays in the description.
"""

import re

PARAMETER_SECTIONS = (
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
)

GOOGLE_PARAMETER = r"^(?P<names>\*{0,2}\w+)\s*(?:\((?P<type>.*?)\))?\s*:(?:\s+(?P<text>.*)|\s*)$"
NUMPY_PARAMETER = r"^(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"
SPHINX_FIELD = r"^:(?P<tag>\w+)(?:\s+(?P<subject>[^:]*))?:(?:\s+(?P<text>.*)|\s*)$"
SPHINX_PARAMETER_TAGS = ("param", "parameter", "arg", "argument", "key", "keyword")
SPHINX_TYPE_TAGS = ("type", "rtype")


def parse(docstring):
    """Returns the description and a dict of parameter descriptions of a docstring (or None)."""
    if not isinstance(docstring, str):
        return "", {}
    lines = clean(docstring).split("\n")
    parameters = {}
    for take_out in (take_sphinx, take_numpy, take_google):
        lines, found = take_out(lines)
        for name, text in found.items():
            parameters.setdefault(name, text)
    return joined(lines), parameters


def clean(docstring):
    """Removes the common indentation and the blank lines around a docstring."""
    lines = docstring.expandtabs().splitlines()
    margins = [indent(line) for line in lines[1:] if line.strip()]
    margin = min(margins) if margins else 0
    lines = [line.strip() for line in lines[:1]] + [line[margin:].rstrip() for line in lines[1:]]
    return "\n".join(lines).strip("\n")


def take_google(lines):
    """Takes the `Args:` section out; returns the other lines and the parameters."""
    kept, parameters, position = [], {}, 0
    while position < len(lines):
        end = end_of_block(lines, position + 1) if is_google_header(lines[position]) else position + 1
        if end > position + 1:
            parameters.update(google_parameters(lines[position + 1 : end]))
        else:
            kept.append(lines[position])
        position = end
    return kept, parameters


def is_google_header(line):
    """Tells whether a line is `Args:`, unindented."""
    return line.rstrip().endswith(":") and line.rstrip()[:-1].lower() in PARAMETER_SECTIONS


def end_of_block(lines, start):
    """Returns the first line at or after `start` that is neither blank nor indented."""
    position = start
    while position < len(lines) and (not lines[position].strip() or indent(lines[position]) > 0):
        position += 1
    while position > start and not lines[position - 1].strip():
        position -= 1
    return position


def google_parameters(block):
    """Reads the lines below `Args:`."""
    margin = min(indent(line) for line in block if line.strip())
    parameters, current = {}, None
    for line in block:
        match = re.match(GOOGLE_PARAMETER, line[margin:]) if indent(line) == margin else None
        if match:
            current = match.group("names").lstrip("*")
            parameters[current] = [match.group("text") or ""]
        elif current is not None:
            parameters[current].append(line.strip())
    return {name: flowing(texts) for name, texts in parameters.items()}


def take_numpy(lines):
    """Takes an underlined `Parameters` section out; returns the other lines and the parameters."""
    kept, parameters, position = [], {}, 0
    while position < len(lines):
        if numpy_title(lines, position) in PARAMETER_SECTIONS:
            end = end_of_numpy_section(lines, position + 2)
            parameters.update(numpy_parameters(lines[position + 2 : end]))
        else:
            kept.append(lines[position])
            end = position + 1
        position = end
    return kept, parameters


def numpy_title(lines, position):
    """Returns the lower-case title of the section that starts here, or an empty string."""
    underline = lines[position + 1].strip() if position + 1 < len(lines) else ""
    return lines[position].strip().lower() if len(underline) >= 3 and not underline.strip("-") else ""


def end_of_numpy_section(lines, start):
    """Returns where the next underlined title (or the docstring's end) is."""
    position = start
    while position < len(lines) and not (lines[position].strip() and numpy_title(lines, position)):
        position += 1
    return position


def numpy_parameters(block):
    """Reads the lines below an underlined `Parameters`: `name : type`, its text indented."""
    parameters, current = {}, []
    for line in block:
        match = re.match(NUMPY_PARAMETER, line)
        if match:
            current = [name.strip().lstrip("*") for name in match.group("names").split(",")]
            parameters.update((name, []) for name in current)
        else:
            for name in current:
                parameters[name].append(line.strip())
    return {name: flowing(texts) for name, texts in parameters.items()}


def take_sphinx(lines):
    """Takes `:param name:` fields out; returns the other lines and the parameters."""
    kept, parameters, position = [], {}, 0
    while position < len(lines):
        line = lines[position].strip()
        match = re.match(SPHINX_FIELD, line) if line.startswith(":") else None
        tag = match.group("tag").lower() if match else ""
        if tag not in SPHINX_PARAMETER_TAGS and tag not in SPHINX_TYPE_TAGS:
            kept.append(lines[position])
            position += 1
            continue
        end = end_of_field(lines, position + 1, indent(lines[position]))
        subject = (match.group("subject") or "").split()
        if tag in SPHINX_PARAMETER_TAGS and subject:
            texts = [match.group("text") or ""] + [line.strip() for line in lines[position + 1 : end]]
            parameters[subject[-1].lstrip("*")] = flowing(texts)
        position = end
    return kept, parameters


def end_of_field(lines, start, margin):
    """Returns the first line that does not continue a Sphinx field."""
    position = start
    while position < len(lines) and lines[position].strip() and indent(lines[position]) > margin:
        position += 1
    return position


def indent(line):
    """Counts the spaces a line begins with."""
    return len(line) - len(line.lstrip())


def flowing(lines):
    """Joins lines of one description; a blank line stays a paragraph break."""
    return "\n".join(line.strip() for line in lines).strip()


def joined(lines):
    """Joins the lines that are left, without the gaps that taken sections leave."""
    kept = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip())
    return "\n".join(kept).strip()
