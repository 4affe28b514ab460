import ast
import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from webrag.concurrency import all_of, ended, settled, within

ROOT = Path(__file__).parents[2]
PACKAGES = ("webrag", "node_parsers", "postprocessors")

# Who starts a task outside a group, and keeps it: where it is cancelled and waited for.
OWNERS = {
    "webrag/corpus/acquirer.py": "a flight, ended by the last caller who leaves",
    "webrag/orchestration/links/expander.py": "the table of running fetches, ended with the round",
    "webrag/mcp_server/http_server.py": "the server, which ends when the task has",
    "webrag/mcp_server/progress.py": "the reporter, whose flush waits",
    "webrag/mcp_server/runtime.py": "the runtime, whose close waits",
    "webrag/mcp_server/server.py": "nobody: the task ends the process",
    "webrag/mcp_server/tools.py": "the call, which cancels its heartbeat",
}


class Work:
    """Pieces of work and how each of them ended."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}

    async def waits(self, name: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # What a piece of work still does when it is cancelled is waited for.
            await asyncio.sleep(0)
            self.ends[name] = "cancelled"
            raise
        return name

    async def fails(self, error: Exception) -> str:
        await asyncio.sleep(0)
        raise error


async def gives(value: int, turns: int) -> int:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


async def test_results_come_in_the_order_of_the_works() -> None:
    assert await all_of(gives(n, turns=5 - n) for n in range(5)) == [0, 1, 2, 3, 4]


async def test_nothing_to_do_gives_nothing() -> None:
    assert await all_of([]) == []


async def test_error_cancels_the_others_and_is_raised_once_they_are_over() -> None:
    work, error = Work(), ValueError("broken")

    with pytest.raises(ValueError, match="broken") as caught:
        await all_of([work.waits("a"), work.fails(error), work.waits("b")])

    assert caught.value is error
    assert work.ends == {"a": "cancelled", "b": "cancelled"}


async def test_error_keeps_the_cause_it_came_with() -> None:
    async def fails() -> None:
        raise ValueError("above") from OSError("below")

    with pytest.raises(ValueError, match="above") as caught:
        await all_of([fails()])

    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_timeout_after_a_failure_is_still_a_timeout(turns: int) -> None:
    async def fails() -> None:
        await gives(0, turns)
        raise ValueError("broken")

    async def in_time() -> None:
        async with asyncio.timeout(0.05):
            with suppress(ValueError):
                await all_of([fails(), gives(0, turns=2)])
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await in_time()


async def test_cancelling_the_caller_cancels_the_works() -> None:
    work = Work()
    caller = asyncio.create_task(run(all_of([work.waits("a"), work.waits("b")])))
    await asyncio.sleep(0.01)
    caller.cancel()
    await asyncio.wait([caller])

    assert caller.cancelled()
    assert work.ends == {"a": "cancelled", "b": "cancelled"}


async def test_cancellation_wins_over_the_errors_it_brings_about() -> None:
    async def turns_it_into_an_error() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("interrupted") from None

    caller = asyncio.create_task(run(all_of([turns_it_into_an_error()])))
    await asyncio.sleep(0.01)
    caller.cancel()
    await asyncio.wait([caller])

    assert caller.cancelled()


async def run(work: Awaitable[object]) -> None:
    await work


async def test_time_that_is_over_ends_the_block_without_an_error() -> None:
    work = Work()

    async with within(0.01):
        await all_of([work.waits("a")])

    assert work.ends == {"a": "cancelled"}


async def test_timeout_of_the_work_itself_is_an_error() -> None:
    with pytest.raises(TimeoutError, match="its own"):
        async with within(60):
            raise TimeoutError("its own")


@pytest.mark.parametrize("wait", [ended, settled])
async def test_waiting_for_the_end_goes_on_when_it_is_cancelled_meanwhile(
    wait: Callable[[list[asyncio.Task[None]]], Awaitable[None]],
) -> None:
    over, goes_on = [], asyncio.Event()

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await goes_on.wait()
        await goes_on.wait()
        over.append(True)

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(run(wait([task])))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.wait([waiting])

    assert (over, waiting.cancelled()) == ([True], True)


def calls() -> Iterator[tuple[str, str, int]]:
    """File, name and line of everything that could start a task in the product."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            groups = names_of_groups(tree)
            for node in ast.walk(tree):
                name = started_by(node, groups)
                if name is not None:
                    yield path.relative_to(ROOT).as_posix(), name, node.lineno


def names_of_groups(tree: ast.AST) -> set[str]:
    return {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name)
        and "TaskGroup" in ast.unparse(item.context_expr)
    }


def started_by(node: ast.AST, groups: set[str]) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    called = ast.unparse(node.func)
    name = called.rpartition(".")[2]
    if name not in ("gather", "create_task", "ensure_future"):
        return None
    return None if called.rpartition(".")[0] in groups else name


def test_nothing_is_gathered_without_a_group() -> None:
    found = [call for call in calls() if call[1] != "create_task"]

    assert found == [], "use webrag.concurrency.all_of"


def test_every_task_outside_a_group_has_an_owner() -> None:
    assert {file for file, name, _ in calls() if name == "create_task"} == set(OWNERS)
