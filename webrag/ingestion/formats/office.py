"""Office documents, EPUB and mail as text; the first two by libraries that are an extra."""

import email
import email.policy
import io
import re
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage, MIMEPart
from typing import Any

from webrag.errors import UnusablePageError
from webrag.extras import how_to_install
from webrag.ingestion.formats.sheets import html_from_workbook

# What the converter writes above each slide.
_SLIDE = re.compile(r"<!-- Slide number: \d{1,9} -->")
_LINE_END = re.compile(r"(?<=[^\n|])\n(?=[^\n|#!<])")
_HEADERS = ("From", "To", "Cc", "Date")


@dataclass(frozen=True)
class OfficeText:
    """What a document holds, as Markdown or, where it has rows and columns, as HTML."""

    text: str
    is_html: bool


def read_office(body: bytes, ending: str, url: str) -> OfficeText:
    """Read a document; no other file and no address is opened.

    Args:
        body: The file.
        ending: What its name ends with, such as `docx`.
        url: Named in messages.

    Raises:
        UnusablePageError: The extra is not installed, or the file is damaged.
    """
    try:
        if ending == "xlsx":
            return OfficeText(html_from_workbook(body), is_html=True)
        if ending == "docx":
            return OfficeText(_html_from_letter(body), is_html=True)
        return OfficeText(_converted(body, ending), is_html=False)
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
    return _lines_of_slides(markdown) if ending == "pptx" else markdown


def _lines_of_slides(markdown: str) -> str:
    """Each point of a slide is a line, which Markdown would join."""
    return _SLIDE.sub("", _LINE_END.sub("  \n", markdown))


@dataclass(frozen=True)
class Mail:
    """A message.

    Attributes:
        title: Its subject.
        text: Who wrote it to whom and when, what it says, and the names of what is attached.
        is_plain: It says so in plain text, not in HTML.
        sent_at: ISO 8601; empty when it does not say.
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
