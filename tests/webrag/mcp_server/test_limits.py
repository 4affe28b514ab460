from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webrag.errors import AccessDeniedError
from webrag.mcp_server.authorization.callers import CallLimits, UsageLedger


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 11, 22, 21, 30, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_without_limits_nothing_is_refused(clock: Clock) -> None:
    ledger = UsageLedger(CallLimits(), now=clock)

    for _ in range(1000):
        ledger.count_call("alice")
        assert ledger.meter("alice").refusal() is None


def test_calls_of_a_minute_are_limited_and_said_to_be_free_when_the_oldest_is_a_minute_old(
    clock: Clock,
) -> None:
    ledger = UsageLedger(CallLimits(calls_per_minute=2), now=clock)
    ledger.count_call("alice")
    clock.pass_by(20)
    ledger.count_call("alice")
    clock.pass_by(10)

    with pytest.raises(AccessDeniedError, match=r"limit of 2 calls a minute .* again in 30 s\."):
        ledger.count_call("alice")
    clock.pass_by(30)
    ledger.count_call("alice")


def test_refused_calls_do_not_prolong_the_wait(clock: Clock) -> None:
    ledger = UsageLedger(CallLimits(calls_per_minute=1), now=clock)
    ledger.count_call("alice")
    for _ in range(5):
        clock.pass_by(11)
        with pytest.raises(AccessDeniedError):
            ledger.count_call("alice")
    clock.pass_by(5)

    ledger.count_call("alice")


def test_calls_of_a_day_are_free_again_at_midnight(clock: Clock) -> None:
    ledger = UsageLedger(CallLimits(calls_per_day=1), now=clock)
    ledger.count_call("alice")

    with pytest.raises(AccessDeniedError, match=r"1 calls a day .* after 00:00 UTC, in 2 h 30 min"):
        ledger.count_call("alice")
    clock.pass_by(3 * 3600)
    ledger.count_call("alice")


def test_a_minute_goes_on_over_midnight(clock: Clock) -> None:
    clock.time = datetime(2026, 11, 22, 23, 59, 50, tzinfo=UTC)
    ledger = UsageLedger(CallLimits(calls_per_minute=1), now=clock)
    ledger.count_call("alice")
    clock.pass_by(20)

    with pytest.raises(AccessDeniedError, match="again in 40 s"):
        ledger.count_call("alice")


def test_callers_are_counted_apart(clock: Clock) -> None:
    limits = CallLimits(calls_per_minute=1, calls_per_day=1, pages_per_day=1, bytes_per_day=1)
    ledger = UsageLedger(limits, now=clock)

    for caller in ("alice", "bob"):
        ledger.count_call(caller)
        assert ledger.meter(caller).refusal() is None
        ledger.meter(caller).received(10)


def test_pages_of_a_day_are_limited(clock: Clock) -> None:
    meter = UsageLedger(CallLimits(pages_per_day=2), now=clock).meter("alice")

    answers = [meter.refusal() for _ in range(3)]

    assert answers[:2] == [None, None]
    assert "limit of 2 pages a day" in (answers[2] or "")


def test_bytes_of_a_day_are_limited_from_the_page_on_that_passes_the_limit(clock: Clock) -> None:
    meter = UsageLedger(CallLimits(bytes_per_day=1000), now=clock).meter("alice")

    answers = []
    for _ in range(3):
        answers.append(meter.refusal())
        meter.received(600)

    assert answers[:2] == [None, None]
    assert "limit of 1,000 bytes of pages a day" in (answers[2] or "")


async def test_call_over_the_limit_gets_one_sentence_and_does_nothing(
    serving_mcp: Any, connecting: Any, load: Any, memory: Any
) -> None:
    async with (
        serving_mcp(load, mcp_calls_per_minute=2) as base,
        connecting(base) as client,
    ):
        results = [await client.call_tool("status", {}) for _ in range(3)]

    assert [each.is_error for each in results] == [False, False, True]
    said = results[2].content[0].text
    assert said.startswith("[ERROR]\nThe limit of 2 calls a minute is reached; try")
    assert said.count("\n") == 1
    assert len(memory.calls) == 2
