"""The blocks of docs/llamaindex.md, run one after the other as a reader would."""

import ast
import asyncio
import re
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from llama_index.core.instrumentation import get_dispatcher

from webrag import WebRAG
from webrag.settings import load_settings

PAGE = Path(__file__).parents[1] / "docs" / "llamaindex.md"
PUBLISHED = "https://docs.python.org/3/library/asyncio-task.html"
ASYNCIO = """<title>Coroutines and Tasks</title><main><h1>Coroutines and Tasks</h1>
<p>This page is about asyncio, its coroutines and its tasks.</p>
<h2>Timeouts</h2><p>A timeout is set with <code>asyncio.timeout(delay)</code>, which limits the time
that is spent waiting for something.</p>
<h2>Sleeping</h2><p>The call <code>asyncio.sleep(delay)</code> blocks for a while.</p></main>"""


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # agents
async def test_every_block_does_what_it_says(
    postgres_dir: Path, static_site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = static_site({"/library/asyncio-task.html": ASYNCIO})
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    program = "\n".join(blocks)
    assert program.count(PUBLISHED) == 1
    root = get_dispatcher()
    monkeypatch.setattr(root, "event_handlers", list(root.event_handlers))
    monkeypatch.setenv("WEBRAG_DATA_DIR", str(postgres_dir))
    monkeypatch.setenv("WEBRAG_ALLOW_HOSTS", "127.0.0.1")
    monkeypatch.setenv("WEBRAG_COLLECTION", f"test_{uuid.uuid4().hex[:16]}")

    code = compile(
        program.replace(PUBLISHED, f"{site}/library/asyncio-task.html"),
        str(PAGE),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
    )
    try:
        async with asyncio.timeout(100):
            await cast("Coroutine[Any, Any, None]", eval(code, {"__name__": "page"}))
    finally:
        await WebRAG(load_settings()).drop_collection()
