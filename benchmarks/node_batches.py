"""Adds the nodes of one page to the vector store batch by batch, as pipelines do.

Usage: python benchmarks/node_batches.py [--nodes 2000] [--batch 20] [--words 150]

Prints the time of all batches and of the last, how long the event loop was held up at a time, and
the same for nodes that are added again and for nodes that are deleted.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import TextNode

from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database

DIMENSIONS = 256
VOCABULARY = 20_000
TICK = 0.005


def made_nodes(count: int, words: int) -> list[TextNode]:
    """Nodes of one page whose words are as unevenly common as those of a language."""
    rng = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(rng.choice(letters, rng.integers(3, 10))) for _ in range(VOCABULARY)]
    nodes = []
    for number in range(count):
        drawn = np.minimum(rng.zipf(1.2, words), VOCABULARY) - 1
        nodes.append(
            TextNode(
                id_=f"node {number}",
                text=" ".join(vocabulary[each] for each in drawn),
                embedding=rng.normal(size=DIMENSIONS).tolist(),
                metadata={"source_url": "https://docs.test/manual"},
            )
        )
    return nodes


async def longest_hold(work: Coroutine[Any, Any, None]) -> float:
    """How long the event loop did nothing else, at most, while the work was done."""
    longest = 0.0
    task = asyncio.ensure_future(work)
    while not task.done():
        begun = time.perf_counter()
        await asyncio.sleep(TICK)
        longest = max(longest, time.perf_counter() - begun - TICK)
    await task
    return longest


async def measure(
    name: str, batches: Sequence[Any], take: Callable[[Any], Coroutine[Any, Any, Any]]
) -> None:
    seconds: list[float] = []

    async def work() -> None:
        for batch in batches:
            begun = time.perf_counter()
            await take(batch)
            seconds.append(time.perf_counter() - begun)

    held = await longest_hold(work())
    last = statistics.median(seconds[-5:])
    print(
        f"{name}: {sum(seconds):.1f} s for {len(seconds)} batches, the last {1000 * last:.0f} ms"
        f" each; event loop held up for {1000 * held:.0f} ms at most"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--words", type=int, default=150)
    given = parser.parse_args()
    nodes = made_nodes(given.nodes, given.words)
    batches = [nodes[at : at + given.batch] for at in range(0, len(nodes), given.batch)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        database = Database(DatabaseConfig(data_dir=Path(folder), collection="batches"))
        store = CorpusVectorStore.from_database(database, embed_dim=DIMENSIONS)
        try:
            await measure("add", batches, store.async_add)
            await measure("add again", batches[:10], store.async_add)
            ids = [[node.node_id for node in batch] for batch in batches]
            await measure("delete", ids[:10], store.adelete_nodes)
        finally:
            await database.close()


if __name__ == "__main__":
    asyncio.run(main())
