"""Scripts as users write them: each runs, and asserts what it was written for."""

import asyncio
import inspect
import runpy
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from webrag import WebRAG
from webrag.settings import Settings, load_settings

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
PAGE = """<title>Limits</title><main><h1>Limits</h1><p>The server has several limits.</p>
<h2>Connections</h2><p>An idle connection stays open for 95 seconds. A busy one stays open.</p>
</main>"""


@pytest.fixture
def settings(postgres_dir: Path) -> Iterator[Settings]:
    name = f"test_{uuid.uuid4().hex[:16]}"
    given = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])

    yield given
    asyncio.run(WebRAG(given).drop_collection())


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # agents
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_does_what_it_was_written_for(
    path: Path, settings: Settings, static_site: Any
) -> None:
    main = runpy.run_path(str(path))["main"]

    ended = main(settings, f"{static_site({'/limits.html': PAGE})}/limits.html")
    if inspect.iscoroutine(ended):
        asyncio.run(ended)
