"""Classes of the standard library that are written as strings: dates, paths, identifiers."""

import re

from . import shapes

DURATION = (
    r"^(?P<sign>[+-])?P(?:(?P<weeks>[\d.]+)W)?(?:(?P<days>[\d.]+)D)?"
    r"(?:T(?:(?P<hours>[\d.]+)H)?(?:(?P<minutes>[\d.]+)M)?(?:(?P<seconds>[\d.]+)S)?)?$"
)


def text_shape(cls):
    """Returns the shape of a class that is written as a string, or None if it is none."""
    maker = MAKERS.get((cls.__module__.partition(".")[0], cls.__name__))
    return maker(cls) if maker else None


def moment(cls):
    """Returns the shape of a datetime."""
    return shapes.Text(
        cls, "date-time", lambda text: cls.fromisoformat(universal(text)), "a valid datetime", "datetime_type"
    )


def day(cls):
    """Returns the shape of a date."""
    return shapes.Text(cls, "date", cls.fromisoformat, "a valid date", "date_type")


def time_of_day(cls):
    """Returns the shape of a time."""
    return shapes.Text(
        cls, "time", lambda text: cls.fromisoformat(universal(text)), "a valid time", "time_type"
    )


def universal(text):
    """Writes the `Z` of universal time as Python 3.10 reads it."""
    return text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text


def duration(cls):
    """Returns the shape of a timedelta: `P1DT2H30M`."""

    def parse(text):
        match = re.match(DURATION, text)
        parts = {
            key: float(part)
            for key, part in (match.groupdict() if match else {}).items()
            if part and key != "sign"
        }
        if not parts:
            raise ValueError(text)
        return cls(**parts) * (-1 if match.group("sign") == "-" else 1)

    return shapes.Text(cls, "duration", parse, "a valid timedelta", "time_delta_type")


def identifier(cls):
    """Returns the shape of a UUID."""
    return shapes.Text(cls, "uuid", cls, "a valid UUID", "uuid_type")


def path(cls):
    """Returns the shape of a path."""
    from pathlib import Path

    made = Path if cls.__name__ == "PathLike" else cls
    return shapes.Text(made, "path", made, "a valid path", "path_type")


def decimal(cls):
    """Returns the shape of a Decimal: a number, or a string where digits must not be lost."""
    return shapes.Text(cls, "decimal", cls, "a valid decimal", "decimal_type", numbers=True)


def binary(cls):
    """Returns the shape of bytes: the text in UTF-8."""
    return shapes.Text(cls, "binary", lambda text: cls(text.encode()), "valid bytes", "bytes_type")


def address(form):
    """Returns the maker of the shape of a network address."""
    return lambda cls: shapes.Text(cls, form, cls, "a valid %s address" % form, "ip_any_address")


def expression(cls):
    """Returns the shape of a compiled pattern."""

    def parse(text):
        try:
            return re.compile(text)
        except re.error as problem:
            raise ValueError(str(problem)) from None

    return shapes.Text(cls, "regex", parse, "a valid pattern", "pattern_type")


MAKERS = {
    ("datetime", "datetime"): moment,
    ("datetime", "date"): day,
    ("datetime", "time"): time_of_day,
    ("datetime", "timedelta"): duration,
    ("uuid", "UUID"): identifier,
    ("pathlib", "Path"): path,
    ("pathlib", "PurePath"): path,
    ("pathlib", "PosixPath"): path,
    ("pathlib", "PurePosixPath"): path,
    ("os", "PathLike"): path,
    ("decimal", "Decimal"): decimal,
    ("builtins", "bytes"): binary,
    ("builtins", "bytearray"): binary,
    ("ipaddress", "IPv4Address"): address("ipv4"),
    ("ipaddress", "IPv6Address"): address("ipv6"),
    ("re", "Pattern"): expression,
}
