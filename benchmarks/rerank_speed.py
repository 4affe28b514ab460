"""Milliseconds that LocalRerank takes for candidates it has and has not seen before.

Usage: python benchmarks/rerank_speed.py FOLDER [--candidates 80] [--batches 10]

Candidates are the chunks of the HTML files below FOLDER, as many files as are needed: new with
words that no earlier batch had, new with every word known, and seen before. Times are also given as
multiples of embedding the same candidates, all words known, which hardly depend on how busy the
machine is.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.webrag import LocalRerank
from memory_corpus import EMBEDDING, Child, children_of, read_page

from webrag.lexical.analysis import analyze, query_terms

QUESTION = "How is the size of the cache limited when the server runs out of memory?"


def milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def chunks(folder: Path) -> Iterable[Child]:
    for number, path in enumerate(sorted(folder.rglob("*.html"))):
        yield from (child for child, _ in children_of(number, read_page(path, folder), {}))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--candidates", type=int, default=80)
    options.add_argument("--batches", type=int, default=10)
    given = options.parse_args()
    children = list(islice(chunks(given.folder), given.candidates * given.batches))
    EMBEDDING.encode(["load the weights"])
    rows = []
    for start in range(0, len(children) - given.candidates + 1, given.candidates):
        batch = children[start : start + given.candidates]
        nodes = [
            NodeWithScore(
                node=TextNode(
                    text=child.text,
                    metadata={
                        "title": child.title,
                        "heading_path": list(child.headings),
                        "similarity": 0.4,
                    },
                )
            )
            for child in batch
        ]
        fresh, again = (
            LocalRerank(encoder=EMBEDDING, analyze=analyze, analyze_question=query_terms)
            for _ in range(2)
        )
        times = [
            milliseconds(
                lambda nodes=nodes, rerank=rerank: rerank.postprocess_nodes(
                    nodes, query_str=QUESTION
                )
            )
            for rerank in (fresh, again, again)
        ]
        embed = milliseconds(lambda batch=batch: EMBEDDING.encode([c.text for c in batch]))
        rows.append((embed, *times))
    embed, *times = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"{given.candidates} candidates, {len(rows)} batches, medians")
    print(f"embedding alone       {embed:7.1f} ms")
    for name, value in zip(("not seen, new words", "not seen", "seen"), times, strict=True):
        print(f"{name:<21} {value:7.1f} ms  {value / embed:5.2f} x")


if __name__ == "__main__":
    main()
