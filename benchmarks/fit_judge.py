"""Fits the judge of units on questions over many sources, and measures it on sources left out.

Usage: python benchmarks/fit_judge.py SITES [--questions FOLDER] [--results FOLDER] [--write FILE]
       python benchmarks/fit_judge.py SITES --part end

SITES is what `fetch_sites.py benchmarks/questions/units/sources.jsonl SITES` has brought. Each
source of the parts `fit` and `choose` is ingested whole into a collection of its own, and each of
its questions is searched for alone and with its wordings; what came back is kept below --results, a
file a source, which is not asked for again. Weights are fitted on it, written by --write,
in the package to `webrag/orchestration/judge.json`. Every figure is of weights fitted without the
source it is about; with --part they are those of the package. The part `end` is for one measurement
after all others.

    first, three   the first unit holds the answer, one of the first three does
    product        the reference: the quotations that the search itself showed
    high, right    how many are called high, and for which share of them `three` is true
    lost           `three` is true, but the confidence is below .5
    claimed        of the questions that the source does not answer, called medium or high

The scores of units are a conditional logit: of all units of a question the right ones are to have
the highest, with a penalty on squared weights. The chance is a logistic regression on `SIGNS`; what
a missing figure lowers is fitted after the others. Then follows, by band, what is shown of the
three without those far below the best: questions it answers, its quotations and their characters.
"""

import argparse
import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urljoin

import numpy as np
from llama_index.postprocessor.webrag import LocalRerank
from numpy.typing import NDArray
from quotations import UNITS, Asked, begun, found, lines, opened, read_questions, share
from scipy.optimize import minimize
from scipy.special import expit

from webrag.demo import serve_static_site
from webrag.embedding.bundled_model import BundledVectors
from webrag.lexical.spelling import respelled
from webrag.orchestration import judge
from webrag.orchestration.confidence import HIGH, LOCAL, LOW, MEDIUM, band
from webrag.orchestration.models import OrchestrationResult
from webrag.presentation.brief.sections import cited_quotes

Floats = NDArray[np.float64]

ENCODE = BundledVectors().encode
FOLDS = 9
UNIT_PENALTY = 60.0
CHANCE_PENALTY = 3.0
MISSING_SIGNS = 2  # the last of `SIGNS`
DISTANCES = (0.0, 1.0, 1.6, 2.0, 2.5, 3.0, 4.0)
# Of another name, so that the passages keep the order that is judged.
SCORED = LOCAL.model_copy(update={"name": "passages"})
# The first unit is fitted, three are shown: of longer ones one more often answers. Added to the
# weight of length, 0, .3, .6 and 1 give .789, .798, .798, .798 for `three` alone, .918, .921, .921,
# .922 with wordings, of 210, 226, 237 and 250 characters.
LENGTH_GAIN = 0.4


class Case(NamedTuple):
    """A question as it was searched for, and the units of what was found."""

    question: Asked
    asked: judge.Asked
    found: judge.Found
    texts: Sequence[str]
    right: NDArray[np.bool_]
    shown: Sequence[str]  # what the search itself quoted


async def search(questions: Sequence[Asked], pages: Sequence[str], out: Path) -> None:
    """Ingest a source and keep what each question finds, alone and with its wordings."""
    partial = out.with_suffix(".partial")
    async with opened(pages[0], reranker=LocalRerank(), score_profile=SCORED) as rag:
        await rag.ingest(pages)
        with partial.open("w", encoding="utf-8") as file:
            for question in questions:
                for wordings in ((), question.wordings):
                    result = await rag.search(question.query, wordings=wordings or None)
                    quotes = cited_quotes(result, rag.evidence(result))
                    row = {
                        "id": question.id,
                        "quotes": [each.citation.verbatim_text for each in quotes],
                        "result": result.model_dump(mode="json"),
                    }
                    file.write(json.dumps(row) + "\n")
    partial.replace(out)


def read_case(question: Asked, row: dict[str, Any]) -> Case:
    """The units of what was found for a question, with those that answer it."""
    result = OrchestrationResult.model_validate(row["result"])
    matched = [item for item in result.chunks if not item.is_locality_expanded]
    matched = sorted(matched, key=lambda item: -item.reranked_score)[: judge.PASSAGES]
    weights = dict(result.term_idf)
    for terms in result.wordings.values():
        weights |= terms
    text = respelled(result.query, result.also_searched)
    asked = judge.Asked(text, tuple(result.wordings), weights, ENCODE)
    units = judge.read_units(asked, matched, ENCODE)
    texts = [matched[rank].chunk.text[each.start : each.end] for rank, each in units.units]
    right = np.array([begun(question, [each]) for each in texts], bool)
    reworded = question if result.wordings else question.model_copy(update={"wordings": ()})
    return Case(reworded, asked, units, texts, right, row["quotes"])


def fitted_units(cases: Iterable[Case]) -> Floats:
    """The weights of `FEATURES`: a conditional logit."""
    answered = [each for each in cases if each.right.any()]
    rows = np.concatenate([each.found.features for each in answered])
    scale = rows.std(axis=0) + 1e-6
    rows /= scale
    right = np.concatenate([each.right for each in answered])
    lengths = [len(each.right) for each in answered]
    starts, owners = np.cumsum([0, *lengths[:-1]]), np.repeat(np.arange(len(lengths)), lengths)

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights
        most = np.maximum.reduceat(scores, starts)
        odds = np.exp(scores - most[owners])
        sums = np.add.reduceat(odds, starts)
        kept = np.add.reduceat(odds * right, starts) + 1e-12
        value = float((np.log(sums) - np.log(kept)).sum())
        slope = rows.T @ (odds / sums[owners] - odds * right / kept[owners])
        penalty = UNIT_PENALTY * weights
        return value + float(penalty @ weights) / 2, np.asarray(slope + penalty)

    found = np.asarray(minimize(loss, np.zeros(len(scale)), jac=True, method="L-BFGS-B").x / scale)
    found[judge.FEATURES.index("length")] += LENGTH_GAIN
    return found


def fitted_chance(signs: Floats, right: NDArray[np.bool_], known: Floats | None = None) -> Floats:
    """The weights of signs: a logistic regression, with a constant after them or known scores."""
    scale = signs.std(axis=0) + 1e-6
    rows = (
        signs / scale
        if known is not None
        else np.column_stack([signs / scale, np.ones(len(signs))])
    )
    penalty = CHANCE_PENALTY * np.array([*np.ones(len(scale)), 0.0])[: rows.shape[1]]

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows @ weights + (0.0 if known is None else known)
        value = np.logaddexp(0, scores) - right * scores
        slope = rows.T @ (expit(scores) - right) + penalty * weights
        return float(value.sum() + penalty @ weights**2 / 2), np.asarray(slope)

    found = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B").x
    return np.asarray(found / np.append(scale, 1.0)[: rows.shape[1]])


class Shown(NamedTuple):
    """What weights make of a case."""

    case: Case
    signs: Sequence[float]
    texts: Sequence[str]
    scores: Sequence[float]

    @property
    def three(self) -> bool:
        return found(self.case.question, self.texts)


def units_of(cases: Sequence[Case]) -> tuple[Floats, Floats]:
    """The weights of `FEATURES` without other wordings and with them, which both kinds teach."""
    return fitted_units(each for each in cases if not each.asked.is_reworded), fitted_units(cases)


def shown(case: Case, weights: Sequence[Floats]) -> Shown | None:
    """The best three units; None where there is no unit."""
    if not case.texts:
        return None
    scores = case.found.features @ weights[case.asked.is_reworded]
    chosen = judge.best_apart(case.found, scores, most=3)
    signs = judge.signs_of(case.asked, case.found, scores, chosen)
    texts = [case.texts[each] for each in chosen]
    return Shown(case, signs, texts, scores[chosen].tolist())


def folds(cases: Sequence[Case]) -> list[set[str]]:
    """The sources that are left out together."""
    sites = sorted({case.question.site for case in cases})
    return [set(sites[each::FOLDS]) for each in range(min(FOLDS, len(sites)))]


def tried(cases: Sequence[Case]) -> list[Shown]:
    """The units shown for each case by weights that were fitted without its source."""
    found: list[Shown] = []
    for out in folds(cases):
        weights = units_of([case for case in cases if case.question.site not in out])
        shown_here = (shown(case, weights) for case in cases if case.question.site in out)
        found += [each for each in shown_here if each is not None]
    return found


def chances(found: Sequence[Shown]) -> tuple[Floats, Floats]:
    """The weights of the chance without other wordings, and with them."""
    alone, reworded = (
        [each for each in found if each.case.asked.is_reworded == wanted]
        for wanted in (False, True)
    )
    return chance_of(alone), chance_of(reworded)


def chance_of(found: Sequence[Shown]) -> Floats:
    """The weights of `SIGNS`, and the constant after them.

    Those of a missing figure only lower what the others say: who makes up a question without an
    answer asks for figures more often than people do (.60 of them, .17 of the others).
    """
    signs = np.array([each.signs for each in found])
    right = np.array([each.three for each in found])
    others, missing = signs[:, :-MISSING_SIGNS], signs[:, -MISSING_SIGNS:]
    weights = fitted_chance(others, right)
    known = others @ weights[:-1] + weights[-1]
    lowered = fitted_chance(missing, right, known)
    return np.concatenate([weights[:-1], lowered, weights[-1:]])


def fitted(cases: Sequence[Case], found: Sequence[Shown]) -> judge.JudgeWeights:
    """The weights for the package; the chance is that of units of sources left out."""

    def rounded(rows: tuple[Floats, Floats]) -> tuple[tuple[float, ...], tuple[float, ...]]:
        alone, reworded = (tuple(float(f"{each:.4g}") for each in row) for row in rows)
        return alone, reworded

    return judge.JudgeWeights(units=rounded(units_of(cases)), chance=rounded(chances(found)))


class Judged(NamedTuple):
    """The units shown for a case, and the confidence in them."""

    case: Case
    texts: Sequence[str]
    scores: Sequence[float]
    confidence: float


def judged(best: Shown, chance: tuple[Floats, Floats]) -> Judged:
    logit = np.array([*best.signs, 1.0]) @ chance[best.case.asked.is_reworded]
    return Judged(best.case, best.texts, best.scores, float(expit(logit)))


def measured(cases: Sequence[Case], found: Sequence[Shown]) -> list[Judged]:
    """Every case judged by weights that were fitted without its source."""
    results = []
    for out in folds(cases):
        chance = chances([each for each in found if each.case.question.site not in out])
        own = (each for each in found if each.case.question.site in out)
        results += [judged(each, chance) for each in own]
    return results


def by_package(cases: Iterable[Case]) -> list[Judged]:
    """Every case judged by the weights of the package."""
    model = judge.fitted_weights()
    alone, reworded = map(np.array, model.chance)
    units = [np.array(row) for row in model.units]
    found = (shown(case, units) for case in cases)
    return [judged(each, (alone, reworded)) for each in found if each]


def figures(name: str, results: Sequence[Judged]) -> str:
    asked = [each for each in results if each.case.question.gold]
    three = [found(each.case.question, each.texts) for each in asked]
    high = [true for each, true in zip(asked, three, strict=True) if each.confidence >= HIGH]
    lost = (true and each.confidence < LOW for each, true in zip(asked, three, strict=True))
    claimed = [e.confidence >= MEDIUM for e in results if not e.case.question.gold]
    columns = [
        share(begun(each.case.question, each.texts) for each in asked),
        share(three),
        share(begun(each.case.question, each.case.shown) for each in asked),
        share(found(each.case.question, each.case.shown[:3]) for each in asked),
        str(len(high)),
        share(high),
        share(lost),
        f"{sum(claimed)}/{len(claimed)}",
    ]
    return f"{name:<24}{len(asked):>5}" + "".join(f"{each:>10}" for each in columns)


def table(title: str, results: Sequence[Judged]) -> None:
    names = ("first", "three", "product 1", "product 3", "high", "right", "lost", "claimed")
    print(f"\n{title:<24}{'n':>5}" + "".join(f"{each:>10}" for each in names))
    print(figures("all", results))
    for field in ("source_kind", "type", "asked", "language"):
        print(f"by {field}")
        for value in sorted({getattr(each.case.question, field) for each in results}):
            own = [each for each in results if getattr(each.case.question, field) == value]
            print(figures(f"  {value}", own))


def within(each: Judged, far: float) -> list[str]:
    least = each.scores[0] - far
    return [text for text, score in zip(each.texts, each.scores, strict=True) if score >= least]


def distances(results: Sequence[Judged]) -> None:
    print(f"\n{'least below the best':<24}{'n':>5}{'right':>10}{'shown':>10}{'characters':>12}")
    for name in ("high", "medium", "low", "none"):
        own = [each for each in results if band(each.confidence) == name]
        asked = [each for each in own if each.case.question.gold]
        for far in DISTANCES if own else ():
            texts = [within(each, far) for each in own]
            right = sum(found(e.case.question, shown) for e, shown in zip(own, texts, strict=True))
            shown = sum(map(len, texts)) / len(own)
            characters = sum(len(text) for each in texts for text in each) / len(own)
            row = f"{len(asked):>5}{right:>10}{shown:>10.2f}{characters:>12.0f}"
            print(f"{f'{name}, {far:g}':<24}{row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sites", type=Path)
    parser.add_argument("--questions", type=Path, default=UNITS)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--part", action="append")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    kinds = {each["source"]: each["kind"] for each in lines(given.questions / "sources.jsonl")}
    questions = read_questions(given.questions, kinds)
    parts = json.loads((given.questions / "split.json").read_text("utf-8"))
    wanted = given.part or ["fit", "choose"]
    given.results.mkdir(parents=True, exist_ok=True)
    cases: list[Case] = []
    for name in sorted(source for source, part in parts.items() if part in wanted):
        asked = {each.id: each for each in questions if each.site == name}
        kept = given.results / f"{name}.jsonl"
        if not kept.is_file():
            folder = given.sites / name
            files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
            with serve_static_site(folder) as address:
                pages = [urljoin(address, quote(each)) for each in files]
                asyncio.run(search([*asked.values()], pages, kept))
        cases += [read_case(asked[row["id"]], row) for row in lines(kept)]
        print(f"{name}: {len(asked)} questions", flush=True)
    found_units = [] if given.part else tried(cases)
    results = by_package(cases) if given.part else measured(cases, found_units)
    table("alone", [each for each in results if not each.case.asked.is_reworded])
    table("with wordings", [each for each in results if each.case.asked.is_reworded])
    distances(results)
    if given.write and not given.part:
        model = fitted(cases, found_units)
        given.write.write_text(model.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
