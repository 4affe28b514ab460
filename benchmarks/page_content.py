"""Measures how much of a page's content is stored, how much beside it, and at what cost.

Usage: python benchmarks/page_content.py [--aeb FOLDER] [--traf FOLDER] [--every N]
       [--gold QUESTIONS=SITES]... [--lost]

AEB is a checkout of scrapinghub/article-extraction-benchmark: articles, by its own shingles of four
words. TRAF is one of adbar/trafilatura: segments that must and must not be there. QUESTIONS is a
file of benchmarks/questions and SITES its pages as `fetch_sites.py` places them; printed is the
share of quotations that stand in the stored text. Of the first two, --every takes each Nth page.
`--lost` names what was lost. The figures of others beside these are in the first lines of the
table.
"""

import argparse
import gzip
import json
import re
import statistics
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from llama_index.core.schema import Document
from llama_index.node_parser.webrag import ParentChildNodeParser
from selectolax.lexbor import LexborHTMLParser

from webrag.errors import UnusablePageError
from webrag.ingestion.addresses import canonical_url
from webrag.ingestion.extract import extract
from webrag.ingestion.html.markdown import html_from_markdown
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import FetchedPage, NormalizedDocument

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PARSER = ParentChildNodeParser()
REFERENCE = """\
AEB  trafilatura 2.0  F1 .960 (P .942, R .978), resiliparse .916 (.860, .981)
TRAF trafilatura 2.0  wanted 94.5%, unwanted 9.7%, resiliparse 95.5%, 29.3%"""


@dataclass
class Spent:
    """What converting pages cost, and those that were refused."""

    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def convert(self, url: str, data: bytes) -> NormalizedDocument | None:
        """The stored document of a page; None where it is refused."""
        started = time.process_time()
        try:
            url = canonical_url(url)
            page = FetchedPage(
                requested_url=url,
                url=url,
                status=200,
                kind="html",
                text=decode(data),
                fetched_at=NOW,
                source="benchmark",
            )
            return extract(page)
        except UnusablePageError as error:
            self.refused.append(f"{url}: {error}")
            return None
        finally:
            self.seconds.append(time.process_time() - started)

    def __str__(self) -> str:
        ordered = sorted(self.seconds) or [0.0]
        slowest = ordered[int(0.99 * len(ordered))]
        return (
            f"{len(self.refused)} of {len(self.seconds)} refused,"
            f" {statistics.mean(ordered):.4f} s a page, p99 {slowest:.3f}"
        )


def shown(markdown: str) -> str:
    """The text that stored Markdown shows."""
    body = LexborHTMLParser(html_from_markdown(markdown)).body
    return " ".join(body.text(separator=" ").split()) if body else ""


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """The runs of four words of a text, as AEB counts them."""
    words = re.findall(r"\w+", text)
    length = min(4, len(words))
    return Counter(tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def letters(text: str) -> str:
    """A text's letters and digits."""
    return "".join(re.findall(r"[^\W_]", unicodedata.normalize("NFKC", text).casefold()))


def measure_articles(root: Path, every: int) -> None:
    """Print precision and recall of AEB's articles, and the share of passages without any."""
    spent, precision, recall = Spent(), [], []
    passages = [0, 0]
    gold = json.loads((root / "ground-truth.json").read_text("utf-8"))
    for name, item in list(gold.items())[::every]:
        data = gzip.decompress((root / "html" / f"{name}.html.gz").read_bytes())
        document = spent.convert(item["url"], data)
        true = shingles(item.get("articleBody", ""))
        found = shingles(shown(document.markdown)) if document else Counter()
        common = (true & found).total()
        if found:
            precision.append(common / found.total())
        if true:
            recall.append(common / true.total())
        for node in PARSER.get_nodes_from_documents(
            [Document(text=document.markdown)] if document else []
        ):
            if not node.child_nodes:
                own = shingles(shown(node.get_content()))
                passages[0] += (own & true).total() < own.total() / 10
                passages[1] += 1
    p, r = statistics.mean(precision), statistics.mean(recall)
    print(
        f"AEB  F1 {2 * p * r / (p + r):.3f} P {p:.3f} R {r:.3f},"
        f" passages without gold {passages[0] / passages[1]:.1%}; {spent}"
    )


def segments(root: Path, every: int) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """TRAF's pages: address, file, what must and must not be there."""
    listed = json.loads((root / "tests/evaldata.json").read_text("utf-8"))
    for url, item in list(listed.items())[::every]:
        places = (root / "tests" / folder / item["file"] for folder in ("cache", "eval"))
        path = next(place for place in places if place.exists())
        name = item["file"].split(".html")[0].replace(" ", "-")
        yield (url if url.startswith("http") else f"https://{name}"), path, item


def measure_segments(root: Path, every: int, *, names_lost: bool) -> None:
    """Print the shares of TRAF's segments that are stored, those wanted and those unwanted.

    Then those of its titles, dates and authors that are right.
    """
    spent = Spent()
    counts = {"with": [0, 0], "without": [0, 0]}
    facts = {"title": [0, 0], "date": [0, 0], "author": [0, 0]}
    for url, path, item in segments(root, every):
        document = spent.convert(url, path.read_bytes())
        for fact, is_right in told(item, document) if document else ():
            facts[fact][0] += is_right
            facts[fact][1] += 1
        text = letters(document.markdown) if document else ""
        for kind, count in counts.items():
            for segment in item[kind]:
                is_there = letters(segment) in text
                count[0] += is_there
                count[1] += 1
                if names_lost and is_there == (kind == "without"):
                    print(f"  {kind} {item['file']}: {segment[:90]!r}")
    shares = {kind: there / max(1, all_) for kind, (there, all_) in counts.items()}
    print(f"TRAF wanted {shares['with']:.1%} unwanted {shares['without']:.1%}; {spent}")
    told_right = (f"{fact}s {right / max(1, all_):.1%}" for fact, (right, all_) in facts.items())
    print(f"     right: {', '.join(told_right)}")


def told(item: dict[str, Any], document: NormalizedDocument) -> Iterator[tuple[str, bool]]:
    """Which of the facts that TRAF's gold tells of a page are right."""
    if item.get("title"):
        yield "title", words_of(item["title"]) == words_of(document.title)
    if day := re.search(r"\d{4}-\d\d-\d\d", str(item.get("date"))):
        moment = document.published_at or document.modified_at
        yield "date", moment is not None and f"{moment:%Y-%m-%d}" == day.group()
    if item.get("author"):
        given = item["author"]
        people = given if isinstance(given, list) else re.split(r";|, | and ", given)
        named = words_of(document.author)
        yield "author", all(words_of(person) in named for person in people)


def words_of(text: str | None) -> str:
    """A text's words."""
    return " ".join(re.findall(r"\w+", (text or "").casefold()))


def measure_quotations(questions: Path, sites: Path, *, names_lost: bool) -> None:
    """Print the share of the quotations of questions that the stored text of their pages holds."""
    spent = Spent()
    texts: dict[Path, tuple[str, str]] = {}
    kept = missing = 0
    lost = []
    for question in map(json.loads, questions.read_text("utf-8").splitlines()):
        site = sites / (question.get("source") or question["site"])
        for gold in evidence(question):
            path = site / gold["page"].removesuffix(".gz")
            if path.suffix not in (".html", ".htm", ".xhtml"):
                continue
            if not path.is_file():
                missing += 1
                continue
            if path not in texts:
                document = spent.convert(f"https://docs.test/{gold['page']}", path.read_bytes())
                markdown = document.markdown if document else ""
                texts[path] = letters(markdown), letters(shown(markdown))
            # Raw Markdown says the language of code between; rendered, it takes `<n>` for a tag.
            if any(letters(gold["quote"]) in text for text in texts[path]):
                kept += 1
            else:
                lost.append(f"  {question['id']} {path}: {gold['quote'][:90]!r}")
    total = kept + len(lost)
    print(
        f"{questions.name}: {kept / max(1, total):.4f} of {total} kept, {missing} absent; {spent}"
    )
    if names_lost:
        print(*lost, sep="\n")


def evidence(question: dict[str, Any]) -> Iterable[dict[str, str]]:
    """Every quotation that answers a question."""
    for gold in question["gold"]:
        yield from (gold, *gold.get("alternatives", ()))


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--aeb", type=Path)
    parser.add_argument("--traf", type=Path)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--gold", action="append", default=[], metavar="QUESTIONS=SITES")
    parser.add_argument("--lost", action="store_true")
    return parser.parse_args(given)


def main() -> None:
    """Print the table."""
    asked = arguments()
    print(REFERENCE)
    if asked.aeb:
        measure_articles(asked.aeb, asked.every)
    if asked.traf:
        measure_segments(asked.traf, asked.every, names_lost=asked.lost)
    for pair in asked.gold:
        questions, _, sites = pair.partition("=")
        measure_quotations(Path(questions), Path(sites), names_lost=asked.lost)


if __name__ == "__main__":
    main()
