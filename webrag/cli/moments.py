"""Ages and dates as options give them."""

import re
from datetime import UTC, datetime, timedelta

import click

__all__ = ["parse_age", "parse_moment"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """Give the time span of an option such as `30d`."""
    if value is None:
        return None
    age = _age(value)
    if age is None:
        raise click.BadParameter(f"{value!r} is not a number with s, m, h, d or w, such as 30d.")
    if not age:
        raise click.BadParameter(f"{value!r} would mean every page; give an age such as 30d.")
    return age


def parse_moment(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> datetime | None:
    """Give the moment of an option: a date, or an age such as `7d`; UTC without a time zone."""
    if value is None:
        return None
    age = _age(value)
    if age is not None:
        return datetime.now(UTC) - age
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a date such as 2026-05-31 nor an age such as 7d."
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _age(value: str) -> timedelta | None:
    match = re.fullmatch(r"([0-9]{1,5})([smhdw])", value)
    return None if match is None else timedelta(**{_UNITS[match[2]]: int(match[1])})
