"""What a user sees when the disk of the embedded database is full, and what is left afterwards.

Usage: python benchmarks/full_disk_check.py FOLDER   (an empty folder on a file system of 100 to
200 MB, for example `mount -t tmpfs -o size=160m tmpfs FOLDER`)
"""

import argparse
import asyncio
import random
from datetime import UTC, datetime
from pathlib import Path

from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.errors import WebRAGError
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import NormalizedDocument
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

_FILLER_BYTES = 20_000_000


def page(number: int) -> NormalizedDocument:
    words = random.Random(number)
    text = "\n\n".join(
        " ".join(f"{words.randrange(10**9):x}" for _ in range(80)) for _ in range(300)
    )
    url = f"https://disk.test/{number}"
    return NormalizedDocument(
        url=url, requested_url=url, title=f"Page {number}", fetched_at=datetime.now(UTC),
        markdown=text, html=text, links=(), content_hash=content_hash(text), source="builtin",
    )  # fmt: skip


async def check(folder: Path) -> None:
    filler = folder / "filler"
    filler.write_bytes(bytes(_FILLER_BYTES))
    model = BundledEmbedding()
    database = Database(DatabaseConfig(data_dir=folder))
    embedding = (model.model_name, model.dimensions)
    await ensure_schema(database, embedding_model=embedding[0], embedding_dimensions=embedding[1])
    corpus = Corpus(database, embedding=embedding)
    indexer = Indexer(corpus, ParentChildNodeParser(), Embedder(model, model.dimensions))
    acknowledged: list[str] = []
    for number in range(10_000):
        try:
            acknowledged.append((await indexer.index(page(number))).url)
        except WebRAGError as error:
            print(f"{type(error).__name__}: {error} | {error.hint}")
            break
    filler.unlink()
    await database.close()
    found = [await corpus.page(url) for url in acknowledged]
    after = await indexer.index(page(len(acknowledged)))
    kept = sum(each is not None for each in found)
    print(f"{kept} of {len(acknowledged)} acknowledged pages are there; the refused one is"
          f" {after.outcome} once there is room.")  # fmt: skip
    await database.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    asyncio.run(check(options.parse_args().folder))
