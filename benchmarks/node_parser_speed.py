"""Megabytes of markdown per second: ParentChildNodeParser beside LlamaIndex's own parsers.

Usage: python benchmarks/node_parser_speed.py FOLDER   (every *.md below it is parsed)
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
)
from llama_index.core.schema import BaseNode, Document
from llama_index.node_parser.webrag import ParentChildNodeParser

Parse = Callable[[Sequence[Document]], Sequence[BaseNode]]


def markdown_then_sentences(documents):
    sections = MarkdownNodeParser().get_nodes_from_documents(documents)
    return SentenceSplitter(chunk_size=256, chunk_overlap=0).get_nodes_from_documents(sections)


def exact_share(documents: Sequence[Document], nodes: Sequence[BaseNode]) -> float:
    """Share of nodes whose offsets give their text."""
    texts = {document.id_: document.text for document in documents}
    exact = sum(
        node.start_char_idx is not None
        and texts.get(node.ref_doc_id or "", "")[node.start_char_idx : node.end_char_idx]
        == node.text
        for node in nodes
    )
    return exact / max(1, len(nodes))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--runs", type=int, default=3)
    arguments = options.parse_args()
    paths = sorted(arguments.folder.rglob("*.md"))
    documents = [Document(text=path.read_text("utf-8"), id_=str(path)) for path in paths]
    megabytes = sum(len(document.text.encode()) for document in documents) / 1e6
    parsers: dict[str, Parse] = {
        "ParentChildNodeParser": ParentChildNodeParser().get_nodes_from_documents,
        "MarkdownNodeParser + SentenceSplitter": markdown_then_sentences,
        "HierarchicalNodeParser": HierarchicalNodeParser.from_defaults(
            chunk_sizes=[1000, 256], chunk_overlap=0
        ).get_nodes_from_documents,
    }
    print(f"{len(documents)} documents, {megabytes:.2f} MB; CPU time, best of {arguments.runs}")
    for name, parse in parsers.items():
        seconds = []
        for _ in range(arguments.runs):
            begin = time.process_time()
            nodes = parse(documents)
            seconds.append(time.process_time() - begin)
        share = exact_share(documents, nodes)
        print(f"{name:40} {megabytes / min(seconds):6.2f} MB/s {len(nodes):7} nodes"
              f" {share:7.1%} exact offsets")  # fmt: skip


if __name__ == "__main__":
    main()
