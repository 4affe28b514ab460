import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.kept_collections import KeptCollections
from webrag import WebRAG
from webrag.settings import load_settings

PAGES = {
    "index.html": """<html><head><title>Bakery</title></head><body><main><h1>Bakery handbook</h1>
<p>The bakery opens at six in the morning and closes when the last loaf is sold.</p>
<p>The leaven is described in <a href="leaven.html">keeping the rye leaven</a>.</p>
</main></body></html>""",
    "leaven.html": """<html><head><title>Leaven</title></head><body><main><h1>Leaven</h1>
<h2>Feeding</h2><p>Feed the rye leaven every twelve hours with equal parts of flour and water.</p>
<p>What the machines need is told in <a href="oven.html">cleaning the stone oven</a>.</p>
</main></body></html>""",
    "oven.html": """<html><head><title>Oven</title></head><body><main><h1>Stone oven</h1>
<h2>Cleaning</h2><p>Brush the ashes out of the stone oven on Mondays, before it is heated.</p>
</main></body></html>""",
}


@pytest.fixture
def site_folder(tmp_path: Path) -> Path:
    """Three pages; each links to the next."""
    folder = tmp_path / "bakery"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
async def rag(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[WebRAG]:
    """WebRAG, open on a collection of its own; sites on loopback may be read."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    settings = load_settings(data_dir=postgres_dir, collection=name).allowing(["127.0.0.1"])
    async with WebRAG(settings) as opened:
        yield opened
        await kept_collections.take_back_from(opened)
