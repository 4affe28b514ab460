import pytest

from webrag.ingestion.http.sniff import UnreadableContent, page_kind


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
    ],
)
def test_readable_answers(content_type: str, body: bytes, path: str, kind: str) -> None:
    assert page_kind(content_type, body, path) == kind


@pytest.mark.parametrize(
    ("content_type", "body", "named"),
    [
        ("text/html", b"PK\x03\x04", "ZIP"),
        ("text/plain", b"\x7fELF\x02\x01", "ELF"),
        ("text/html", b"\x89PNG\r\n\x1a\n", "PNG"),
        ("text/html", b"\xff\xd8\xff\xe0", "JPEG"),
        ("text/html", b"GIF89a", "GIF"),
        ("text/html", b"\x1f\x8b\x08", "gzip"),
        ("text/html", b"\x00\x00\x00\x20ftypmp42", "film"),
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
