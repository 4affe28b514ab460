"""Tells what rows of tables are from their texts."""

from collections.abc import Sequence
from typing import Final

_PAIR: Final = 2  # columns of a name and its value


def names_columns(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether the first row of a table names its columns, as far as the texts tell.

    Of two columns the first row is a pair like the others, unless they are numbered and it is not;
    of more it names them, unless one has figures in all rows.
    """
    names, *others = [[any(map(str.isdigit, cell)) for cell in row] for row in rows]
    if not others:
        return True
    columns = list(zip(*others, strict=True))
    if not names[0] and len(others) > 1 and all(columns[0]):
        return True
    are_data = (is_figure and all(column) for is_figure, column in zip(names, columns, strict=True))
    return len(names) > _PAIR and not any(are_data)
