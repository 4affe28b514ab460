import ast
import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

import pytest

from webrag.concurrency import (
    Threads,
    all_of,
    blocking,
    ended,
    in_background,
    loop_factory,
    run_blocking,
    run_in_loop,
    settled,
    within,
)

ROOT = Path(__file__).parents[2]
PACKAGES = ("webrag", "node_parsers", "postprocessors")

# Who starts a task outside a group, and keeps it: where it is cancelled and waited for.
OWNERS = {
    "webrag/corpus/acquirer.py": "a flight, ended by the last caller who leaves",
    "webrag/orchestration/engine.py": "the engine, whose close ends its runs",
    "webrag/orchestration/workflow.py": "the workflow, which the close of the engine waits for",
    "webrag/corpus/batches.py": "a batch, ended by the last caller who leaves",
    "webrag/orchestration/links/expander.py": "the table of running fetches, ended with the round",
    "webrag/ingestion/browser.py": "the drawing, which ends what is under way",
    "webrag/ingestion/logins/window.py": "the sign-in, which ends the opening of its page",
    "webrag/ingestion/git.py": "the clone, which waits for the program",
    "webrag/ingestion/firecrawl/client.py": "a gathering, ended by the last caller who leaves",
    "webrag/jobs/worker.py": "the worker, whose end waits for what it started",
    "webrag/mcp_server/authorization/gate.py": "the memories, whose close waits",
    "webrag/mcp_server/http_server.py": "the server, which ends when the task has",
    "webrag/mcp_server/runtime.py": "the runtime and its reporter, whose close and flush wait",
    "webrag/mcp_server/server.py": "nobody: the task ends the process",
    "webrag/mcp_server/tools.py": "the call, which cancels its heartbeat",
    "webrag/web/runs.py": "the table of runs, whose close waits",
}

# Who may use the threads of the event loop, in which names are looked up: for what is short or
# done once, never for text of a page.
BORROWERS = {
    "webrag/app.py": "imports packages and loads a model",
    "node_parsers/llama_index/node_parser/webrag/parent_child.py": "not for WebRAG",
    "webrag/cli/demo_command.py": "waits for another demo's lock, in a process of its own",
    "webrag/corpus/maintenance/transfer.py": "writes and reads a file, batch by batch",
    "webrag/embedding/served.py": "closes connections",
    "webrag/ingestion/browser.py": "looks at memory, some milliseconds",
    "webrag/ingestion/firecrawl/client.py": "imports a package",
    "webrag/ingestion/files/folder.py": "lists folders that the user named, within limits",
    "webrag/ingestion/git.py": "makes, measures, lists and removes folders, within limits",
    "webrag/postgres/database.py": "starts and stops the server",
    "webrag/postgres/server.py": "looks for the server",
    "webrag/web/corpus.py": "writes files for an export and from an upload",
    "webrag/wiring/components.py": "loads models",
    "webrag/wiring/embeddings.py": "loads a model",
    "webrag/wiring/open_telemetry.py": "sends what is left, with a limit",
    "webrag/process_pool/pool.py": "ends processes",
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


STARTERS = ("gather", "create_task", "ensure_future")


def modules_with(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """File and code of the product's modules that have any of these words."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if any(word in text for word in words):
                yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def calls() -> Iterator[tuple[str, str, int]]:
    """File, name and line of everything that could start a task in the product."""
    for file, tree in modules_with(*STARTERS):
        groups = names_of_groups(tree)
        for node in ast.walk(tree):
            name = started_by(node, groups)
            if name is not None:
                yield file, name, node.lineno


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
    if name not in STARTERS:
        return None
    return None if called.rpartition(".")[0] in groups else name


def test_nothing_is_gathered_without_a_group() -> None:
    found = [call for call in calls() if call[1] != "create_task"]

    assert found == [], "use webrag.concurrency.all_of"


def test_every_task_outside_a_group_has_an_owner() -> None:
    assert {file for file, name, _ in calls() if name == "create_task"} == set(OWNERS)


def borrowed(tree: ast.AST) -> bool:
    """Whether code uses the threads of the event loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            first = node.args[0] if node.args else None
            is_default = isinstance(first, ast.Constant) and first.value is None
            if called.endswith("run_in_executor") and is_default:
                return True
            if called in ("asyncio.to_thread", "to_thread"):
                return True
    return False


@pytest.mark.parametrize(
    "code", ["asyncio.to_thread(f)", "to_thread(f)", "loop.run_in_executor(None, f)"]
)
def test_use_of_the_event_loop_s_threads_is_found(code: str) -> None:
    assert borrowed(ast.parse(code))


def test_only_short_work_uses_the_threads_in_which_names_are_looked_up() -> None:
    possible = modules_with("run_in_executor", "to_thread")
    using = {file for file, tree in possible if borrowed(tree)}

    assert using == set(BORROWERS), "use webrag.concurrency.in_background"


MAKERS = {f"asyncio.{name}" for name in ("run", "Runner", "new_event_loop", "SelectorEventLoop")}


def test_only_one_place_makes_event_loops() -> None:
    making = {
        file
        for file, tree in modules_with("asyncio")
        if file.startswith("webrag/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in MAKERS
    }

    assert making == {"webrag/concurrency.py"}, "use webrag.concurrency.run_in_loop"


def test_loop_on_windows_is_one_that_the_driver_can_work_on() -> None:
    assert loop_factory("win32") is asyncio.SelectorEventLoop


def test_work_is_run_to_its_end_on_a_loop_of_its_own() -> None:
    async def work() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    loop = run_in_loop(work())

    assert loop.is_closed()
    assert run_in_loop(work()) is not loop


async def test_work_in_the_background_leaves_the_threads_of_names_alone() -> None:
    names = [await in_background(lambda: threading.current_thread().name) for _ in range(3)]

    assert all(name.startswith("webrag-work") for name in names)


async def test_threads_of_one_kind_that_never_return_hold_up_no_other() -> None:
    stuck, release = Threads("stuck", 1), threading.Event()
    held = [asyncio.create_task(stuck.run(release.wait, 60)) for _ in range(3)]
    try:
        async with asyncio.timeout(30):
            assert await in_background(len, "text") == 4
    finally:
        release.set()
        await asyncio.gather(*held)


async def test_a_caller_with_a_time_limit_gets_away_from_work_that_goes_on() -> None:
    release = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await in_background(release.wait, 60)
        assert not release.is_set()
    finally:
        release.set()


async def _running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def test_blocking_callers_share_a_loop_that_is_not_the_running_one() -> None:
    shared = run_blocking(_running_loop())

    assert shared is not asyncio.get_running_loop()
    assert await asyncio.to_thread(run_blocking, _running_loop()) is shared


def test_error_of_work_that_is_waited_for_is_the_callers() -> None:
    async def fail() -> None:
        raise KeyError("cause")

    with pytest.raises(KeyError, match="cause"):
        run_blocking(fail())


def test_work_that_is_waited_for_sees_the_callers_context() -> None:
    async def seen() -> str:
        return _WHO.get()

    _WHO.set("caller")

    assert run_blocking(seen()) == "caller"


_WHO: ContextVar[str] = ContextVar("who", default="nobody")

_FORKING = """
import asyncio, os
from webrag.concurrency import run_blocking

run_blocking(asyncio.sleep(0))
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(run_blocking(asyncio.sleep(0, 7)))
"""


def test_a_forked_process_waits_for_work_in_a_loop_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", _FORKING], timeout=60, check=False)

    assert ended.returncode == 7


class Slow:
    async def awork(self, number: int) -> int:
        await asyncio.sleep(0)
        return number

    work = blocking(awork)


class Slower(Slow):
    async def awork(self, number: int) -> int:
        return await super().awork(number) + 1


async def test_synchronous_twin_does_what_the_class_overrides() -> None:
    assert (Slow().work(1), Slower().work(number=1)) == (1, 2)
