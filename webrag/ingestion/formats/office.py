"""Office documents, EPUB and mail as text; the first two by libraries that are an extra."""

import email
import email.policy
import io
import re
from datetime import datetime
from email.message import EmailMessage, MIMEPart
from typing import Any, NamedTuple

from webrag.errors import UnusablePageError
from webrag.extras import how_to_install
from webrag.ingestion.formats.sheets import html_from_workbook

# What the converter writes above each slide.
_SLIDE = re.compile(r"<!-- Slide number: \d{1,9} -->")
_LINE_END = re.compile(r"(?<=[^\n|])\n(?=[^\n|#!<])")
_HEADERS = ("From", "To", "Cc", "Date")


def read_office(body: bytes, ending: str, url: str) -> tuple[str, bool]:
    """Read a document by the ending of its name, as `docx`; nothing else is opened.

    What has rows and columns comes as HTML, which the second value tells, other text as Markdown.

    Raises:
        UnusablePageError: The extra is not installed, or the file is damaged.
    """
    try:
        if ending == "xlsx":
            return html_from_workbook(body), True
        if ending == "docx":
            return _html_from_letter(body), True
        return _converted(body, ending), False
    except ImportError as error:
        raise UnusablePageError(
            f"{url} is a .{ending} file, and what reads it is not installed.",
            url=url,
            hint=how_to_install("office"),
            kind="not_text",
        ) from error
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


class Mail(NamedTuple):
    """A message under its subject: who wrote it to whom and when, what it says, and attachments.

    `is_plain` where it says so in plain text, not in HTML; `sent_at` is ISO 8601 or empty.
    """

    title: str
    text: str
    is_plain: bool
    sent_at: str


def read_mail(body: bytes) -> Mail:
    """Read a message; of a text in both forms the plain one."""
    message = email.message_from_bytes(body, policy=email.policy.default)
    title = _header(message, "Subject") or "Mail without a subject"
    lines = [f"# {title}", ""]
    lines += [f"- {name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    part = message.get_body(("plain", "html"))
    text = "" if part is None else _content(part)
    names = [name for each in message.iter_attachments() if (name := each.get_filename())]
    attached = ["", f"Attached: {', '.join(names)}"] if names else []
    sent_at = getattr(message.get("Date"), "datetime", None)
    return Mail(
        title=title,
        text="\n".join([*lines, "", text, *attached]),
        is_plain=part is None or part.get_content_type() == "text/plain",
        sent_at=sent_at.isoformat() if isinstance(sent_at, datetime) else "",
    )


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split()).replace("<", "(").replace(">", ")")


def _content(part: MIMEPart) -> str:
    try:
        text = part.get_content()
    except (LookupError, ValueError):
        raw = part.get_payload(decode=True)
        text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else ""
    return text if isinstance(text, str) else ""
