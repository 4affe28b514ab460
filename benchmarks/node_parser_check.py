"""Whether every guarantee of ParentChildNodeParser holds for the texts below some paths.

Usage: python benchmarks/node_parser_check.py PATH...

A PATH is the CommonMark specification (spec.txt, or its examples as spec.json), of which every
example is parsed, and all of it as one document; or a folder, of which every *.md is parsed as it
is and every *.html as WebRAG would store it, with its HTML. Each text is parsed in several sizes.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyromark
from llama_index.core.schema import BaseNode, Document
from llama_index.core.utils import get_tokenizer
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import FetchedPage

SIZES = ((1000, 256), (120, 40), (50, 20))
EXAMPLE = re.compile(r"^`{32} example.*?\n(.*?)^\.\n.*?^`{32}$", re.MULTILINE | re.DOTALL)
TABLES = pyromark.Options(1 << 12)


def texts_of(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.md")):
            yield file.read_text("utf-8"), {"source_url": str(file)}
        for file in sorted(path.rglob("*.html")):
            yield from page_of(file)
    elif path.suffix == ".json":
        yield from ((example["markdown"], {}) for example in json.loads(path.read_text("utf-8")))
    else:
        whole = path.read_text("utf-8")
        yield whole, {}
        for match in EXAMPLE.finditer(whole):
            yield match[1].replace("\u2192", "\t"), {}
            yield match[1].replace("\u2192", "\t").replace("\n", "\r\n"), {}


def page_of(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    url = f"https://site.test/{file.as_posix().lstrip('/')}"
    page = FetchedPage(
        requested_url=url, url=url, status=200, kind="html", text=decode(file.read_bytes()),
        fetched_at=datetime.now(UTC), source="check",
    )  # fmt: skip
    try:
        found = extract(page)
    except UnusablePageError:
        return
    yield found.markdown, {"html": found.html or "", "source_url": url, "title": found.title or ""}


def is_covered(text: str, begin: int, end: int, nodes: Sequence[BaseNode]) -> bool:
    place = begin
    for node in nodes:
        if not place <= node.start_char_idx < node.end_char_idx <= end:
            return False
        if text[place : node.start_char_idx].strip():
            return False
        place = node.end_char_idx
    return not text[place:end].strip()


def headings_of(text: str) -> list[tuple[int, int]]:
    data = text.encode()
    return [
        (len(data[: place["start"]].decode()), int(event["Start"]["Heading"]["level"][1]))
        for event, place in pyromark.events_with_range(text, options=TABLES)
        if isinstance(event, dict)
        and isinstance(event.get("Start"), dict)
        and "Heading" in event["Start"]
    ]


def crosses(headings: list[tuple[int, int]], parent: BaseNode) -> bool:
    before = [level for place, level in headings if place < parent.start_char_idx]
    inside = [
        level for place, level in headings if parent.start_char_idx <= place < parent.end_char_idx
    ]
    opened_inside = all(level > inside[0] for level in inside[1:]) if inside else True
    opened_before = bool(before) and all(level > before[-1] for level in inside)
    return not (opened_inside or opened_before)


def faults(text: str, nodes: Sequence[BaseNode], sizes: tuple[int, int]) -> Iterator[str]:
    count = get_tokenizer()
    parents = [node for node in nodes if node.metadata["chunk_level"] == "parent"]
    by_id = {node.node_id: node for node in nodes}
    headings = headings_of(text)
    if len(by_id) != len(nodes):
        yield "equal ids"
    if any(text[node.start_char_idx : node.end_char_idx] != node.text for node in nodes):
        yield "offsets"
    if not is_covered(text, 0, len(text), parents):
        yield "parents do not cover the text in order"
    if any(crosses(headings, parent) for parent in parents):
        yield "a parent crosses a heading"
    for parent in parents:
        family = [by_id[child.node_id] for child in parent.child_nodes or []]
        if not family or not is_covered(text, parent.start_char_idx, parent.end_char_idx, family):
            yield "children do not cover their parent"
    for node in nodes:
        limit = sizes[0] if node.metadata["chunk_level"] == "parent" else sizes[1]
        if len(node.text) > max(40, limit) and len(count(node.text)) > limit:
            yield "too large"
        for image in node.metadata["images"]:
            if not image["url"]:
                yield "an image without an address"
    for before, after in pairwise(parents):
        if before.next_node.node_id != after.node_id or after.prev_node.node_id != before.node_id:
            yield "neighbours"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("paths", type=Path, nargs="+")
    for path in options.parse_args().paths:
        found: Counter[str] = Counter()
        texts = nodes_in_all = images = aligned = 0
        for text, metadata in texts_of(path):
            texts += 1
            for sizes in SIZES:
                parser = ParentChildNodeParser(parent_tokens=sizes[0], child_tokens=sizes[1])
                nodes = parser.get_nodes_from_documents([Document(text=text, metadata=metadata)])
                new = set(faults(text, nodes, sizes))
                found.update(new)
                if new:
                    print(f"{metadata.get('source_url') or text!r} in {sizes}: {sorted(new)}")
                nodes_in_all += len(nodes)
                images += sum(len(node.metadata["images"]) for node in nodes)
                aligned += sum("html" in node.metadata for node in nodes)
        print(f"{path.name}: {texts} texts, {nodes_in_all} nodes, {images} images,"
              f" {aligned} parents with HTML; faults: {dict(found) or 'none'}")  # fmt: skip


if __name__ == "__main__":
    main()
