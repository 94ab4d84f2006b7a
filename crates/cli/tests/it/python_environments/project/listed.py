"""A list of functions, with every kind of parameter, and one that returns a picture."""

from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Literal, Optional, TypedDict, Union

from pydantic import BaseModel, Field
from pydantic_ai import BinaryContent


class Color(Enum):
    """Colors."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Leg(TypedDict):
    """A leg of a trip."""

    to: str
    miles: float


class Box(BaseModel):
    """A box around points."""

    corners: list[Point]
    color: Color = Color.RED


def add(a: int, b: int = 2) -> int:
    """Adds two numbers.

    Args:
        a: The first one.
        b: The second one.
    """
    return a + b


def paint(color: Color, finish: Literal["matt", "gloss"] = "matt", at: Optional[Point] = None) -> dict:
    """Paints a point."""
    return {"color": color, "finish": finish, "at": at}


def shape(box: Box, scale: Annotated[int, Field(ge=1, le=9, description="How much larger")] = 1) -> Box:
    """Scales a box."""
    return Box(corners=[Point(p.x * scale, p.y * scale, p.tags) for p in box.corners], color=box.color)


async def trip(legs: list[Leg], stops: Union[int, str, None] = None, extra: dict[str, float] = {}) -> dict:
    """Adds up a trip."""
    return {"miles": sum(leg["miles"] for leg in legs), "stops": stops, "extra": sum(extra.values())}


def when_(day: date, pair: tuple[int, str] = (1, "a")) -> list:
    """Says which day a day is."""
    return [day.isoformat(), day.weekday(), pair]


def picture() -> list:
    """Returns a picture and a word about it."""
    return ["a dot", BinaryContent(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")]


TOOLS = [add, paint, shape, trip, when_, picture]
