from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webrag.errors import AccessDeniedError
from webrag.mcp_server.authorization.callers import (
    CallerUsage,
    CallLimits,
    StaticTokens,
    parse_tokens,
)
from webrag.mcp_server.authorization.gate import CallerEntry, Memories
from webrag.mcp_server.runtime import Runtime


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
    usage = CallerUsage(CallLimits(), now=clock)

    for _ in range(1000):
        usage.count_call()
        assert usage.refusal() is None


def test_calls_of_a_minute_are_limited_and_said_to_be_free_when_the_oldest_is_a_minute_old(
    clock: Clock,
) -> None:
    usage = CallerUsage(CallLimits(calls_per_minute=2), now=clock)
    usage.count_call()
    clock.pass_by(20)
    usage.count_call()
    clock.pass_by(10)

    with pytest.raises(AccessDeniedError, match=r"limit of 2 calls a minute .* again in 30 s\."):
        usage.count_call()
    clock.pass_by(30)
    usage.count_call()


def test_refused_calls_do_not_prolong_the_wait(clock: Clock) -> None:
    usage = CallerUsage(CallLimits(calls_per_minute=1), now=clock)
    usage.count_call()
    for _ in range(5):
        clock.pass_by(11)
        with pytest.raises(AccessDeniedError):
            usage.count_call()
    clock.pass_by(5)

    usage.count_call()


def test_use_of_a_caller_may_be_forgotten_a_day_and_a_minute_later(clock: Clock) -> None:
    usage = CallerUsage(CallLimits(calls_per_minute=2, calls_per_day=5), now=clock)
    usage.count_call()
    assert not usage.is_idle

    clock.pass_by(2.5 * 3600)

    assert usage.is_idle


def test_calls_of_a_day_are_free_again_at_midnight(clock: Clock) -> None:
    usage = CallerUsage(CallLimits(calls_per_day=1), now=clock)
    usage.count_call()

    with pytest.raises(AccessDeniedError, match=r"1 calls a day .* after 00:00 UTC, in 2 h 30 min"):
        usage.count_call()
    clock.pass_by(3 * 3600)
    usage.count_call()


def test_a_minute_goes_on_over_midnight(clock: Clock) -> None:
    clock.time = datetime(2026, 11, 22, 23, 59, 50, tzinfo=UTC)
    usage = CallerUsage(CallLimits(calls_per_minute=1), now=clock)
    usage.count_call()
    clock.pass_by(20)

    with pytest.raises(AccessDeniedError, match="again in 40 s"):
        usage.count_call()


async def test_callers_are_counted_apart(load: Any) -> None:
    memories = Memories(lambda _name: load, most_open=1)
    entry = CallerEntry(Runtime(load), memories, CallLimits(calls_per_minute=1), None)
    lines = [f"{name} read {name * 16}" for name in ("alice", "bob")]
    tokens = StaticTokens(parse_tokens("\n".join(lines)))
    callers = [await tokens.caller(name * 16) for name in ("alice", "bob")]

    for caller in callers:
        async with entry.admitted(caller, None):
            pass
    with pytest.raises(AccessDeniedError, match="limit of 1 calls a minute"):
        async with entry.admitted(callers[0], None):
            pass


def test_pages_of_a_day_are_limited(clock: Clock) -> None:
    meter = CallerUsage(CallLimits(pages_per_day=2), now=clock)

    answers = [meter.refusal() for _ in range(3)]

    assert answers[:2] == [None, None]
    assert "limit of 2 pages a day" in (answers[2] or "")


def test_bytes_of_a_day_are_limited_from_the_page_on_that_passes_the_limit(clock: Clock) -> None:
    meter = CallerUsage(CallLimits(bytes_per_day=1000), now=clock)

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
