"""Office documents, EPUB and mail as Markdown; the first two by a converter that is an extra."""

import email
import email.policy
import io
from collections.abc import Callable
from email.message import EmailMessage, MIMEPart
from functools import cache

from webrag.errors import UnusablePageError

__all__ = ["markdown_from_mail", "markdown_from_office"]

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
            hint='Run: pip install "webrag[office]"',
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
        return str(converter.convert_stream(io.BytesIO(body), stream_info=info).markdown)

    return convert


def markdown_from_mail(body: bytes) -> str:
    """A message: who wrote it to whom and when, its text, and the names of what is attached."""
    message = email.message_from_bytes(body, policy=email.policy.default)
    lines = [f"# {_header(message, 'Subject') or 'Mail without a subject'}", ""]
    lines += [f"- {name}: {value}" for name in _HEADERS if (value := _header(message, name))]
    part = message.get_body(("plain", "html"))
    text = "" if part is None else _content(part)
    names = [name for each in message.iter_attachments() if (name := each.get_filename())]
    attached = ["", f"Attached: {', '.join(names)}"] if names else []
    return "\n".join([*lines, "", text, *attached])


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name, "")).split()).replace("<", "(").replace(">", ")")


def _content(part: MIMEPart) -> str:
    try:
        text = part.get_content()
    except (LookupError, ValueError):
        raw = part.get_payload(decode=True)
        text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else ""
    return text if isinstance(text, str) else ""
