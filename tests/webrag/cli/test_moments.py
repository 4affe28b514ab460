from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from webrag.cli.options import parse_age, parse_moment

HERE: Any = (click.Context(click.Command("x")), click.Option(["--x"]))


def test_an_age_is_a_number_and_a_unit() -> None:
    assert parse_age(*HERE, "2w") == timedelta(days=14)
    assert parse_age(*HERE, None) is None


@pytest.mark.parametrize(
    "value", ["30", "d", "-1d", "1.5h", "1y", "9999999d", "0s", "0d", "00w", "nand", "-0s", ""]
)
def test_anything_else_is_no_age(value: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 30d"):
        parse_age(*HERE, value)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-05-31", datetime(2026, 5, 31, tzinfo=UTC)),
        ("2026-05-31T10:00", datetime(2026, 5, 31, 10, tzinfo=UTC)),
        ("2026-05-31T10:00+02:00", datetime(2026, 5, 31, 8, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_date_is_a_moment_in_utc(value: str | None, moment: datetime | None) -> None:
    assert parse_moment(*HERE, value) == moment


def test_an_age_is_counted_back_from_now() -> None:
    moment = parse_moment(*HERE, "1h")

    assert moment is not None
    assert abs(datetime.now(UTC) - timedelta(hours=1) - moment) < timedelta(seconds=5)


def test_anything_else_is_no_moment() -> None:
    with pytest.raises(click.BadParameter, match="such as 2026-05-31"):
        parse_moment(*HERE, "last week")
