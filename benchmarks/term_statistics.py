"""Term weights of the whole corpus beside those of the filtered pages, by `webrag eval`.

Usage: python benchmarks/term_statistics.py QUESTIONS --site-root FOLDER --out FOLDER [--scope page]

Runs `webrag eval QUESTIONS --setting whole` once with each of the two: all sites are in one
collection, and every search is limited to one of them, or with `--scope page` to the first page
that holds the answer (without an answer, to the seed page). Compares the run files afterwards, and
says how many results differ in their order and in their confidence.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from typing_extensions import override

from webrag import settings
from webrag.cli.eval_command import compare_command, eval_command
from webrag.evaluation import runner
from webrag.evaluation.questions import Question
from webrag.evaluation.runs import RunRecord, read_run
from webrag.retrieval.models import TERM_STATISTICS, RetrievalConfig, TermStatistics


class ChosenStatistics(settings.Settings):
    """The settings of the environment, but for what terms are counted over."""

    @override
    def retrieval_config(self) -> RetrievalConfig:
        return super().retrieval_config().model_copy(update={"statistics": chosen})


class OnePage(runner.Evaluation):
    """Asks each question of a single page, among the pages of all sites."""

    @override
    async def run_whole(
        self, questions: Sequence[Question], *, max_pages: int = 1000
    ) -> list[RunRecord]:
        records = []
        async with self._open_fresh() as researcher:
            for name in dict.fromkeys(question.site for question in questions):
                await self._ingest(researcher, name, max_pages)
            for question in questions:
                page = question.gold[0].page if question.gold else question.seed_url
                url = urljoin(self._sites[question.site].base_url, page)
                ask = researcher.search(question.query, source_urls=url)
                records.append(await self._record(researcher, question, ask))
        return records


chosen: TermStatistics = "filtered"


def load_settings(env_file: Path | None = None, **overrides: Any) -> ChosenStatistics:
    return ChosenStatistics(_env_file=env_file, **overrides)


def main() -> None:
    global chosen
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("--site-root", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scope", choices=["site", "page"], default="site")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    # The command reads the settings by itself.
    settings.load_settings = load_settings
    if options.scope == "page":
        runner.Evaluation = OnePage
    runs = []
    for chosen in reversed(TERM_STATISTICS):
        runs.append(str(options.out / f"{options.scope}-{chosen}.jsonl"))
        given = [str(options.questions), "--site-root", str(options.site_root), "--out", runs[-1]]
        print(f"statistics: {chosen}", flush=True)
        eval_command.main(given, standalone_mode=False)
    compare_command.main([str(options.questions), *runs], standalone_mode=False)
    pairs = list(zip(*map(read_texts, runs), strict=True))
    for place, what in enumerate(("passages or their order", "confidence")):
        print(f"{what} differ: {sum(a[place] != b[place] for a, b in pairs)} of {len(pairs)}")


def read_texts(path: str) -> list[tuple[list[str], float | None]]:
    return [
        ([found.text for found in record.retrieved], record.confidence)
        for record in read_run(Path(path)).values()
    ]


if __name__ == "__main__":
    main()
