"""Sheets of a workbook as tables that hold what the sheet shows, not what the file stores."""

import html
import io
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, Final

# Strings in a format of 255 characters at most, and what it sets aside: colours, conditions, gaps.
_LITERAL: Final = re.compile(
    r'"([^"]*+)"|\\(.)|\[\$([^\]-]{0,255}+)[^\]]{0,255}+\]|\[[^\]]{0,255}+\]|_.|\*.'
)
_DIGITS: Final = re.compile(r"(?<![#0?,])(?:,*+[#0?])++(?:\.([0#?]++))?")
_MOST_CELLS: Final = 2_000_000


def html_from_workbook(body: bytes) -> str:
    """A heading and a table for each sheet that is not hidden; formulas show their results.

    Raises:
        ImportError: openpyxl is not installed.
        ValueError: The sheets have more than two million cells.
    """
    from openpyxl import load_workbook

    workbook = load_workbook(io.BytesIO(body), data_only=True)
    shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
    if sum(sheet.max_row * sheet.max_column for sheet in shown) > _MOST_CELLS:
        raise ValueError(f"more than {_MOST_CELLS:,} cells")
    return "".join(f"<h2>{html.escape(sheet.title)}</h2>{_table(sheet)}" for sheet in shown)


def _table(sheet: Any) -> str:
    spans = {
        (found.min_row, found.min_col): (found.size["rows"], found.size["columns"])
        for found in sheet.merged_cells.ranges
    }
    hidden = {
        column
        for each in sheet.column_dimensions.values()
        if each.hidden
        for column in range(each.min, each.max + 1)
    }
    rows = [
        list(_row(cells, spans, hidden)) for cells in sheet.iter_rows() if _is_row(sheet, cells)
    ]
    kept = [row for row in rows if any(text for text, _ in row)]
    used = max(
        (place + 1 for row in kept for place, (text, _) in enumerate(row) if text), default=0
    )
    lines = (
        "".join(
            f"<{tag}{span}>{html.escape(text).replace(chr(10), '<br>')}</{tag}>"
            for text, span in row[:used]
        )
        for tag, row in zip(["th", *["td"] * len(kept)], kept, strict=False)
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _is_row(sheet: Any, cells: tuple[Any, ...]) -> bool:
    """Rows that a filter sets aside are one click away."""
    is_hidden = sheet.row_dimensions[cells[0].row].hidden
    return not is_hidden or bool(sheet.auto_filter.ref)


def _row(
    cells: tuple[Any, ...], spans: dict[tuple[int, int], tuple[int, int]], hidden: set[int]
) -> Iterator[tuple[str, str]]:
    for cell in cells:
        if type(cell).__name__ == "MergedCell" or cell.column in hidden:
            continue
        rows, columns = spans.get((cell.row, cell.column), (1, 1))
        span = f' rowspan="{rows}" colspan="{columns}"' if rows * columns > 1 else ""
        yield shown_value(cell.value, cell.number_format), span


def shown_value(value: Any, number_format: str = "General") -> str:
    """A cell's value as its sheet shows it by a format in Excel's notation, dates in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        if value.time() == time() and "h" not in number_format.lower():
            return value.date().isoformat()
        return value.isoformat(" ", "seconds" if value.second else "minutes")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        hours, rest = divmod(int(value.total_seconds()), 3600)
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    if isinstance(value, int | float):
        return _number(value, number_format)
    return str(value).strip()


def _number(value: float, number_format: str) -> str:
    positive, *others = number_format.split(";")
    pattern = others[0] if others and value < 0 else positive
    around = _LITERAL.sub(lambda each: each[1] or each[2] or each[3] or "", pattern)
    bare = _LITERAL.sub("", pattern)
    digits = _DIGITS.search(bare)
    if digits is None or "/" in bare or "E" in bare.upper():
        return f"{value:.11g}"
    number = abs(value) if others and value < 0 else value
    decimals = digits[1] or ""
    number *= 100 if "%" in around else 1
    text = f"{number:{',' if ',' in digits[0] else ''}.{len(decimals)}f}"
    optional = len(decimals) - len(decimals.rstrip("#?"))
    for _ in range(optional):
        text = text.removesuffix("0").removesuffix(".")
    whole = digits[0].partition(".")[0].replace(",", "")
    text = text.zfill(len(text.partition(".")[2]) + ("." in text) + whole.count("0"))
    return _DIGITS.sub(lambda _: text, around, count=1).strip()
