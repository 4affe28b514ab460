"""Two public retrieval benchmarks through the product, beside BM25 in the same run.

Usage: python benchmarks/public.py FOLDER [--only scifact|docsearch] [--without SITE]...
           [--models NAME]... [--wordings FILE] [--save FILE] [--compare FILE]

FOLDER holds `scifact/` (corpus.jsonl, queries.jsonl, qrels.tsv: BEIR's) and `docsearch/`
(questions.jsonl, url_map.json, pages/: the search evaluation of docs-mcp-server). Every document
is ingested as a page by a page source that reads FOLDER, under its public address, into a
collection of its own that is dropped afterwards; every question is one `search`, within its
library for docsearch, with the combinations of WEBRAG_MODELS that --models names, `bundled` without
it. Another setting that names a model wins, so that EMBEDDING_MODEL may be the folder that
the embedding of `small` is in. --without leaves a library out, pages and questions. --wordings asks
only the questions that FILE (JSON Lines with `id` and `phrasings`, as for `webrag eval`) has other
wordings of, each once without and once with them, of the same collection. BM25 is bm25s
(k1 1.5, b .75, English stop words, Snowball stems), over whole abstracts for scifact and over
whole pages for docsearch.

Measures are those of the sets: nDCG@10 over documents; MRR, recall@5 and nDCG@5 over five passages
named by their page, where a repeated page keeps its place and earns nothing. Intervals are 95% by
bootstrap over questions, p is that of the paired permutation test of `webrag eval --compare`, of
each combination against BM25 and against the one named first, and of each with wordings against
the same without. --save writes the scores of each question. --compare reads such a file and ends
with 1 where a mean of a combination fell by more than .005 and the paired test says that this is
no chance (p < .05).
"""

import argparse
import asyncio
import gzip
import json
import math
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from selectolax.lexbor import LexborHTMLParser

from webrag import WebRAG, load_settings
from webrag.errors import PageGoneError
from webrag.evaluation.metrics import bootstrap_interval, permutation_test
from webrag.ingestion.models import FetchedPage
from webrag.settings.model import COMBINATIONS

Scores = dict[str, dict[str, float]]  # question to measure to value
LOSS = 0.005
BATCH = 200
SCIFACT = "https://scifact.example/"
WORDED = "+wordings"


@dataclass(frozen=True)
class Question:
    """What is asked of which site, and the grade of each page that is right."""

    id: str
    text: str
    gold: dict[str, int]
    site: str
    wordings: tuple[str, ...] = ()


class Folder:
    """A page source over documents at hand: address to kind and text."""

    name = "benchmark"

    def __init__(self, pages: dict[str, tuple[Any, str]]) -> None:
        self.pages = pages

    async def fetch(self, url: str, **_validity: Any) -> FetchedPage:
        if url not in self.pages:
            raise PageGoneError(f"{url} is not in the set.", url=url, status=404)
        kind, text = self.pages[url]
        return FetchedPage(
            requested_url=url,
            url=url,
            status=200,
            kind=kind,
            text=text,
            fetched_at=datetime.now(UTC),
            source=self.name,
        )

    async def aclose(self) -> None:
        """Nothing is held."""


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def load_scifact(folder: Path) -> tuple[Folder, list[Question]]:
    gold: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        gold[query][SCIFACT + document] = int(grade)
    pages = {
        SCIFACT + each["_id"]: ("markdown", f"# {each['title']}\n\n{each['text']}")
        for each in read_lines(folder / "corpus.jsonl")
    }
    queries = {each["_id"]: each["text"] for each in read_lines(folder / "queries.jsonl")}
    return Folder(pages), [Question(id, queries[id], gold[id], "scifact.example") for id in gold]


def load_docsearch(folder: Path) -> tuple[Folder, list[Question]]:
    pages = {}
    for url, name in json.loads((folder / "url_map.json").read_text("utf-8")).items():
        data = (folder / name).read_bytes()
        is_html = name.endswith(".gz")
        text = (gzip.decompress(data) if is_html else data).decode()
        pages[url] = ("html" if is_html else "markdown", text)
    questions = []
    for each in read_lines(folder / "questions.jsonl"):
        gold = {normalised(page["url"]): page["grade"] for page in each["gold"]}
        site = each["gold"][0]["url"].split("/")[2]
        questions.append(Question(each["id"], each["query"], gold, site))
    return Folder(pages), questions


def normalised(url: str) -> str:
    """As the set compares addresses."""
    plain = url.split("#")[0].split("?")[0].removesuffix("/")
    return plain.removesuffix(".md") if plain.endswith(".md") else plain.removesuffix(".html")


def dcg(gains: Iterable[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def score_scifact(found: Sequence[str], gold: dict[str, int]) -> dict[str, float]:
    ranked = list(dict.fromkeys(found))[:10]
    best = dcg(sorted(gold.values(), reverse=True)[:10])
    return {"nDCG@10": dcg(gold.get(url, 0) for url in ranked) / best}


def score_docsearch(found: Sequence[str], gold: dict[str, int]) -> dict[str, float]:
    top = [normalised(url) for url in found][:5]
    first = next((place for place, url in enumerate(top, 1) if url in gold), None)
    gains = [2 ** gold.get(url, 0) - 1 if url not in top[:n] else 0 for n, url in enumerate(top)]
    best = sorted((2**grade - 1 for grade in gold.values()), reverse=True)[:5]
    return {
        "MRR": 1 / first if first else 0.0,
        "recall@5": len(gold.keys() & set(top)) / len(gold),
        "nDCG@5": dcg(gains) / dcg(best),
    }


def without(
    sites: Sequence[str], source: Folder, questions: Sequence[Question]
) -> tuple[Folder, list[Question]]:
    pages = {url: page for url, page in source.pages.items() if url.split("/")[2] not in sites}
    return Folder(pages), [each for each in questions if each.site not in sites]


def worded(questions: Sequence[Question], file: Path) -> list[Question]:
    """Those questions that the file has wordings of, with them."""
    found = {each["id"]: tuple(each["phrasings"]) for each in read_lines(file)}
    return [replace(each, wordings=found[each.id]) for each in questions if each.id in found]


SETS = {
    "scifact": (load_scifact, score_scifact),
    "docsearch": (load_docsearch, score_docsearch),
}


async def product_results(
    models: str, source: Folder, questions: Sequence[Question]
) -> dict[str, dict[str, list[str]]]:
    """What is found, by system: the combination, and the same with wordings where there are any."""
    chosen: dict[str, Any] = {"models": models, "collection": f"public_{uuid.uuid4().hex[:8]}"}
    settings = load_settings(**chosen)
    results = {}
    systems = {models: False}
    if any(each.wordings for each in questions):
        systems[models + WORDED] = True
    async with WebRAG(settings, page_source=source) as rag:
        try:
            urls = list(source.pages)
            for start in range(0, len(urls), BATCH):
                report = await rag.ingest(urls[start : start + BATCH])
                for url, reason in report.failed.items():
                    print(f"left out: {url}: {reason}", file=sys.stderr)
                print(f"{start + len(report.pages)} of {len(urls)} pages", file=sys.stderr)
            for system, is_worded in systems.items():
                results[system] = {
                    each.id: await ranked_urls(rag, each, each.wordings if is_worded else ())
                    for each in questions
                }
        finally:
            await rag.drop_collection()
    return results


async def ranked_urls(rag: WebRAG, question: Question, wordings: Sequence[str]) -> list[str]:
    result = await rag.search(question.text, wordings=wordings, sites=question.site, top_k=20)
    ranked = sorted(result.chunks, key=lambda item: -item.reranked_score)
    return [item.chunk.source_url for item in ranked if not item.is_locality_expanded]


def bm25_results(source: Folder, questions: Sequence[Question]) -> dict[str, list[str]]:
    results = {}
    stemmer = Stemmer.Stemmer("english")
    for site in dict.fromkeys(each.site for each in questions):
        urls = [url for url in source.pages if site in url]
        texts = [words_of(*source.pages[url]) for url in urls]
        tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
        index = bm25s.BM25(k1=1.5, b=0.75)
        index.index(tokens, show_progress=False)
        asked = [each for each in questions if each.site == site]
        queries = bm25s.tokenize(
            [each.text for each in asked], stopwords="en", stemmer=stemmer, show_progress=False
        )
        places, _ = index.retrieve(queries, k=min(20, len(urls)), show_progress=False)
        for each, row in zip(asked, places, strict=True):
            results[each.id] = [urls[place] for place in row]
    return results


def words_of(kind: str, text: str) -> str:
    return LexborHTMLParser(text).text(separator=" ") if kind == "html" else text


def differences(left: Scores, right: Scores, measure: str) -> list[float]:
    return [left[id][measure] - right[id][measure] for id in left if id in right]


def report(name: str, systems: dict[str, Scores]) -> None:
    """Every system's means, and the paired tests of the combinations, the first of them named."""
    *ours, bm25 = systems
    for measure in next(iter(systems[bm25].values())):
        for system, scores in systems.items():
            values = [score[measure] for score in scores.values()]
            low, high = bootstrap_interval(values)
            mean = float(np.mean(values))
            print(f"{name:9} {measure:8} {system:16} {mean:.3f} [{low:.3f}, {high:.3f}]")
        pairs = [(each, bm25) for each in ours] + [(each, ours[0]) for each in ours[1:]]
        pairs += [(each + WORDED, each) for each in ours if each + WORDED in ours]
        for one, other in dict.fromkeys(pairs):
            p = permutation_test(differences(systems[one], systems[other], measure))
            print(f"{name:9} {measure:8} {one} against {other}: p {p:.4f}")


def has_regressed(name: str, ours: Scores, before: Scores) -> bool:
    found = False
    for measure in next(iter(ours.values())):
        changed = differences(ours, before, measure)
        mean, p = float(np.mean(changed)), permutation_test(changed)
        lost = mean < -LOSS and p < 0.05
        found |= lost
        verdict = "regression" if lost else "no regression"
        print(f"{name:26} {measure:8} change {mean:+.3f}, p {p:.4f}: {verdict}")
    return found


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=sorted(SETS))
    parser.add_argument("--without", action="append", default=[], metavar="SITE")
    parser.add_argument("--models", action="append", choices=list(COMBINATIONS))
    parser.add_argument("--wordings", type=Path)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    if options.compare and not options.compare.is_file():
        parser.error(f"there is no file {options.compare}")
    models = list(dict.fromkeys(options.models or ["bundled"]))
    saved: dict[str, dict[str, Scores]] = {}
    sets = {}
    for name in [options.only] if options.only else sorted(SETS):
        try:
            source, questions = without(options.without, *SETS[name][0](options.folder / name))
            if options.wordings:
                questions = worded(questions, options.wordings)
        except FileNotFoundError as error:
            parser.error(f"there is no file {error.filename}")
        if options.wordings and not questions:
            parser.error(f"{options.wordings} has no wordings of the questions of {name}")
        sets[name] = source, questions
    for name, (source, questions) in sets.items():
        score = SETS[name][1]
        runs: dict[str, dict[str, list[str]]] = {}
        for each in models:
            runs |= await product_results(each, source, questions)
        runs["BM25"] = bm25_results(source, questions)
        systems = {
            system: {each.id: score(found[each.id], each.gold) for each in questions}
            for system, found in runs.items()
        }
        report(name, systems)
        saved[name] = {each: scores for each, scores in systems.items() if each != "BM25"}
    if options.save:
        options.save.write_text(json.dumps(saved, indent=1, sort_keys=True) + "\n", "utf-8")
    if not options.compare:
        return 0
    before = json.loads(options.compare.read_text("utf-8"))
    lost = [
        has_regressed(f"{name} {each}", scores, before[name][each])
        for name, systems in saved.items()
        for each, scores in systems.items()
        if each in before.get(name, {})
    ]
    return int(any(lost))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
