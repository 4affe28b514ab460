"""Fits what a link promises, with sites left out: `webrag/orchestration/links/links.json`.

Usage: python benchmarks/fit_links.py QUESTIONS SITE_ROOT [QUESTIONS SITE_ROOT ...]
       [--wordings FILE] [--limit N] [--out FILE]

Every question is followed from its seed page over HTTP without searching: five rounds of the five
best links, by the weights in use. Each round shows which of the links lead to a page with evidence
that is still wanting. Weights are fitted by the likelihood of those links among all links of the
round and the chance that none leads there. Printed is how often such a link is among the first five
and ten, fitted without the site it is about, with all signals and without each; and how often links
of a probability led there. `--out` writes weights fitted on all sites.
"""

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from os import getpid
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
from numpy.typing import NDArray

from webrag import Question as Asked
from webrag import WebRAG
from webrag.demo import serve_static_site
from webrag.errors import WebRAGError
from webrag.evaluation.questions import Question, load_questions, with_wordings
from webrag.orchestration.links.rules import LinkScope
from webrag.orchestration.links.scoring import LinkQuestion, fitted, link_signals, score_links
from webrag.settings import load_settings

Floats = NDArray[np.float64]
ROUNDS, PAGES = 5, 5
SIGNALS = tuple(fitted().weights)
BOUNDS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.01)


@dataclass(frozen=True)
class Round:
    """The links of one round.

    Attributes:
        signals: A row for each link under each wording, ordered by target.
        starts: First row of each target.
        is_wanted: Of each target, whether evidence that is wanting is on its page.
    """

    question: str
    site: str
    has_wordings: bool
    signals: Floats
    starts: NDArray[np.int64]
    is_wanted: NDArray[np.bool_]

    def best(self, weights: Floats) -> tuple[Floats, Floats]:
        """The most that each target scores, and the signals that it scores so much by."""
        totals = self.signals @ weights
        most = np.maximum.reduceat(totals, self.starts)
        owners = np.repeat(np.arange(len(most)), np.diff(np.r_[self.starts, len(totals)]))
        hits = np.flatnonzero(totals == most[owners])
        return most, self.signals[hits[np.unique(owners[hits], return_index=True)[1]]]


async def walk(rag: WebRAG, question: Question, base: str, wordings: Sequence[str]) -> list[Round]:
    """Follow the best links from the seed page of a question, and note what each round offers."""
    run = rag.components()
    seed = (await run.acquirer.acquire(urljoin(base, question.seed_url))).url
    analysis, _ = await run.analyzer.analyze(Asked.of(question.query, urls=[seed]))
    queries = list(dict.fromkeys((*analysis.sub_queries, question.query, *wordings)))
    asked = [LinkQuestion.of(query, run.encoder) for query in queries]
    known, pages, rounds = {seed}, [seed], []
    for _ in range(ROUNDS):
        links, mapped, _ = await run.expander.followable(
            pages, queries, seeds=[seed], scope=LinkScope.of("same_site", [seed]), known=known,
            timeout_s=10.0, read={},
        )  # fmt: skip
        wanted = {
            urljoin(base, passage.page)
            for gold in question.gold or ()
            if not any(urljoin(base, passage.page) in pages for passage in gold.passages)
            for passage in gold.passages
        }
        if not links or not wanted:
            break
        links.sort(key=lambda link: link.url)
        by_map, by_text = mapped.scores, mapped.text_scores
        found = link_signals(links, asked, encoder=run.encoder, site_map=by_map, site_text=by_text)
        table = np.stack([np.broadcast_to(found[n], (len(asked), len(links))) for n in SIGNALS], -1)
        urls = np.array([link.url for link in links])
        targets, firsts = np.unique(urls, return_index=True)
        rows = table.swapaxes(0, 1).reshape(-1, len(SIGNALS))
        is_wanted = np.array([url in wanted for url in targets])
        rounds.append(
            Round(
                question.id,
                question.site,
                bool(wordings),
                rows,
                firsts * len(asked),
                is_wanted,
            )
        )
        obtained = 0
        for link in score_links(
            links, asked, encoder=run.encoder, site_map=by_map, site_text=by_text
        ):
            if obtained == PAGES:
                break
            known.add(link.url)
            try:
                page = await run.acquirer.acquire(link.url)
            except WebRAGError:
                continue
            obtained += page.url not in known or page.url == link.url
            known.add(page.url)
            pages.append(page.url)
    return rounds


def fit(rounds: Sequence[Round], ridge: float = 0.3) -> tuple[Floats, float]:
    """Weights and the weight of elsewhere, by Newton's method; each question counts the same."""
    weights, elsewhere = np.ones(rounds[0].signals.shape[1]), 2.0
    counts = Counter((each.question, each.has_wordings) for each in rounds)
    for _ in range(6):
        best = [each.best(weights)[1] for each in rounds]
        for _ in range(10):
            slope = np.r_[ridge * weights, 0.0]
            curve = np.diag(np.r_[np.full(len(weights), ridge), 1e-3])
            for each, signals in zip(rounds, best, strict=True):
                rows = np.zeros((len(signals) + 1, len(weights) + 1))
                rows[:-1, :-1], rows[-1, -1] = signals, 1.0
                logits = rows @ np.r_[weights, elsewhere]
                chances = np.exp(logits - logits.max())
                right = np.where(np.r_[each.is_wanted, not each.is_wanted.any()], chances, 0.0)
                chances, right = chances / chances.sum(), right / right.sum()
                mean, share = chances @ rows, 1 / counts[each.question, each.has_wordings]
                slope += share * (rows.T @ (chances - right))
                curve += share * ((rows * chances[:, None]).T @ rows - np.outer(mean, mean))
            step = np.clip(np.linalg.solve(curve, slope), -2, 2)
            weights, elsewhere = np.maximum(weights - step[:-1], 0), elsewhere - step[-1]
    return weights, float(elsewhere)


def chances_of(each: Round, weights: Floats, elsewhere: float) -> Floats:
    totals = np.r_[each.best(weights)[0], elsewhere]
    found = np.exp(totals - totals.max())
    chances: Floats = found[:-1] / found.sum()
    return chances


def left_out(rounds: Sequence[Round], kept: Sequence[int]) -> list[Floats]:
    """The probabilities of every round's targets, fitted on the other sites."""
    own = [replace(each, signals=each.signals[:, kept]) for each in rounds]
    models = {
        site: fit([each for each in own if each.site != site] or own)
        for site in {each.site for each in own}
    }
    return [chances_of(each, *models[each.site]) for each in own]


def among(
    rounds: Sequence[Round], chances: Sequence[Floats], has_wordings: bool, first: int
) -> float:
    """The share of rounds with a link that leads to evidence among the first, questions alike."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for each, values in zip(rounds, chances, strict=True):
        if each.is_wanted.any() and each.has_wordings == has_wordings:
            order = np.argsort(-values, kind="stable")
            found[each.question].append(float(each.is_wanted[order[:first]].any()))
    return float(np.mean([np.mean(values) for values in found.values()]))


def report(rounds: Sequence[Round]) -> None:
    every = range(len(SIGNALS))
    for name, kept in (
        ("all signals", list(every)),
        *((f"without {SIGNALS[at]}", [n for n in every if n != at]) for at in every),
    ):
        chances = left_out(rounds, kept)
        row = [
            f"{among(rounds, chances, has_wordings, first):.3f}"
            for has_wordings in sorted({each.has_wordings for each in rounds})
            for first in (5, 10)
        ]
        print(f"{name:20} question alone, wordings @5 and @10 each: {', '.join(row)}", flush=True)
        if name == "all signals":
            calibration(rounds, chances)


def calibration(rounds: Iterable[Round], chances: Sequence[Floats]) -> None:
    values = np.concatenate(chances)
    hits = np.concatenate([each.is_wanted for each in rounds])
    for low, high in pairwise(BOUNDS):
        held = (values >= low) & (values < high)
        if held.any():
            print(f"  {low:.3f} to {high:.3f}: {held.sum()} links, mean {values[held].mean():.3f},"
                  f" led to evidence {hits[held].mean():.3f}")  # fmt: skip


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="+", type=Path, metavar="QUESTIONS SITE_ROOT")
    parser.add_argument("--wordings", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rounds: list[Round] = []
    settings = load_settings(
        None, embedding_provider="bundled", collection=f"webrag_fit_links_{getpid()}"
    )
    with ExitStack() as stack:
        async with WebRAG(settings.allowing(["127.0.0.1"])) as rag:
            try:
                for path, root in zip(arguments.sets[::2], arguments.sets[1::2], strict=True):
                    asked = [q for q in load_questions(path, limit=arguments.limit) if q.gold]
                    asked = [each for each in asked if (root / each.site).is_dir()]
                    reworded = asked
                    if arguments.wordings:
                        reworded = with_wordings(asked, arguments.wordings)
                    bases = {
                        site: stack.enter_context(serve_static_site(root / site))
                        for site in dict.fromkeys(question.site for question in asked)
                    }
                    for question, other in zip(asked, reworded, strict=True):
                        for wordings in {(), tuple(other.wordings)}:
                            rounds += await walk(rag, question, bases[question.site], wordings)
            finally:
                await rag.drop_collection()
    print(f"{len(rounds)} rounds, {sum(each.is_wanted.any() for each in rounds)} with such a link")
    report(rounds)
    weights, elsewhere = fit(rounds)
    model = {
        "weights": {n: round(w, 2) for n, w in zip(SIGNALS, weights.tolist(), strict=True)},
        "elsewhere": round(elsewhere, 2),
    }
    text = json.dumps(model)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
