import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from llama_index.postprocessor.webrag.service_calls import (
    RetryPolicy,
    client_options,
    session_proxies,
)


def policy(*, seconds: float = 30.0, **changes: Any) -> RetryPolicy:
    given: dict[str, Any] = {
        "attempts": 3,
        "backoff_s": 0.001,
        "deadline": time.monotonic() + seconds,
        "is_passing": lambda error: isinstance(error, ConnectionError),
    }
    return RetryPolicy(**given | changes)


class Service:
    """Fails as it is told, then works."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return "works"

    async def later(self) -> str:
        return self()


async def test_passing_failures_are_repeated_until_it_works() -> None:
    service = Service(ConnectionError(), ConnectionError())

    assert (await policy().run(service.later), service.asked) == ("works", 3)


def test_synchronous_callers_get_the_same_policy() -> None:
    service = Service(ConnectionError(), ConnectionError())

    assert (policy().run_sync(service), service.asked) == ("works", 3)


@pytest.mark.parametrize(
    ("failures", "asked"),
    [([ConnectionError("last")] * 9, 3), ([ValueError("last")], 1)],
    ids=["too many", "not passing"],
)
async def test_last_failure_is_raised_as_it_is(failures: Any, asked: int) -> None:
    service = Service(*failures)

    with pytest.raises((ConnectionError, ValueError), match="last"):
        await policy().run(service.later)

    assert service.asked == asked


async def test_pause_that_does_not_fit_the_deadline_is_not_begun() -> None:
    service = Service(ConnectionError())
    started = time.monotonic()

    with pytest.raises(ConnectionError):
        await policy(asked_pause_s=lambda _: 60.0).run(service.later)

    assert (service.asked, time.monotonic() - started < 5) == (1, True)


async def test_pause_is_at_least_what_the_service_asks_for() -> None:
    pauses: list[float] = []
    asking = policy(
        asked_pause_s=lambda _: 0.05, on_pause=lambda _, seconds: pauses.append(seconds)
    )

    await asking.run(Service(ConnectionError(), ConnectionError()).later)

    assert len(pauses) == 2
    assert all(0.05 <= pause < 0.06 for pause in pauses)


async def test_cancelling_ends_the_pause() -> None:
    service = Service(ConnectionError())
    task = asyncio.create_task(policy(asked_pause_s=lambda _: 20.0).run(service.later))
    while not service.asked:
        await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_environment_is_heeded_only_when_that_is_asked_for() -> None:
    assert client_options(None) == {"trust_env": False}
    assert client_options("environment") == {"trust_env": True}
    assert client_options("http://p.test")["trust_env"] is False
    assert session_proxies(None) == (False, {})
    assert session_proxies("environment") == (True, {})
    assert session_proxies("http://p.test")[1]["https"] == "http://p.test"


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("LocalRerank", []),
        ("CohereRerank", ["cohere"]),
        ("ZeroEntropyRerank", ["zeroentropy"]),
    ],
)
def test_package_of_a_service_is_loaded_only_for_its_reranker(name: str, loaded: list[str]) -> None:
    code = (
        f"import sys; from llama_index.postprocessor.webrag import {name};"
        "print([m for m in ('cohere', 'zeroentropy') if m in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str(loaded)
