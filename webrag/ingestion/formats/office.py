"""Office documents, EPUB and mail as text; the first two by libraries that are an extra."""

import email
import email.policy
import html
import io
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from email.message import EmailMessage, MIMEPart
from typing import Any, Final

from webrag.errors import UnusablePageError, how_to_install
from webrag.ingestion.formats.kinds import kind_of_name

# What the converter writes above each slide.
_SLIDE = re.compile(r"<!-- Slide number: \d{1,9} -->")
_LINE_END = re.compile(r"(?<=[^\n|])\n(?=[^\n|#!<])")
_HEADERS = ("From", "To", "Cc", "Date")


def read_office(body: bytes, ending: str, url: str) -> tuple[str, bool, dict[str, str]]:
    """Read a document by the ending of its name, as `docx`; nothing else is opened.

    Web addresses of OpenDocument may end in anything. What has rows and columns comes as HTML,
    which the second value tells, other text as Markdown; the last has what OpenDocument says of
    itself: title, author and days.

    Raises:
        UnusablePageError: The extra is not installed, or the file is damaged.
    """
    ending = ending if kind_of_name(f"a.{ending}") == "office" else "odt"
    try:
        if ending == "xlsx":
            return html_from_workbook(body), True, {}
        if ending == "docx":
            return _html_from_letter(body), True, {}
        if ending in ("odp", "ods", "odt"):
            from webrag.ingestion.formats.opendocument import read_open_document

            markdown, said = read_open_document(body)
            return markdown, False, said
        return _converted(body, ending), False, {}
    except ImportError as error:
        why = f"{url} is a .{ending} file, and what reads it is not installed."
        hint = how_to_install("office")
        raise UnusablePageError(why, url=url, hint=hint, kind="not_text") from error
    # The libraries under it raise whatever they like on a damaged file.
    except Exception as error:
        raise UnusablePageError(
            f"{url} cannot be read as .{ending} ({type(error).__name__}).", url=url, kind="damaged"
        ) from error


def _html_from_letter(body: bytes) -> str:
    """Tables, superscripts and formulas come through as HTML, which Markdown would flatten."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx

    # Pictures are shown by what is said of them.
    pictures = mammoth.images.img_element(lambda _: {"src": ""})
    found = mammoth.convert_to_html(pre_process_docx(io.BytesIO(body)), convert_image=pictures)
    return str(found.value)


def _converted(body: bytes, ending: str) -> str:
    # An extra, whose types are not there for who develops without it.
    from markitdown import StreamInfo
    from markitdown.converters import EpubConverter, OutlookMsgConverter, PptxConverter

    # Asked itself, as the library would read a damaged file as text.
    converters: dict[str, Any] = {
        "epub": EpubConverter,
        "msg": OutlookMsgConverter,
        "pptx": PptxConverter,
    }
    info = StreamInfo(extension=f".{ending}")
    markdown = str(converters[ending]().convert(io.BytesIO(body), info).markdown)
    if ending == "pptx":  # each point of a slide is a line, which Markdown would join
        markdown = _SLIDE.sub("", _LINE_END.sub("  \n", markdown))
    return markdown


def read_mail(body: bytes) -> tuple[str, bool, dict[str, str]]:
    """Read a message under its subject, with who wrote it to whom and when, and its attachments.

    The second value tells plain text, which is preferred, from HTML; the last has title and date.
    """
    message = email.message_from_bytes(body, policy=email.policy.default)
    title = _header(message, "Subject") or "Mail without a subject"
    lines = [f"# {title}", ""]
    lines += [f"- {name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    part = message.get_body(("plain", "html"))
    names = [name for each in message.iter_attachments() if (name := each.get_filename())]
    attached = ["", f"Attached: {', '.join(names)}"] if names else []
    text = "\n".join([*lines, "", "" if part is None else _content(part), *attached])
    sent_at = getattr(message.get("Date"), "datetime", None)
    date = sent_at.isoformat() if isinstance(sent_at, datetime) else ""
    is_plain = part is None or part.get_content_type() == "text/plain"
    return text, is_plain, {"title": title, "date": date}


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split()).replace("<", "(").replace(">", ")")


def _content(part: MIMEPart) -> str:
    try:
        text = part.get_content()
    except (LookupError, ValueError):
        raw = part.get_payload(decode=True)
        text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else ""
    return text if isinstance(text, str) else ""


# Strings in a format of 255 characters at most, and what it sets aside: colours, conditions, gaps.
_LITERAL: Final = re.compile(
    r'"([^"]*+)"|\\(.)|\[\$([^\]-]{0,255}+)[^\]]{0,255}+\]|\[[^\]]{0,255}+\]|_.|\*.'
)
_DIGITS: Final = re.compile(r"(?<![#0?,])(?:,*+[#0?])++(?:\.([0#?]++))?")
_MOST_CELLS: Final = 2_000_000


def html_from_workbook(body: bytes) -> str:
    """A heading and a table for each sheet that is not hidden; formulas show their results.

    ImportError where openpyxl is not installed, ValueError for more than two million cells.
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
    has_filter = bool(sheet.auto_filter.ref)  # the rows that it sets aside are one click away
    rows = [
        list(_row(cells, spans, hidden))
        for cells in sheet.iter_rows()
        if has_filter or not sheet.row_dimensions[cells[0].row].hidden
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
