"""Stands in for pydantic where it is not installed: models, fields and checks as tools use them.

JSON Schemas and checks are those that llm-do has for all Python types. It is stricter than the
real package in one point: values are not converted between kinds ("5" is no integer).
"""

from .config import ConfigDict
from .errors import PydanticSchemaGenerationError, PydanticUserError, ValidationError
from .fields import Field, PrivateAttr, computed_field
from .functional_serializers import field_serializer
from .functional_validators import (
    AfterValidator,
    BeforeValidator,
    PlainValidator,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
    validator,
)
from .main import BaseModel
from .type_adapter import TypeAdapter
from .types import (
    AnyHttpUrl,
    AnyUrl,
    EmailStr,
    HttpUrl,
    NegativeFloat,
    NegativeInt,
    NonNegativeFloat,
    NonNegativeInt,
    NonPositiveFloat,
    NonPositiveInt,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    confloat,
    conint,
    conlist,
    constr,
)

LLM_DO_FALLBACK = True
VERSION = __version__ = "2.0+llm-do"

__all__ = [
    "AfterValidator",
    "AnyHttpUrl",
    "AnyUrl",
    "BaseModel",
    "BeforeValidator",
    "ConfigDict",
    "EmailStr",
    "Field",
    "HttpUrl",
    "NegativeFloat",
    "NegativeInt",
    "NonNegativeFloat",
    "NonNegativeInt",
    "NonPositiveFloat",
    "NonPositiveInt",
    "PlainValidator",
    "PositiveFloat",
    "PositiveInt",
    "PrivateAttr",
    "PydanticSchemaGenerationError",
    "PydanticUserError",
    "SecretStr",
    "StrictBool",
    "StrictFloat",
    "StrictInt",
    "StrictStr",
    "StringConstraints",
    "TypeAdapter",
    "ValidationError",
    "ValidationInfo",
    "WrapValidator",
    "computed_field",
    "confloat",
    "conint",
    "conlist",
    "constr",
    "field_serializer",
    "field_validator",
    "model_validator",
    "validator",
]


def __getattr__(name):
    """Says what is missing, and what would help."""
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        "module 'pydantic' has no %r here: the real pydantic is not installed for this Python" % name
    )
