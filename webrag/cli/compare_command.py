"""`webrag compare`: two evaluations of the same questions, side by side."""

from pathlib import Path

import click

from webrag.cli.output import print_columns
from webrag.errors import InputError

__all__ = ["compare_command"]


@click.command("compare", short_help="Compare two evaluations.")
@click.argument("questions", type=click.Path(path_type=Path))
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
def compare_command(questions: Path, first: Path, second: Path) -> None:
    """Compare the run files FIRST and SECOND of `webrag eval` on QUESTIONS, question by question.

    Each figure is given for both, with the 95 % interval of its change and the probability that
    chance alone makes so large a change: by a permutation test of the values, and by a sign test
    of the questions that became better and worse. Nothing is asked again.
    """
    from webrag.evaluation.comparison import compare_scores
    from webrag.evaluation.metrics import score_question
    from webrag.evaluation.questions import load_questions
    from webrag.evaluation.report import comparison_rows
    from webrag.evaluation.runs import read_run

    asked = load_questions(questions)
    runs = [read_run(first), read_run(second)]
    judged = [
        {each.id: score_question(each, run[each.id]) for each in asked if each.id in run}
        for run in runs
    ]
    figures = compare_scores(*judged)
    if not figures:
        raise InputError(f"No question of {questions} with evidence to find is in both runs.")
    left_out = [each.id for each in asked if not all(each.id in run for run in runs)]
    if left_out:
        named = ", ".join(left_out[:5]) + (" ..." if len(left_out) > 5 else "")
        click.echo(f"Warning: not in both runs and left out: {named}", err=True)
    click.echo(f"Questions compared: {figures[0].questions}; first: {first}, second: {second}\n")
    print_columns(comparison_rows(figures))
