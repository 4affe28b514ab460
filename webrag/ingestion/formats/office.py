"""Office documents, EPUB and mail as Markdown; the first two by a converter that is an extra."""

import email
import email.policy
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage, MIMEPart
from functools import cache

from webrag.errors import UnusablePageError
from webrag.extras import how_to_install

# What the converter writes above each slide.
_SLIDE = re.compile(r"<!-- Slide number: \d{1,9} -->")
_LINE_END = re.compile(r"(?<=[^\n|])\n(?=[^\n|#!<])")
_HEADERS = ("From", "To", "Cc", "Date")


def markdown_from_office(body: bytes, ending: str, url: str) -> str:
    """What a document holds, by markitdown; it opens no other file and no address.

    Args:
        body: The file.
        ending: What its name ends with, such as `docx`.
        url: Named in messages.

    Raises:
        UnusablePageError: The extra is not installed, or the file is damaged.
    """
    try:
        convert = _converter()
    except ImportError as error:
        raise UnusablePageError(
            f"{url} is a .{ending} file, and what reads it is not installed.",
            url=url,
            hint=how_to_install("office"),
            kind="not_text",
        ) from error
    try:
        return convert(body, f".{ending}")
    # The libraries under it raise whatever they like on a damaged file.
    except Exception as error:
        raise UnusablePageError(
            f"{url} cannot be read as .{ending} ({type(error).__name__}).", url=url, kind="damaged"
        ) from error


@cache
def _converter() -> Callable[[bytes, str], str]:
    """What turns a file of an ending into Markdown; finding its parts takes half a second."""
    # An extra, whose types are not there for who develops without it.
    from markitdown import MarkItDown, StreamInfo

    converter = MarkItDown(enable_plugins=False)

    def convert(body: bytes, ending: str) -> str:
        info = StreamInfo(extension=ending)
        markdown = converter.convert_stream(io.BytesIO(body), stream_info=info).markdown
        return _lines_of_slides(str(markdown)) if ending == ".pptx" else str(markdown)

    return convert


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
