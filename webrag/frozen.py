"""The base of the models that rooms hand to each other."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Refuses changes and fields that it does not declare."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def shared_fields(model: type[BaseModel], source: object, *others: str) -> dict[str, Any]:
    """What an object has under the names of a model's fields, to make the model of.

    Args:
        model: Whose fields are wanted.
        source: Has some of them as attributes.
        others: Fields that are made of something else.
    """
    names = model.model_fields.keys() - set(others)
    return {name: getattr(source, name) for name in names if hasattr(source, name)}
