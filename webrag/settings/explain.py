"""Says in words what a setting must be, and which value was wrong. It reads no environment."""

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from webrag.configuration import Allowed
from webrag.settings.fields import mask_url
from webrag.settings.removed import REMOVED
from webrag.settings.variables import Variables, extra_of, is_secret, nearest

_MAX_SHOWN = 80


def allowed_text(info: FieldInfo) -> str:
    """What a value must be, as it reads after "must be"."""
    given = extra_of(info).get("allowed")
    if given:
        return str(given)
    kind, limits = _unwrap(info.annotation, list(info.metadata))
    for limit in limits:
        if isinstance(limit, Allowed):
            return limit.text
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    if kind is bool:
        return "true or false"
    noun = {int: "a whole number", float: "a number"}.get(kind, "text")
    return noun + _range_text(limits)


def _unwrap(kind: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    if get_origin(kind) is Annotated:
        inner, *more = get_args(kind)
        return _unwrap(inner, metadata + more)
    if get_origin(kind) in (Union, types.UnionType):
        return _unwrap(next(arg for arg in get_args(kind) if arg is not type(None)), metadata)
    return kind, [item for entry in metadata for item in getattr(entry, "metadata", [entry])]


def _range_text(limits: list[Any]) -> str:
    bounds = {
        name: getattr(limit, name)
        for limit in limits
        for name in ("ge", "gt", "le", "lt")
        if getattr(limit, name, None) is not None
    }
    low = f"from {bounds['ge']}" if "ge" in bounds else ""
    low = f"above {bounds['gt']}" if "gt" in bounds else low
    high = f"to {bounds['le']}" if "le" in bounds else ""
    if "gt" in bounds and high:
        high = f"and at most {bounds['le']}"
    return "".join(f" {part}" for part in (low, high) if part)


def explain(
    error: ValidationError,
    fields: dict[str, FieldInfo],
    given: dict[str, Any],
    variables: Variables,
) -> str:
    """One sentence that names each wrong variable, its value and what is allowed.

    Values of secrets are left out.

    Args:
        error: What validation found.
        fields: The settings by name.
        given: Values passed in the program, which win over variables.
        variables: Where the other values came from.
    """
    parts: dict[str, str] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=True):
        field, *inner = map(str, item["loc"] or ("",))
        if inner and "part" in extra_of(fields.get(field, FieldInfo())):
            part = ".".join((field, *inner))
            parts.setdefault(part, f"{part}: {item['msg'].removeprefix('Value error, ')}")
        elif field in fields:
            parts.setdefault(field, _wrong(field, fields[field], given, variables))
        elif field:
            parts.setdefault(field, f"{field} is not a setting{_hint(field, fields)}")
        else:
            parts.setdefault(field, str(item.get("ctx", {}).get("error", item["msg"])))
    said = "; ".join(parts.values())
    return said if said.endswith("?") else f"{said}."


def _hint(field: str, fields: dict[str, FieldInfo]) -> str:
    for name in (field.upper(), f"WEBRAG_{field.upper()}"):
        if name in REMOVED:
            return f": {REMOVED[name]}"
    meant = nearest(field, fields)
    return f"; did you mean {meant}?" if meant else ""


def _wrong(field: str, info: FieldInfo, given: dict[str, Any], variables: Variables) -> str:
    found = None if field in given else variables.find(field, info)
    name = found.name if found else field
    where = f" (in {found.file})" if found and found.file else ""
    allowed = allowed_text(info)
    if is_secret(info):
        return f"{name}{where} must be {allowed}; its value is not shown"
    shown = repr(mask_url(str(found.value if found else given.get(field))))
    if len(shown) > _MAX_SHOWN:
        shown = shown[: _MAX_SHOWN - 4] + "...'"
    return f"{name}{where} is {shown} but must be {allowed}"
