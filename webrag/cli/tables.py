"""The tables of an evaluation on standard output."""

from collections.abc import Sequence

import click

from webrag.cli.output import print_columns

__all__ = ["print_figures"]


def print_figures(figures: Sequence[tuple[str, str]], by_type: Sequence[tuple[str, ...]]) -> None:
    """Print name and value of every figure, then one row per question type.

    Args:
        figures: Name and value.
        by_type: Header, then one row per type.
    """
    print_columns(figures)
    if len(by_type) > 1:
        click.echo()
        print_columns(by_type)
