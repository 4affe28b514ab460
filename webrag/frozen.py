"""The base of the models that rooms hand to each other."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Refuses changes and fields that it does not declare."""

    model_config = ConfigDict(frozen=True, extra="forbid")
