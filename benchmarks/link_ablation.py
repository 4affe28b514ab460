"""What the site's own map and the links of pages find, and how recall grows with pages.

Usage: python benchmarks/link_ablation.py QUESTIONS SITE_ROOT [--wordings FILE] [--limit N]
       [--variants neither,links,both] [--delay SECONDS]

Every question starts from its seed page and an empty corpus, over HTTP, as `webrag eval --setting
seed --deep` does. `neither` reads the seed page alone; `links` reads no map; `pages_N`, for 2, 5,
10, 15 and 25, fetches so many pages at most. With `--delay` the sites take so long for each answer.
Printed are the recall of evidence in the first ten passages, overall, by site and by the distance
of the farthest evidence from the seed in clicks (where the questions say it, `hops`), the pages
obtained, the share of them that hold no evidence, the time, and how often each action of the loop
raised the best score by 0.02 or more.
"""

import argparse
import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import fmean, median
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

from webrag.app import WebRAG
from webrag.demo import serve_static_site
from webrag.evaluation.metrics import QuestionScore, score_question
from webrag.evaluation.questions import (
    Question,
    ResultRecord,
    RunRecord,
    load_questions,
    with_wordings,
)
from webrag.orchestration.models import (
    ExpansionConfig,
    OrchestrationConfig,
    OrchestrationResult,
    SiteMapConfig,
)
from webrag.settings import Settings, load_settings

RISE = 0.02
NO_MAP = ExpansionConfig(site_map=SiteMapConfig(enabled=False))
VARIANTS: Mapping[str, dict[str, Any]] = {
    "neither": {},
    "links": {"orchestration": OrchestrationConfig(expansion=NO_MAP)},
    "both": {},
    **{f"pages_{most}": {"max_pages_per_run": most} for most in (2, 5, 10, 15, 25)},
}
Run = list[tuple[Question, QuestionScore, OrchestrationResult]]


@contextmanager
def served(directory: Path, delay_s: float) -> Iterator[str]:
    """Serve a site that takes its time, by a proxy before the static server."""
    with serve_static_site(directory) as base:
        if not delay_s:
            yield base
            return

        class Slow(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                time.sleep(delay_s)
                try:
                    with urlopen(urljoin(base, self.path)) as found:
                        status, kind, body = 200, found.headers["Content-Type"], found.read()
                except HTTPError as error:
                    status, kind, body = error.code, "text/plain", b""
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Keep the terminal for the table."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            server.server_close()


async def run(
    name: str, questions: Sequence[Question], bases: Mapping[str, str], settings: Settings
) -> Run:
    own = settings.model_copy(
        update={**VARIANTS[name], "collection": f"webrag_link_ablation_{os.getpid()}"}
    )
    rows: Run = []
    async with WebRAG(own.allowing([urlsplit(base).netloc for base in bases.values()])) as rag:
        try:
            for question in questions:
                await rag.clear()
                result = await rag.answer(
                    urljoin(bases[question.site], question.seed_url),
                    question.query,
                    wordings=question.wordings,
                    research_mode="fast" if name == "neither" else "deep",
                )
                blocks = rag.evidence(result, every_passage=True)
                record = RunRecord(
                    id=question.id,
                    retrieved=tuple(ResultRecord(url=b.url, text=b.text) for b in blocks),
                    urls_fetched=result.urls_fetched,
                    ms=result.timing.total_ms,
                    abstained=result.confidence_band == "none",
                )
                rows.append((question, score_question(question, record), result))
        finally:
            await rag.drop_collection()
    return rows


class Table:
    """Prints a row for each variant as soon as it is there."""

    def __init__(self, questions: Sequence[Question], hops: Mapping[str, int]) -> None:
        self._columns: dict[str, list[Question]] = {"all": list(questions)}
        for site in dict.fromkeys(question.site for question in questions):
            self._columns[site] = [q for q in self._columns["all"] if q.site == site]
        for clicks in sorted({hops[q.id] for q in questions if q.id in hops}):
            self._columns[f"{clicks} clicks"] = [q for q in questions if hops.get(q.id) == clicks]
        print("| evidence @10 | " + " | ".join(self._columns) + " | pages | no evidence | p50 |")
        print("| --- " * (len(self._columns) + 4) + "|")
        counts = (str(len(asked)) for asked in self._columns.values())
        print(f"| questions | {' | '.join(counts)} | | | |", flush=True)

    def row(self, name: str, rows: Run) -> None:
        found = {question.id: score.evidence[10] for question, score, _ in rows}
        shares = (mean(found[q.id] for q in asked) for asked in self._columns.values())
        print(f"| {name} | {' | '.join(shares)} | {costs(rows)} |", flush=True)


def mean(values: Iterable[float]) -> str:
    found = list(values)
    return f"{fmean(found):.3f}" if found else "-"


def costs(rows: Run) -> str:
    """Pages of a question, the share of those after the seed without evidence, and the time."""
    fetched = [
        (question, url) for question, _, result in rows for url in set(result.urls_fetched[1:])
    ]
    useless = [not holds_evidence(question, url) for question, url in fetched if question.gold]
    pages = fmean(len(set(result.urls_fetched)) for _, _, result in rows)
    return f"{pages:.1f} | {mean(useless)} | {median(r.timing.total_ms for _, _, r in rows):.0f} ms"


def holds_evidence(question: Question, url: str) -> bool:
    wanted = (passage.page for gold in question.gold or () for passage in gold.passages)
    return any(url.endswith("/" + page) for page in wanted)


def described_actions(name: str, rows: Run) -> str:
    rounds: Counter[str] = Counter()
    rose: Counter[str] = Counter()
    for _, _, result in rows:
        for step in result.expansion_steps:
            rounds[step.decision] += 1
            rose[step.decision] += step.top_score_after >= step.top_score_before + RISE
    stops = Counter(result.final_decision.rule for _, _, result in rows)
    earned = ", ".join(f"{action} {rose[action]} of {rounds[action]}" for action in rounds)
    return f"{name}: the best score rose in {earned}; stopped by {dict(stops.most_common())}"


def distances_in(path: Path) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        for gold in row.get("gold") or ():
            if "hops" in gold:
                found[row["id"]] = max(found[row["id"]], gold["hops"])
    return dict(found)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("site_root", type=Path)
    parser.add_argument("--wordings", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--variants", default="neither,links,both")
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    questions = load_questions(arguments.questions, limit=arguments.limit)
    # A site root may hold some of the sites only; without an answer there is nothing to find.
    questions = [
        each for each in questions if each.gold and (arguments.site_root / each.site).is_dir()
    ]
    if arguments.wordings is not None:
        questions = with_wordings(questions, arguments.wordings)
    if not questions:
        parser.error(f"{arguments.site_root} holds no site that a question is about.")
    variants = arguments.variants.split(",")
    if unknown := set(variants) - set(VARIANTS):
        parser.error(f"{', '.join(unknown)}: there are {', '.join(VARIANTS)}.")
    settings = load_settings(None, embedding_provider="bundled").allowing(["127.0.0.1"])
    table = Table(questions, distances_in(arguments.questions))
    actions: list[str] = []
    with ExitStack() as stack:
        bases = {
            name: stack.enter_context(served(arguments.site_root / name, arguments.delay))
            for name in dict.fromkeys(question.site for question in questions)
        }
        for name in variants:
            rows = await run(name, questions, bases, settings)
            table.row(name, rows)
            actions.append(described_actions(name, rows))
    print("\n".join(actions))


if __name__ == "__main__":
    asyncio.run(main())
