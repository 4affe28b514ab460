"""Where evidence is lost on its way to the first ten passages of a brief.

Usage: python benchmarks/lost_evidence.py --questions FILE --site-root FOLDER

FILE has one question a line, FOLDER one folder of HTML files per site; every site is indexed whole
and searched for its own questions, questions in several parts for each part. Prints every quotation
that is missing, the kind of its question, where its wording differs from the page's, its fate, and
the places that its parent chunk and its page reached; then how often each fate was met.
"""

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from llama_index.postprocessor.webrag.local_scoring import weighted_sum
from memory_corpus import Judged, letters, load_site

from webrag.orchestration.question.patterns import decompose

SHOWN = 10
WHOLE = 2
FATES = (
    "found",
    "its chunk was shown by another child",
    "ranked below ten",
    "not among the candidates",
    "cut by a parent",
    "not in the stored text",
)


@dataclass
class Ranked:
    """A parent and its best child, by rows of the corpus.

    Attributes:
        score: Of the best child.
        child: Row of the best child.
    """

    score: float
    child: int


def ranked_parents(judged: Judged, query: str) -> dict[str, Ranked]:
    """Parents best first, as the product merges the parts of a question."""
    corpus = judged.corpus
    best: dict[str, Ranked] = {}
    for part in decompose(query)[0]:
        found = corpus.candidates(part)
        scores = weighted_sum(corpus.features(part, found)) if len(found.rows) else []
        for row, score in zip(found.rows, scores, strict=True):
            parent = corpus.children[row].parent
            if parent not in best or best[parent].score < score:
                best[parent] = Ranked(float(score), int(row))
    return dict(sorted(best.items(), key=lambda item: -item[1].score))


def fate(judged: Judged, ranked: dict[str, Ranked], quotes: list[str]) -> tuple[str, str]:
    """What became of a quotation, and where its parent and its page came."""
    corpus = judged.corpus
    texts = {parent: letters(text) for parent, text in corpus.parents.items()}
    holders = {parent for parent, text in texts.items() if any(q in text for q in quotes)}
    if not holders:
        whole = [letters(page.markdown) for page in corpus.pages]
        return FATES[4 if any(q in text for q in quotes for text in whole) else 5], ""
    pages = {child.page for child in corpus.children if child.parent in holders}
    order = list(ranked)
    page_order = list(dict.fromkeys(corpus.children[each.child].page for each in ranked.values()))
    shown = [
        texts[parent] if place < WHOLE else letters(corpus.children[ranked[parent].child].text)
        for place, parent in enumerate(order[:SHOWN])
    ]
    place = min((order.index(each) + 1 for each in holders if each in ranked), default=0)
    page = min((page_order.index(each) + 1 for each in pages if each in page_order), default=0)
    places = f"chunk {place or '-'}, page {page or '-'}"
    if any(quote in text for text in shown for quote in quotes):
        return FATES[0], places
    return FATES[3 if not place else 1 if place <= SHOWN else 2], places


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=Path, required=True)
    options.add_argument("--site-root", type=Path, required=True)
    given = options.parse_args()
    lines = given.questions.read_text("utf-8").splitlines()
    questions = [question for line in lines if (question := json.loads(line)).get("gold")]
    fates: Counter[str] = Counter()
    unlike: Counter[str] = Counter()
    for site in dict.fromkeys(question["site"] for question in questions):
        own = [question for question in questions if question["site"] == site]
        judged = load_site(given.site_root / site, own)
        for question in own:
            ranked = ranked_parents(judged, question["query"])
            wording = "unlike the page" if question["vocab_mismatch"] else "like the page"
            for quotes in judged.gold[question["id"]]:
                what, places = fate(judged, ranked, quotes)
                fates[what] += 1
                unlike[what] += question["vocab_mismatch"]
                if what != FATES[0]:
                    print(
                        f"{question['id']:<8} {question['type']:<11} {wording:<16} {what}; {places}"
                    )
    print(f"\n{'quotations':<40} {'all':>4} {'wording unlike the page':>24}")
    for what in FATES:
        print(f"{what:<40} {fates[what]:>4} {unlike[what]:>24}")


if __name__ == "__main__":
    main()
