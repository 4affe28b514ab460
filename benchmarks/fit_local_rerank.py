"""Fits the weights of LocalRerank, and says what they are worth on sets they were not fitted on.

Usage: python benchmarks/fit_local_rerank.py [COLLECTIONS] [--questions FILE --site-root FOLDER]
           [--per-set 100] [--features DIR] [--vectors FILE] [--write FILE]

COLLECTIONS holds files of `{docs, queries, qrels}`; those of languages other than English are left
out. With --questions and --site-root, questions over documentation sites are sets of their own.

The model is a weighted sum, fitted on pairs: within one question the relevant unit should be above
the others. Pairs count equally within a question, questions within a set, sets in all. Weights are
positive and shrunk a little. Every set is judged by weights fitted on all others, beside the
weights in use, the fused order and bm25s. --features keeps the features for the next run, --write
writes the model fitted on everything. --vectors fits for the embedding that the settings name, in
place of the bundled one.
"""

import argparse
import json
import math
import pickle
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bm25s
import llama_index.postprocessor.webrag as postprocessors
import numpy as np
import Stemmer
from cached_embedding import CachedEmbedding
from llama_index.postprocessor.webrag.rerank_features import FEATURES
from memory_corpus import Judged, letters, load_collection, load_site

IN_USE = Path(postprocessors.__file__).parent / "local_rerank.json"
COLLECTIONS = ("cacm", "cisi", "clapnq", "cranfield", "hotpot100", "musique100", "xquad_en")
SHRINKAGE = 5e-3
NEGATIVES = 60


@dataclass
class Asked:
    """One question: its candidates in fused order, their features, units and grades."""

    query: str
    features: np.ndarray
    units: np.ndarray
    grades: np.ndarray
    ideal: list[int]
    bm25: float
    passages: list[tuple[str, str, str]]  # parent, child and parent text by letters; sites only
    gold: list[list[str]]


def asked(judged: Judged) -> list[Asked]:
    corpus, bm25 = judged.corpus, Bm25(judged)
    found = []
    for name, query in judged.queries.items():
        candidates = corpus.candidates(query)
        if not len(candidates.rows):
            continue
        relevant = judged.relevant[name]
        units = np.array([judged.unit_of(row) for row in candidates.rows])
        children = [corpus.children[row] for row in candidates.rows]
        shown = judged.gold.get(name)
        found.append(
            Asked(
                query,
                corpus.features(query, candidates),
                units,
                np.array([relevant.get(unit, 0) for unit in units]),
                sorted(relevant.values(), reverse=True),
                bm25.ndcg(query, relevant),
                [
                    (c.parent, letters(c.text), letters(corpus.parents.get(c.parent, c.text)))
                    for c in children
                ]
                if shown
                else [],
                shown or [],
            )
        )
    return found


class Bm25:
    """bm25s with the usual numbers, over the same units."""

    def __init__(self, judged: Judged) -> None:
        texts: dict[int, str] = {}
        for row, child in enumerate(judged.corpus.children):
            unit = judged.unit_of(row)
            texts[unit] = f"{texts.get(unit, child.title)}\n{child.text}"
        self._units = list(texts)
        self._stemmer = Stemmer.Stemmer("english")
        self._index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self._index.index(self._tokens(list(texts.values())), show_progress=False)

    def ndcg(self, query: str, relevant: dict[int, int]) -> float:
        tokens = self._tokens([query])
        places, _ = self._index.retrieve(tokens, k=min(10, len(self._units)), show_progress=False)
        grades = [relevant.get(self._units[place], 0) for place in places[0]]
        return gain(grades) / gain(sorted(relevant.values(), reverse=True)[:10])

    def _tokens(self, texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


def gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades))


def best_of_units(each: Asked, scores: np.ndarray) -> np.ndarray:
    """Candidates best first, each unit once."""
    order = np.argsort(-scores, kind="stable")
    _, first = np.unique(each.units[order], return_index=True)
    return order[np.sort(first)]


def ndcg(each: Asked, scores: np.ndarray) -> float:
    return gain(each.grades[best_of_units(each, scores)[:10]]) / gain(each.ideal[:10])


def evidence(each: Asked, scores: np.ndarray) -> dict[str, float]:
    """What a brief would hold: parents by their best child, the first two whole."""
    best: dict[str, tuple[str, str]] = {}
    for place in np.argsort(-scores, kind="stable"):
        parent, child, whole = each.passages[place]
        best.setdefault(parent, (child, whole))
    texts = [pair[1] if rank < 2 else pair[0] for rank, pair in enumerate(best.values())]
    hit = [[any(quote in text for quote in group) for group in each.gold] for text in texts]
    figures = {f"@{k}": float(np.mean(np.any(hit[:k], axis=0))) for k in (1, 5, 10)}
    ranks = [rank for rank, found in enumerate(hit, 1) if any(found)]
    return figures | {"MRR": 1 / ranks[0] if ranks else 0.0}


def fit(sets: dict[str, list[Asked]], columns: Sequence[int]) -> np.ndarray:
    """Weights of all features, zero outside `columns`."""
    weights = np.ones(len(FEATURES))
    for _ in range(2):  # which child stands for a unit depends on the weights
        parts = [pairs(questions, weights) for questions in sets.values()]
        differences = np.concatenate([part[0] for part in parts])
        shares = np.concatenate([part[1] for part in parts]) / len(parts)
        spread = differences.std(axis=0) + 1e-9
        free = list(columns)
        while True:
            fitted = newton(differences[:, free] / spread[free], shares)
            if not free or fitted.min() >= 0:
                break
            free.pop(int(fitted.argmin()))
        weights = np.zeros(len(FEATURES))
        weights[free] = fitted / spread[free]
    return weights


def pairs(questions: Sequence[Asked], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, shares = [], []
    for each in questions:
        order = best_of_units(each, each.features @ weights)
        good = each.features[order[each.grades[order] > 0]]
        bad = each.features[order[each.grades[order] == 0]][:NEGATIVES]
        if len(good) and len(bad):
            rows.append((good[:, None] - bad[None]).reshape(-1, len(FEATURES)))
            shares.append(np.full(len(rows[-1]), 1 / len(rows[-1])))
    return np.concatenate(rows), np.concatenate(shares) / len(rows)


def newton(rows: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Minimum of the weighted logistic loss with a quadratic penalty."""
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        miss = 1 / (1 + np.exp(np.clip(rows @ weights, -30, 30)))
        gradient = SHRINKAGE * weights - rows.T @ (shares * miss)
        curvature = (rows * (shares * miss * (1 - miss))[:, None]).T @ rows
        step = np.linalg.solve(curvature + SHRINKAGE * np.eye(len(weights)), gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def load_sets(options: argparse.Namespace) -> dict[str, list[Asked]]:
    questions = [
        question
        for line in (options.questions.read_text("utf-8").splitlines() if options.questions else ())
        if (question := json.loads(line)).get("gold")
    ]
    sites = list(dict.fromkeys(question["site"] for question in questions))
    sets = {}
    embedding = CachedEmbedding(options.vectors) if options.vectors else None
    for name in (*(COLLECTIONS if options.collections else ()), *sites):
        kept = options.features / f"{name}.pickle" if options.features else None
        if kept and kept.exists():
            sets[name] = pickle.loads(kept.read_bytes())
            continue
        if name in sites:
            own = [question for question in questions if question["site"] == name]
            sets[name] = asked(load_site(options.site_root / name, own, embedding))
        else:
            path = options.collections / f"{name}.json"
            total = len(json.loads(path.read_text("utf-8"))["qrels"])
            every = max(1, total // options.per_set)
            sets[name] = asked(load_collection(path, every, embedding))
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps(sets[name]))
        print(f"{name}: {len(sets[name])} questions", file=sys.stderr, flush=True)
    return sets


def weights_in_use() -> np.ndarray:
    known = json.loads(IN_USE.read_text("utf-8"))["weights"]
    return np.array([known.get(name, 0.0) for name in FEATURES])


def held_out(sets: dict[str, list[Asked]], columns: Sequence[int]) -> dict[str, np.ndarray]:
    """For each set the weights fitted on all others."""
    return {
        name: fit({other: sets[other] for other in sets if other != name}, columns) for name in sets
    }


def best_scores(questions: Sequence[Asked], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best score of each question, and whether that passage is a relevant one."""
    scores = [each.features @ weights for each in questions]
    tops = [int(each.argmax()) for each in scores]
    right = [bool(each.grades[top]) for each, top in zip(questions, tops, strict=True)]
    return np.array([max(each) for each in scores]), np.array(right, float)


def curve(scores: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Centre and slope of the logistic curve through best scores and their being right."""
    rows = np.stack([scores, np.ones(len(scores))], axis=1)
    slope, offset = 0.1, 0.0
    for _ in range(50):
        expected = 1 / (1 + np.exp(-(rows @ (slope, offset))))
        curvature = (rows * (expected * (1 - expected))[:, None]).T @ rows + 1e-6 * np.eye(2)
        step = np.linalg.solve(curvature, rows.T @ (right - expected))
        slope, offset = slope + step[0], offset + step[1]
    return -offset / slope, slope


def area(scores: np.ndarray, right: np.ndarray) -> float:
    """Chance that a right one is scored above a wrong one."""
    good, bad = scores[right > 0][:, None], scores[right == 0][None]
    if not (good.size and bad.size):
        return math.nan
    return float(((good > bad) + 0.5 * (good == bad)).mean())


def report(sets: dict[str, list[Asked]], weights: dict[str, dict[str, np.ndarray]]) -> None:
    print(f"nDCG@10            bm25s   fused   {'  '.join(f'{name:>8}' for name in weights)}")
    means = []
    for name, questions in sets.items():
        row = [
            np.mean([each.bm25 for each in questions]),
            np.mean([ndcg(each, -np.arange(len(each.units))) for each in questions]),
            *(
                np.mean([ndcg(q, q.features @ by[name]) for q in questions])
                for by in weights.values()
            ),
        ]
        means.append(row)
        print(f"{name:<12} {len(questions):>4}  " + "  ".join(f"{value:8.4f}" for value in row))
    print(f"{'mean':<12}       " + "  ".join(f"{value:8.4f}" for value in np.mean(means, axis=0)))
    sites = {name: each for name, each in sets.items() if each[0].passages}
    for label, by in weights.items() if sites else ():
        print(f"\n{label}: evidence recall, and area of the best score over its being right")
        total = []
        for name, questions in sites.items():
            rows = [evidence(each, each.features @ by[name]) for each in questions]
            total += rows
            scores, right = best_scores(questions, by[name])
            print(f"{name:<12} {figures(rows)}  area {area(scores, right):.3f}")
        print(f"{'all':<12} {figures(total)}")


def figures(rows: Sequence[dict[str, float]]) -> str:
    return "  ".join(f"{key} {np.mean([row[key] for row in rows]):.3f}" for key in rows[0])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("collections", type=Path, nargs="?")
    options.add_argument("--questions", type=Path)
    options.add_argument("--site-root", type=Path)
    options.add_argument("--per-set", type=int, default=75, help="questions of a collection")
    options.add_argument("--features", type=Path, help="folder to keep the features in")
    options.add_argument(
        "--vectors", type=Path, help="file to keep the vectors of EMBEDDING_MODEL in"
    )
    options.add_argument("--without", nargs="*", default=[], choices=FEATURES)
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    if given.collections is None and given.questions is None:
        options.error("give COLLECTIONS, --questions or both")
    sets = load_sets(given)
    columns = [place for place, name in enumerate(FEATURES) if name not in given.without]
    by_others = held_out(sets, columns)
    report(sets, {"in use": dict.fromkeys(sets, weights_in_use()), "held out": by_others})

    weights = fit(sets, columns)
    judged = {name: each for name, each in sets.items() if each[0].passages} or sets
    for label, by in (
        ("in use", dict.fromkeys(sets, weights_in_use())),
        ("held out", by_others),
        ("fitted on all", dict.fromkeys(sets, weights)),
    ):
        found = [best_scores(each, by[name]) for name, each in judged.items()]
        scores, right = (np.concatenate(parts) for parts in zip(*found, strict=True))
        centre, slope = curve(scores, right)
        print(
            f"\n{label}: best score {scores.mean():.2f} +- {scores.std():.2f}, right in"
            f" {right.mean():.2f}; curve centre {centre:.2f} slope {slope:.2f}"
        )
    # Thresholds elsewhere are written for the curve in use: its numbers keep their meaning when
    # the best scores of the new weights take the places of the old ones.
    old, new = (
        np.concatenate([best_scores(each, by)[0] for each in judged.values()])
        for by in (weights_in_use(), weights)
    )
    curve_in_use = json.loads(IN_USE.read_text("utf-8"))["calibration"]
    centre = new.mean() + (curve_in_use["centre"] - old.mean()) * new.std() / old.std()
    slope = curve_in_use["slope"] * old.std() / new.std()
    model = {
        "weights": {name: round(float(weights[place]), 3) for place, name in enumerate(FEATURES)},
        "calibration": {"centre": round(centre, 2), "slope": round(slope, 2)},
        "provenance": {
            "command": shlex.join(["python", "benchmarks/fit_local_rerank.py"])
            + " COLLECTIONS --questions FILE --site-root FOLDER",
            "date": datetime.now(UTC).date().isoformat(),
            "sets": {name: len(each) for name, each in sets.items()},
            "held_out_ndcg_at_10": {
                name: round(
                    float(np.mean([ndcg(q, q.features @ by_others[name]) for q in each])), 4
                )
                for name, each in sets.items()
            },
        },
    }
    text = json.dumps(model, indent=2) + "\n"
    print(f"\n{text}")
    if given.write:
        given.write.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
