"""Models of what callers give: a value that is refused is named, with what is allowed."""

from operator import index
from typing import Any, Final, Self, SupportsIndex, get_args

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from webrag.argument_checks import shown_value
from webrag.errors import InputError
from webrag.frozen import Allowed, FrozenModel


class CheckedModel(FrozenModel):
    """Raises an `InputError` that names the field, its value and what is allowed."""

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(given)
        except ValidationError as error:
            raise InputError(refusal(error, cls)) from None


def refusal(error: ValidationError, model: type[BaseModel]) -> str:
    """Say which field is wrong first, its value, and what is allowed."""
    found = error.errors(include_url=False)[0]
    place = found["loc"]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)[1:]
    info = model.model_fields.get(str(place[0])) if place else None
    if found["type"] == "missing":
        return f"{name} is missing."
    if found["type"] == "extra_forbidden":
        return f"{name} is not known; known are {', '.join(model.model_fields)}."
    if not place and found["type"] in ("model_type", "dict_type", "model_attributes_type"):
        known = ", ".join(model.model_fields)
        return f"This is {shown_value(found['input'])}; it must be an object with {known}."
    if info is None or any(isinstance(part, str) for part in place[1:]):
        return f"{name or 'This'} is {shown_value(found['input'])}. {found['msg']}."
    is_list = found["type"] in ("list_type", "tuple_type")
    allowed = "a list" if is_list else allowed_text(info)
    if found["type"] == "less_than":
        allowed += f", below {found['ctx']['lt']:,}"
    entry = f" takes a list, whose entry {int(place[1]) + 1}" if len(place) > 1 else ""
    return f"{place[0]}{entry} is {shown_value(found['input'])}; it must be {allowed}."


_NOUNS: Final = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "object": "an object",
}


def allowed_text(info: FieldInfo) -> str:
    """Say what a value must be, as it reads after "must be"; for a list, each entry of it."""
    extra = info.json_schema_extra
    kind: Any = info.rebuild_annotation()
    if given := (isinstance(extra, dict) and extra.get("allowed")) or _said(kind):
        return str(given)
    schema = TypeAdapter(kind).json_schema()
    schema |= schema.get("anyOf", [{}])[0]
    if schema.get("type") == "array":
        schema |= {"type": "object", **schema["items"]}
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    bounds = [f"from {low}"] if low is not None else []
    bounds += [f"above {above}"] if above is not None else []
    if (high := schema.get("maximum")) is not None:
        bounds.append(f"to {high}" if above is None else f"and at most {high}")
    noun = (
        "text that is not empty"
        if schema.get("minLength")
        else _NOUNS.get(str(schema.get("type")), "text")
    )
    return " ".join([noun, *bounds])


def _said(kind: Any) -> str | None:
    """The text of the `Allowed` within a type."""
    if isinstance(kind, Allowed):
        return kind.text
    return next(filter(None, map(_said, get_args(kind))), None)


def whole_number(value: Any) -> Any:
    """Give numbers of other packages as whole ones of Python; true and false are none."""
    if isinstance(value, bool):
        raise ValueError("no number")  # noqa: TRY004  pydantic takes no TypeError
    return index(value) if isinstance(value, SupportsIndex) else value
