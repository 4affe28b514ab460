import asyncio
from typing import Any

import pytest

from webrag.errors import InputError
from webrag.web.runs import Runs, WatchedRun


async def told_by(run: WatchedRun) -> list[tuple[str, Any]]:
    return [event async for event in run.followed()]


async def test_everybody_who_watches_is_told_everything_also_who_comes_late() -> None:
    going = asyncio.Event()

    async def work(run: WatchedRun) -> str:
        run.tell("line", text="first")
        await going.wait()
        run.tell("line", text="second")
        return "result"

    run = Runs().start("answer", {}, work)
    early = asyncio.create_task(told_by(run))
    await asyncio.sleep(0)
    going.set()

    expected = [
        ("line", {"text": "first"}),
        ("line", {"text": "second"}),
        ("end", {"state": "done"}),
    ]
    assert await early == expected
    assert await told_by(run) == expected
    assert run.result == "result"


async def test_stopped_run_has_cancelled_its_work() -> None:
    cancelled = asyncio.Event()

    async def work(_run: WatchedRun) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    runs = Runs()
    run = runs.start("site", {}, work)
    await asyncio.sleep(0)
    await runs.stop(run)

    assert run.state == "stopped"
    assert cancelled.is_set()


@pytest.mark.parametrize(
    ("error", "said"),
    [(InputError("Give a number."), "Give a number."), (ValueError("x"), "failed unexpectedly")],
)
async def test_failure_of_any_kind_ends_in_a_sentence(error: Exception, said: str) -> None:
    async def work(_run: WatchedRun) -> None:
        raise error

    run = Runs().start("answer", {}, work)
    await told_by(run)

    assert run.state == "failed"
    assert said in str(run.error)


async def test_run_is_kept_from_other_callers() -> None:
    async def work(_run: WatchedRun) -> None:
        pass

    runs = Runs()
    run = runs.start("answer", {}, work, owner="ada")

    assert runs.get(run.id, "ada") is run
    assert runs.get(run.id, "eve") is None
    assert runs.latest("answer", owner="eve") == []
    await told_by(run)


async def test_more_than_a_server_does_at_once_is_refused_until_one_ends() -> None:
    async def work(_run: WatchedRun) -> None:
        await asyncio.Event().wait()

    runs = Runs()
    started = [runs.start("answer", {}, work) for _ in range(20)]
    with pytest.raises(InputError, match="wait for one, or stop one"):
        runs.start("answer", {}, work)
    await runs.stop(started[0])
    started.append(runs.start("answer", {}, work))

    for run in started:
        await runs.stop(run)


async def test_owner_who_does_much_takes_no_turn_from_another() -> None:
    async def work(_run: WatchedRun) -> None:
        await asyncio.Event().wait()

    runs = Runs()
    started = [runs.start("answer", {}, work, owner="ada") for _ in range(20)]
    started.append(runs.start("answer", {}, work, owner="eve"))

    assert runs.latest("answer", owner="eve") == [started[-1]]
    for run in started:
        await runs.stop(run)


async def test_all_owners_together_are_bounded() -> None:
    async def work(_run: WatchedRun) -> None:
        await asyncio.Event().wait()

    runs = Runs()
    started = [runs.start("answer", {}, work, owner=f"{n % 50}") for n in range(100)]
    with pytest.raises(InputError, match="as much as it can"):
        runs.start("answer", {}, work, owner="eve")

    for run in started:
        await runs.stop(run)


async def test_owner_who_asks_much_loses_old_runs_and_nobody_else_does() -> None:
    async def work(_run: WatchedRun) -> None:
        pass

    runs = Runs()
    kept = runs.start("answer", {}, work, owner="eve")
    await told_by(kept)
    for _ in range(300):
        await told_by(runs.start("answer", {}, work, owner="ada"))

    assert runs.latest("answer", owner="eve") == [kept]
    assert len(runs.latest("answer", owner="ada")) == 200


async def test_latest_progress_alone_is_told_and_old_lines_are_dropped() -> None:
    async def work(run: WatchedRun) -> None:
        for i in range(1000):
            run.tell("line", text=str(i))
            run.tell_progress(f"{i} done")

    run = Runs().start("site", {}, work)
    assert run.task is not None
    await run.task
    told = await told_by(run)

    assert told[-2:] == [("progress", {"text": "999 done"}), ("end", {"state": "done"})]
    assert [values["text"] for name, values in told if name == "line"][-1] == "999"
    assert len(told) < 500
