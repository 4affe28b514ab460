"""Term weights of the whole corpus beside those of the filtered pages, by `webrag eval`.

Usage: python benchmarks/term_statistics.py QUESTIONS --site-root FOLDER --out FOLDER

Runs `webrag eval QUESTIONS --setting whole` once with each of the two: all sites are in one
collection, and every search is limited to one of them. Compares the run files afterwards.
"""

import argparse
from pathlib import Path

from typing_extensions import override

from webrag.cli.eval_command import compare_command, eval_command
from webrag.retrieval.models import TERM_STATISTICS, RetrievalConfig, TermStatistics
from webrag.settings import Settings


class ChosenStatistics(Settings):
    """The settings of the environment, but for what terms are counted over."""

    @override
    def retrieval_config(self) -> RetrievalConfig:
        return super().retrieval_config().model_copy(update={"statistics": chosen})


chosen: TermStatistics = "filtered"


def main() -> None:
    global chosen
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("--site-root", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    runs = []
    for chosen in reversed(TERM_STATISTICS):
        runs.append(str(options.out / f"{chosen}.jsonl"))
        given = [str(options.questions), "--site-root", str(options.site_root), "--out", runs[-1]]
        print(f"statistics: {chosen}", flush=True)
        eval_command.main(given, obj=ChosenStatistics(), standalone_mode=False)
    compare_command.main([str(options.questions), *runs], standalone_mode=False)


if __name__ == "__main__":
    main()
