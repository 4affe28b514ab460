"""Twenty of the kills of benchmarks/kill_ingest.py, which explains them."""

import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

KILLS = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks/kill_ingest.py"))

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def examiner(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """One server of their own for all kills."""
    made = KILLS["Examiner"](tmp_path_factory.mktemp("kills"), seed=20)
    await made.start()
    yield made
    await made.close()


@pytest.mark.parametrize("is_update", [False, True], ids=["new", "update"])
@pytest.mark.parametrize("victim", KILLS["VICTIMS"])
@pytest.mark.parametrize("point", KILLS["POINTS"])
async def test_kill_loses_no_acknowledged_page_and_leaves_no_half_page(
    examiner: Any, point: str, victim: str, is_update: bool
) -> None:
    assert await examiner.kill(point, victim, is_update=is_update) == []


async def test_processes_that_write_one_page_at_once_leave_one_version(examiner: Any) -> None:
    assert await examiner.race(writers=5) == []
