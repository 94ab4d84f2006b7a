"""Types with limits of their own."""

import typing

from .fields import Field

PositiveInt = typing.Annotated[int, Field(gt=0)]
NegativeInt = typing.Annotated[int, Field(lt=0)]
NonNegativeInt = typing.Annotated[int, Field(ge=0)]
NonPositiveInt = typing.Annotated[int, Field(le=0)]
PositiveFloat = typing.Annotated[float, Field(gt=0)]
NegativeFloat = typing.Annotated[float, Field(lt=0)]
NonNegativeFloat = typing.Annotated[float, Field(ge=0)]
NonPositiveFloat = typing.Annotated[float, Field(le=0)]
StrictStr = str
StrictInt = int
StrictFloat = float
StrictBool = bool
AnyUrl = typing.Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:")]
AnyHttpUrl = HttpUrl = typing.Annotated[str, Field(pattern=r"^https?://[^\s/]")]
EmailStr = typing.Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")]


class StringConstraints:
    """Limits of a text, and how it is tidied before they are checked."""

    def __init__(
        self,
        *,
        strip_whitespace=None,
        to_upper=None,
        to_lower=None,
        strict=None,
        min_length=None,
        max_length=None,
        pattern=None,
    ):
        self.strip_whitespace = strip_whitespace
        self.to_upper = to_upper
        self.to_lower = to_lower
        self.min_length = min_length
        self.max_length = max_length
        self.pattern = pattern

    def llm_do_around(self, shape):
        """Returns a shape that tidies the text first."""
        from .functional_validators import Checked

        return Checked(shape, self.tidied, "before")

    def tidied(self, text):
        """Returns the text as the limits want it."""
        if not isinstance(text, str):
            return text
        text = text.strip() if self.strip_whitespace else text
        text = text.upper() if self.to_upper else text
        return text.lower() if self.to_lower else text


def constr(**limits):
    """Returns a text with limits."""
    return typing.Annotated[str, StringConstraints(**limits)]


def conint(*, strict=None, **limits):
    """Returns an integer with limits."""
    return typing.Annotated[int, Field(**limits)]


def confloat(*, strict=None, **limits):
    """Returns a number with limits."""
    return typing.Annotated[float, Field(**limits)]


def conlist(item_type, *, min_length=None, max_length=None):
    """Returns a list with limits."""
    return typing.Annotated[typing.List[item_type], Field(min_length=min_length, max_length=max_length)]


class SecretStr:
    """A text that is not shown."""

    def __init__(self, secret_value):
        self.secret = secret_value

    def get_secret_value(self):
        """Returns the text itself."""
        return self.secret

    def __str__(self):
        return "**********" if self.secret else ""

    def __repr__(self):
        return "SecretStr(%r)" % str(self)

    def __eq__(self, other):
        return isinstance(other, SecretStr) and self.secret == other.secret

    def __hash__(self):
        return hash(self.secret)

    def __len__(self):
        return len(self.secret)

    @classmethod
    def llm_do_shape(cls, builder, key):
        """Says that a secret is a string in JSON."""
        from llm_do_host.shapes import Text

        return Text(cls, "password", cls, "a valid string", "string_type")
