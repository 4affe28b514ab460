"""The base of the models that rooms hand to each other, and value types they share."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class FrozenModel(BaseModel):
    """Refuses changes and fields that it does not declare."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LenientModel(BaseModel):
    """Refuses changes and passes over fields that it does not declare."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def shared_fields(model: type[BaseModel], source: object, *others: str) -> dict[str, Any]:
    """Collect what an object has under the names of a model's fields, to make the model of."""
    names = model.model_fields.keys() - set(others)
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


@dataclass(frozen=True)
class Allowed:
    """Says which values a type allows, as it reads after "must be"; for error messages."""

    text: str


Seconds = Annotated[
    float,
    Field(ge=0.1, le=3600, allow_inf_nan=False),
    Allowed("a number from 0.1 to 3600 seconds"),
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
