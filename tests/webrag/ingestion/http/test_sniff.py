from contextlib import suppress

import pytest

from tests.pattern_attacks import stopped_after
from webrag.ingestion.http.decode import UnreadableContent, page_kind

OPEN_DOCUMENT = b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument.textPK"


@pytest.mark.parametrize(
    ("content_type", "body", "path", "kind"),
    [
        ("text/html; charset=utf-8", b"<p>x", "/", "html"),
        ("application/xhtml+xml", b"<?xml?><html/>", "/", "html"),
        ("text/markdown", b"# x", "/a", "markdown"),
        ("text/plain", b"# x", "/README.md", "markdown"),
        ("text/plain", b"# x", "/llms.txt", "markdown"),
        ("text/plain", b"<html>", "/a.txt", "text"),
        ("", b"  <!doctype HTML><html>", "/", "html"),
        ("", b"plain words", "/", "text"),
        ("application/octet-stream", b"<html><body>", "/", "html"),
        ("application/xml", b"<?xml version='1.0'?><html xmlns='x'>", "/", "html"),
        ("text/html", "<p>wide".encode("utf-16-le"), "/", "html"),
        ("text/html", b"", "/", "html"),
        ("application/octet-stream", OPEN_DOCUMENT, "/download", "office"),
        ("application/vnd.oasis.opendocument.text", OPEN_DOCUMENT, "/a.odt", "office"),
    ],
)
def test_readable_answers(content_type: str, body: bytes, path: str, kind: str) -> None:
    assert page_kind(content_type, body, path) == kind


@pytest.mark.parametrize(
    ("content_type", "body", "named"),
    [
        ("text/html", b"PK\x03\x04", "ZIP"),
        ("", OPEN_DOCUMENT.replace(b".text", b".image"), "ZIP"),
        ("text/plain", b"\x7fELF\x02\x01", "ELF"),
        ("text/html", b"\x89PNG\r\n\x1a\n", "PNG"),
        ("text/html", b"\xff\xd8\xff\xe0", "JPEG"),
        ("text/html", b"GIF89a", "GIF"),
        ("text/html", b"\x1f\x8b\x08", "gzip"),
        ("text/html", b"\x00\x00\x00\x20ftypmp42", "an image, sound or film"),
        ("text/html", b"SQLite format 3\x00", "SQLite"),
        ("", bytes(range(32)) * 16, "binary data"),
        ("application/json", b'{"a": 1}', "application/json"),
        ("text/css", b"p {}", "text/css"),
        ("image/svg+xml", b"<svg/>", "image/svg"),
    ],
)
def test_unreadable_answers_are_named(content_type: str, body: bytes, named: str) -> None:
    with pytest.raises(UnreadableContent, match=named):
        page_kind(content_type, body, "/")


@pytest.mark.parametrize(
    "body",
    [
        b"<!---->" * 73,
        b"<!---->" * 72 + b"<p>",
        b"<!---->\n" * 64,
        b"<!-- a --> \t" * 42,
        b"\xef\xbb\xbf <?xml?>" + b"<!---->" * 71,
        b"<!--" + b"-->" * 169,
        b"<!--" * 128,
        b"<?xml " * 85,
        b" " * 512,
        b"\x00 " * 256,
    ],
)
@pytest.mark.parametrize("content_type", ["", "application/octet-stream", "application/json"])
def test_what_stands_before_the_markup_cannot_hold_up_sniffing(
    content_type: str, body: bytes
) -> None:
    with stopped_after(2), suppress(UnreadableContent):
        page_kind(content_type, body, "/")


@pytest.mark.parametrize(
    "body",
    [
        b"<!---->" * 70 + b"<html>",
        b"<!-- <!-- --><!-- a -- b --> <p>",
        b"<?xml version='1.0'?> <!-- > --> <!DOCTYPE html>",
    ],
)
def test_markup_is_known_behind_comments(body: bytes) -> None:
    assert page_kind("", body, "/") == "html"
