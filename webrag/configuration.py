"""The value types that the configurations of parts share. No I/O."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field


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
