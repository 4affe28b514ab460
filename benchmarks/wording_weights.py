"""How scores under several wordings of a question become one score, and what it is worth.

Usage: python benchmarks/wording_weights.py QUESTIONS SITE_ROOT WORDINGS [--keep FILE]

QUESTIONS has one question a line, SITE_ROOT one folder of HTML files per site, WORDINGS `id` and
`phrasings` a line. Every site is indexed whole and searched for its own questions, with their
wordings and without; the local reranker's scores are kept in FILE for the next run. It prints

    how a score was made    recall of the evidence, for means of calibrated scores and of sums, of
                            children and of parents, several weights of the question, the maximum,
                            and the bound on what wordings may push down
    bad wordings            the same with the wordings of another question in place of each
                            question's own, which is what a wrong or hostile caller gives
    weight with sites left out   for each site the weight that is best on all others, judged there
    confidence              AUC and the share of answered questions per band, with wordings and
                            without, of the curve in use and of curves fitted on all other sites
"""

import argparse
import asyncio
import math
import os
import pickle
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import numpy as np
from llama_index.core.schema import QueryBundle
from llama_index.postprocessor.webrag.wordings import HELD_WITHIN, held_scores, wordings_score

from webrag.app import WebRAG
from webrag.evaluation.metrics import comparison_key
from webrag.evaluation.questions import Question, load_questions, with_wordings
from webrag.ingestion.addresses import site_of
from webrag.orchestration import confidence
from webrag.orchestration.question.patterns import decompose
from webrag.orchestration.ranking.reranker import child_nodes
from webrag.retrieval.filters import SearchFilters
from webrag.settings import load_settings
from webrag.static_site import serve_static_site

WHOLE = 2  # blocks that a brief shows whole
CUTS = (1, 3, 5, 10)


@dataclass
class Child:
    """A child: raw scores under the question and its wordings, and its texts."""

    chunk: str
    raw: list[float]
    score: list[float]
    text: str
    parent: str
    header: str


@dataclass
class Part:
    """One part of a question."""

    query: str
    idf: list[dict[str, float]]  # of the question's terms, then of each wording's
    children: list[Child]


@dataclass
class Asked:
    """One question: parts without wordings, and with its own or with another question's."""

    question: Question
    alone: list[Part]
    helped: list[Part]
    misled: list[Part]


async def collect(rag: WebRAG, questions: Sequence[Question], bases: dict[str, str]) -> list[Asked]:
    found = []
    for place, question in enumerate(questions):
        sites = SearchFilters(sites=(site_of(bases[question.site]),))
        others = [q for q in questions if q.site == question.site and q.id != question.id]
        stranger = others[(place * 7) % len(others)]
        asked = Asked(question, [], [], [])
        parts = decompose(question.query)[0]
        queries = tuple(dict.fromkeys((*parts, question.query)))
        for query in queries:
            whole = query == question.query
            asked.alone.append(await part(rag, query, (), sites))
            own = question.wordings if whole else ()
            asked.helped.append(await part(rag, query, own, sites))
            wrong = stranger.wordings if whole else ()
            asked.misled.append(await part(rag, query, wrong, sites))
        found.append(asked)
    return found


async def part(rag: WebRAG, query: str, wordings: Sequence[str], filters: SearchFilters) -> Part:
    result = await rag._parts.searcher.retrieve(query, wordings=wordings, filters=filters)
    tables = []
    for place, text in enumerate((query, *(each.text for each in result.wordings))):
        scored = await rag._parts.reranker.apostprocess_nodes(
            child_nodes(result, wording=place), query_bundle=QueryBundle(query_str=text)
        )
        tables.append({n.node.node_id: (n.node.metadata["rerank_raw"], n.score) for n in scored})
    children = [
        Child(
            str(chunk.chunk_id),
            [table[match.node_id][0] for table in tables],
            [table[match.node_id][1] for table in tables],
            match.text,
            chunk.text,
            " ".join((chunk.title or "", *chunk.heading_path)),
        )
        for chunk in result.chunks
        for match in chunk.matches
    ]
    return Part(query, [result.term_idf, *(w.term_idf for w in result.wordings)], children)


Score = Callable[[Sequence[Child]], tuple[float, Child]]


def by_child(weight: Callable[[int], float], *, raw: bool = False) -> Score:
    """The best child's weighted mean."""

    def score(children: Sequence[Child]) -> tuple[float, Child]:
        def of(child: Child) -> float:
            values = child.raw if raw else child.score
            return wordings_score(values, question_weight=weight(len(values) - 1))

        best = max(children, key=of)
        return of(best), best

    return score


def by_parent(weight: Callable[[int], float]) -> Score:
    """The weighted mean of the best child under each wording."""

    def score(children: Sequence[Child]) -> tuple[float, Child]:
        tops = [max(values) for values in zip(*(child.score for child in children), strict=True)]
        value = wordings_score(tops, question_weight=weight(len(tops) - 1))
        return value, by_child(weight)(children)[1]

    return score


def by_maximum(children: Sequence[Child]) -> tuple[float, Child]:
    best = max(children, key=lambda child: max(child.score))
    return max(best.score), best


def ranking(parts: Sequence[Part], score: Score, held: int | None = None) -> list[tuple]:
    """(score, child) of each chunk once, best first."""
    best: dict[str, tuple[float, Child]] = {}
    for each in parts:
        groups: dict[str, list[Child]] = {}
        for child in each.children:
            groups.setdefault(child.chunk, []).append(child)
        scored = {chunk: score(children) for chunk, children in groups.items()}
        if held is not None and len(each.idf) > 1:
            own = [max(child.score[0] for child in groups[chunk]) for chunk in scored]
            together = held_scores([value for value, _ in scored.values()], own, times=held)
            scored = {
                chunk: (value, child)
                for (chunk, (_, child)), value in zip(scored.items(), together, strict=True)
            }
        for chunk, found in scored.items():
            if chunk not in best or found[0] > best[chunk][0]:
                best[chunk] = found
    return sorted(best.values(), key=lambda found: -found[0])


def recall(asked: Asked, ranked: Sequence[tuple[float, Child]]) -> list[float]:
    shown = [
        comparison_key(child.parent if place < WHOLE else child.text)
        for place, (_, child) in enumerate(ranked[: max(CUTS)])
    ]
    gold = asked.question.gold or ()
    wanted = [[comparison_key(each.quote) for each in one.passages] for one in gold]
    return [
        statistics.fmean(
            any(key in text for text in shown[:cut] for key in keys) for keys in wanted
        )
        for cut in CUTS
    ]


def table(asked: Sequence[Asked], pick: Callable[[Asked], list[Part]], score: Score, held=None):
    rows = [recall(one, ranking(pick(one), score, held)) for one in asked if one.question.gold]
    return [statistics.fmean(column) for column in zip(*rows, strict=True)]


def double(_: int) -> float:
    return 2.0


def constant(weight: float) -> Callable[[int], float]:
    return lambda _: weight


WAYS: dict[str, tuple[Score, int | None]] = {
    **{f"children, mean, question x {w:g}": (by_child(constant(w)), None) for w in (1, 2, 3, 4)},
    "children, mean, question x number": (by_child(lambda n: max(n, 1)), None),
    "children, mean of sums, question x 2": (by_child(double, raw=True), None),
    "parents, mean, question x 2": (by_parent(double), None),
    "maximum": (by_maximum, None),
    **{f"children, question x 2, held within {t} x": (by_child(double), t) for t in (2, 3, 4, 5)},
}


def show(title: str, figures: Sequence[float]) -> None:
    print(f"  {title:<44}" + "".join(f"{value:8.3f}" for value in figures))


def compare(asked: Sequence[Asked]) -> None:
    print(f"  {'':<44}" + "".join(f"{'@' + str(cut):>8}" for cut in CUTS))
    show("the question alone", table(asked, lambda one: one.alone, by_child(double)))
    for name, (score, held) in WAYS.items():
        show(name, table(asked, lambda one: one.helped, score, held))
    print("bad wordings: those of another question about the same site")
    for name, (score, held) in WAYS.items():
        show(name, table(asked, lambda one: one.misled, score, held))


def left_out(asked: Sequence[Asked]) -> None:
    print("weight of the question with sites left out, mean of @1 and @5")
    weights = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    sites = sorted({one.question.site for one in asked})

    def worth(some: Sequence[Asked], weight: float) -> float:
        figures = table(some, lambda one: one.helped, by_child(constant(weight)))
        return (figures[0] + figures[2]) / 2

    for site in sites:
        rest = [one for one in asked if one.question.site != site]
        own = [one for one in asked if one.question.site == site]
        best = max(weights, key=lambda weight: worth(rest, weight))
        print(
            f"  {site:<14} best elsewhere {best:g}: {worth(own, best):.3f} here;"
            f" weight 2: {worth(own, 2.0):.3f}"
        )


# Confidence


@dataclass
class Judgement:
    """What the confidence sees of a question, and whether its evidence was among the first five."""

    site: str
    quality: float
    coverage: float
    answered: bool


def judgement(asked: Asked, parts: Sequence[Part]) -> Judgement:
    others = [weights for each in parts for weights in each.idf[1:]]
    ranked = ranking(parts, by_child(double), HELD_WITHIN)
    needs = decompose(asked.question.query)[0]
    tops = {each.query: ranking([each], by_child(double))[0][0] for each in parts if each.children}
    wanted = [tops[need] for need in needs if need in tops]
    top = min(wanted) if len(wanted) > 1 else max(tops.values(), default=0.0)
    if others and len(wanted) > 1:
        top = tops.get(asked.question.query, top)
    passages = [f"{child.header} {child.text}" for _, child in ranked[:5]]
    idf: dict[str, float] = {}
    for each in parts:
        idf.update(each.idf[0])
    covered = wordings_score([confidence.coverage(each, passages) for each in (idf, *others)])
    answered = bool(asked.question.gold) and recall(asked, ranked)[CUTS.index(5)] == 1.0
    site = asked.question.site
    return Judgement(site, confidence.quality(top, confidence.LOCAL), covered, answered)


def auc(values: Sequence[float], truths: Sequence[bool]) -> float:
    pairs = [
        (left > right) + 0.5 * (left == right)
        for left, is_true in zip(values, truths, strict=True)
        if is_true
        for right, other in zip(values, truths, strict=True)
        if not other
    ]
    return statistics.fmean(pairs) if pairs else math.nan


def fit(judged: Iterable[Judgement], *, intercept: bool) -> np.ndarray:
    """Logistic regression over the logit of the quality and the coverage, a little shrunk."""
    some = list(judged)
    features = np.array([[logit(j.quality), j.coverage, 1.0] for j in some])
    if not intercept:
        features[:, 2] = 0.0
    truths = np.array([float(j.answered) for j in some])
    weights = np.zeros(3)
    for _ in range(50):
        chances = 1 / (1 + np.exp(-features @ weights))
        slope = features.T @ (truths - chances) - 0.5 * weights
        bend = (features * (chances * (1 - chances))[:, None]).T @ features + 0.5 * np.eye(3)
        weights += np.linalg.solve(bend, slope)
    return weights


def logit(value: float) -> float:
    bounded = min(max(value, 1e-3), 1 - 1e-3)
    return math.log(bounded / (1 - bounded))


def bands(values: Sequence[float], truths: Sequence[bool]) -> str:
    told = []
    for name in ("high", "medium", "low", "none"):
        own = [t for value, t in zip(values, truths, strict=True) if confidence.band(value) == name]
        told.append(f"{name} {statistics.fmean(own):.2f} of {len(own)}" if own else f"{name} -")
    return ", ".join(told)


def calibration(asked: Sequence[Asked]) -> None:
    for title, pick in (("without", lambda one: one.alone), ("with", lambda one: one.helped)):
        judged = [judgement(one, pick(one)) for one in asked]
        truths = [j.answered for j in judged]
        used = [in_use(j, wordings=title == "with") for j in judged]
        print(f"confidence {title} wordings: {sum(truths)} of {len(truths)} answered")
        report("the curve in use", asked, used, truths)
        for intercept in (False, True):
            everything = fit(judged, intercept=intercept)
            values = [
                curve(fit([o for o in judged if o.site != j.site], intercept=intercept), j)
                for j in judged
            ]
            name = "fitted elsewhere" + (" with intercept" if intercept else "")
            report(f"{name} {np.round(everything, 2)}", asked, values, truths)


def in_use(judged: Judgement, *, wordings: bool) -> float:
    return confidence.confidence_of(judged.quality, judged.coverage, with_wordings=wordings)


def curve(weights: np.ndarray, judged: Judgement) -> float:
    total = float(weights @ [logit(judged.quality), judged.coverage, 1.0])
    return 1 / (1 + math.exp(-total))


def report(
    name: str, asked: Sequence[Asked], values: Sequence[float], truths: Sequence[bool]
) -> None:
    none = [confidence.band(value) == "none" for value in values]
    has = [bool(one.question.gold) for one in asked]
    lost = [n for n, h in zip(none, has, strict=True) if h]
    right = [n for n, h in zip(none, has, strict=True) if not h]
    brier = statistics.fmean((v - t) ** 2 for v, t in zip(values, truths, strict=True))
    print(f"  {name}: AUC {auc(values, truths):.3f}, Brier {brier:.3f}; {bands(values, truths)}")
    print(
        f"    `none`: {statistics.fmean(lost):.3f} of the answerable,"
        f" {statistics.fmean(right):.3f} of the unanswerable"
    )


async def gather(chosen: argparse.Namespace) -> list[Asked]:
    questions = with_wordings(load_questions(chosen.questions), chosen.wordings)
    sites = list(dict.fromkeys(question.site for question in questions))
    bases, servers = {}, []
    for name in sites:
        server = serve_static_site(chosen.site_root / name)
        bases[name] = server.__enter__()
        servers.append(server)
    settings = load_settings().allowing([urlsplit(base).netloc for base in bases.values()])
    settings = settings.model_copy(update={"collection": f"webrag_wordings_{os.getpid()}"})
    try:
        async with WebRAG(settings) as rag:
            try:
                for name in sites:
                    folder = chosen.site_root / name
                    pages = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.html"))
                    await rag.ingest([urljoin(bases[name], page) for page in pages])
                return await collect(rag, questions, bases)
            finally:
                await rag.drop_collection()
    finally:
        for server in servers:
            server.__exit__(None, None, None)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("questions", type=Path)
    options.add_argument("site_root", type=Path)
    options.add_argument("wordings", type=Path)
    options.add_argument("--keep", type=Path)
    chosen = options.parse_args()
    if chosen.keep and chosen.keep.exists():
        asked = pickle.loads(chosen.keep.read_bytes())
    else:
        asked = asyncio.run(gather(chosen))
        if chosen.keep:
            chosen.keep.write_bytes(pickle.dumps(asked))
    compare(asked)
    left_out(asked)
    calibration(asked)


if __name__ == "__main__":
    main()
