"""Fits the weights by which blocks of a page are told from what is around its content.

Usage: python benchmarks/fit_content.py --aeb FOLDER --traf FOLDER [--gold QUESTIONS=SITES]...
       [--write FILE]

The folders and questions are those of `page_content.py`. A block of AEB is content when half of its
runs of four words are in the article; one of TRAF when it holds a segment that must be there, and
not when it holds one that must not; all blocks of the documentation pages that questions are about
are content, and so are those of other pages that hold a quotation. Comments are left out: they are
content of their page, though not of its article.

The model is a weighted sum of features, a logistic regression with a little shrinkage. Printed is
what thresholds keep on pages, or sites of documentation, left out in five folds. --write writes the
weights fitted on everything.
"""

import argparse
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from page_content import evidence, letters, segments, shingles
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html import content
from webrag.ingestion.html.controls import spell_out, unveil
from webrag.ingestion.html.prune import (
    main_content,
    remove_chrome,
    remove_hidden,
    remove_machinery,
)
from webrag.ingestion.html.tree import ancestors
from webrag.ingestion.http.decode import decode

FOLDS = 5
EPOCHS = 12
BATCH = 256
RATE = 0.1
SHRINKAGE = 1e-5
LEAST_PAGES = 10
LEAST_WEIGHT = 0.03
# Of documentation, where no other gold says what is beside the content.
MENUS = (
    ".menu, .navbar, .sidebar, .related, .breadcrumb, .breadcrumbs, .table-of-contents,"
    " .pagination, .noprint, .announcement, .share-buttons, .social-share, .newsletter-signup,"
    " .cookie-banner, .cookie-consent, .cookie-notice, .cookie-bar, .edit-this-page,"
    " .skip-to-content, .skip-nav, .feedback--title, .feedback--question, .feedback--response,"
    " .side-bar, .td-page-meta__lastmod"
)
COMMENTS = re.compile(r"name (?:comment|disqus|repl)")

Floats = NDArray[np.float64]


@dataclass
class Labelled:
    """A block with what it is, and how much it counts."""

    kind: str
    page: int
    fold: int
    features: list[str]
    words: int
    is_content: bool
    weight: float


def blocks_of(data: bytes) -> list[content.Block]:
    """The blocks among which content is told, as conversion sees them."""
    tree = LexborHTMLParser(decode(data))
    if tree.body is None:
        return []
    unveil(tree)
    remove_hidden(tree)
    spell_out(tree.body)
    remove_machinery(tree)
    remove_chrome(tree.body)
    return content.read_blocks(content.boxes_of(main_content(tree.body)))


def labelled(
    kind: str, name: str, data: bytes, label: Callable[[str], bool | None], weight: float
) -> Iterator[Labelled]:
    """The blocks of a page of which something is known."""
    fold = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest(), 16) % FOLDS
    blocks = blocks_of(data)
    menus = {node.mem_id for node in blocks[0].box.node.parser.css(MENUS)} if blocks else set()
    for block in blocks:
        known = label(block.text) if letters(block.text) else None
        if kind == "documentation" and any(
            each.mem_id in menus for each in (block.box.node, *ancestors(block.box.node))
        ):
            known = False
        is_comment = any(map(COMMENTS.match, block.features))
        if known is None or (is_comment and not known):
            continue
        words = len(block.text.split())
        share = min(1.0, 100 / len(blocks)) if kind == "documentation" else 1.0
        yield Labelled(
            kind,
            hash(data),
            fold,
            block.features,
            words,
            known,
            weight * share * min(words, 100) ** 0.5,
        )


def in_article(article: str) -> Callable[[str], bool | None]:
    """A label by what the gold of AEB holds."""
    gold, text = set(shingles(article)), letters(article)

    def label(block: str) -> bool | None:
        found = shingles(block)
        if len(block.split()) < 4:
            return letters(block) in text if len(letters(block)) > 3 else None
        return sum(count for each, count in found.items() if each in gold) >= found.total() / 2

    return label


def with_segments(wanted: Sequence[str], unwanted: Sequence[str]) -> Callable[[str], bool | None]:
    """A label by segments that must and must not be there."""

    def label(block: str) -> bool | None:
        text = letters(block)
        if any(
            len(each) > 8 and (each in text or (len(text) > 20 and text in each)) for each in wanted
        ):
            return True
        is_unwanted = any(
            each in text if len(each) > 12 else each == text for each in unwanted if len(each) > 3
        )
        return False if is_unwanted else None

    return label


def examples(asked: argparse.Namespace) -> Iterator[Labelled]:
    """The labelled blocks of everything that is asked for."""
    if asked.aeb:
        gold = json.loads((asked.aeb / "ground-truth.json").read_text("utf-8"))
        for name, item in gold.items():
            data = gzip.decompress((asked.aeb / "html" / f"{name}.html.gz").read_bytes())
            yield from labelled("article", name, data, in_article(item.get("articleBody", "")), 1.0)
    if asked.traf:
        for _, path, item in segments(asked.traf, 1):
            sides = ([letters(each) for each in item[kind]] for kind in ("with", "without"))
            yield from labelled("segment", path.name, path.read_bytes(), with_segments(*sides), 3.0)
    for pair in asked.gold:
        questions, _, sites = pair.partition("=")
        quotes: dict[tuple[str, Path], list[str]] = {}
        for question in map(json.loads, Path(questions).read_text("utf-8").splitlines()):
            site = question.get("source") or question["site"]
            for gold in evidence(question):
                path = Path(sites) / site / gold["page"].removesuffix(".gz")
                if path.suffix in (".html", ".htm", ".xhtml") and path.is_file():
                    quotes.setdefault((site, path), []).append(letters(gold["quote"]))
        for (site, path), found in quotes.items():
            if Path(questions).stem.startswith("web_"):
                yield from labelled(
                    "quotation", site, path.read_bytes(), with_segments(found, ()), 6.0
                )
            else:
                yield from labelled("documentation", site, path.read_bytes(), lambda _: True, 1.0)


def fitted(indices: NDArray[np.int64], truth: Floats, weight: Floats, size: int) -> Floats:
    """Weights of a logistic regression, by Adagrad; index 0 is for nothing."""
    random = np.random.default_rng(1)
    weights, squares = np.zeros(size), np.full(size, 1e-3)
    for _ in range(EPOCHS):
        order = random.permutation(len(truth))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            total = weights[indices[rows]].sum(axis=1)
            error = weight[rows] * (1 / (1 + np.exp(-np.clip(total, -30, 30))) - truth[rows])
            repeated = np.repeat(error / len(rows), indices.shape[1])
            gradient = np.bincount(indices[rows].ravel(), repeated, size) + SHRINKAGE * weights
            gradient[0] = 0
            squares += gradient**2
            weights -= RATE * gradient / np.sqrt(squares)
    return weights


def main() -> None:
    """Fit, and print what is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--aeb", type=Path)
    parser.add_argument("--traf", type=Path)
    parser.add_argument("--gold", action="append", default=[], metavar="QUESTIONS=SITES")
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    found = list(examples(asked))
    pages = {(name, each.page) for each in found for name in each.features}
    counts = Counter(name for name, _ in pages)
    names = sorted(name for name, count in counts.items() if count >= LEAST_PAGES)
    numbers = {name: at for at, name in enumerate(names, 1)}
    width = max(len(each.features) for each in found)
    indices = np.zeros((len(found), width), dtype=np.int64)
    for row, each in enumerate(found):
        known = [numbers[name] for name in each.features if name in numbers]
        indices[row, : len(known)] = known
    truth = np.array([float(each.is_content) for each in found])
    weight = np.array([each.weight for each in found])
    folds = np.array([each.fold for each in found])
    size = len(names) + 1
    scores = np.zeros(len(found))
    for fold in range(FOLDS):
        there, away = folds == fold, folds != fold
        weights = fitted(indices[away], truth[away], weight[away], size)
        scores[there] = weights[indices[there]].sum(axis=1)
    kinds = np.array([each.kind for each in found])
    words = np.array([each.words for each in found])
    print(f"{len(found)} blocks, {len(names)} features; share of words kept on pages left out")
    for threshold in (-2, -1.5, -1, -0.5, -0.25, 0, 0.25, 0.5):
        shares = []
        for kind in dict.fromkeys(kinds):
            for is_content, sign in ((1.0, "content"), (0.0, "other")):
                chosen = (kinds == kind) & (truth == is_content)
                if chosen.any():
                    kept = words[chosen & (scores > threshold)].sum() / words[chosen].sum()
                    shares.append(f"{kind} {sign} {kept:.4f}")
        print(f"{threshold:5}  {'  '.join(shares)}")
    if asked.write:
        weights = fitted(indices, truth, weight, size)
        made = {name: round(float(weights[at]), 2) for name, at in numbers.items()}
        kept_weights = {name: value for name, value in made.items() if abs(value) >= LEAST_WEIGHT}
        asked.write.write_text(
            json.dumps({"weights": kept_weights}, separators=(",", ":")) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
