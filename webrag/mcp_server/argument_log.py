"""Names the arguments of a call in the log, without secrets."""

from collections.abc import Container, Mapping
from typing import Any
from urllib.parse import urlsplit

_URL_ARGUMENTS = ("url", "source_url", "source_urls")

_SHOWN_URLS = 3

_PATH_CHARS = 80


def described(arguments: Mapping[str, Any], known: Container[str]) -> str:
    """Names of the arguments, with sizes of texts and the public part of URLs.

    Args:
        arguments: What the client sent, unchecked.
        known: Names the tool has; others are only counted, as the client chose them.
    """
    parts = [_one(name, value) for name, value in arguments.items() if name in known]
    unknown = len(arguments) - len(parts)
    return ", ".join([*parts, *([f"{unknown} unknown"] if unknown else [])]) or "no arguments"


def _one(name: str, value: object) -> str:
    if name in _URL_ARGUMENTS:
        urls = value if isinstance(value, list) else [value]
        more = f" and {len(urls) - _SHOWN_URLS} more" if len(urls) > _SHOWN_URLS else ""
        return f"{name}={' '.join(map(_masked, urls[:_SHOWN_URLS]))}{more}"
    if isinstance(value, str):
        return f"{name} ({len(value)} characters)"
    return name


def _masked(value: object) -> str:
    """Scheme, host and path: user name, password, query and fragment may hold secrets."""
    if not isinstance(value, str):
        return "(no text)"
    try:
        parts = urlsplit(value.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        return "(no URL)"
    if parts.scheme.lower() not in ("http", "https") or not host or not host.isprintable():
        return "(no http URL)"
    is_plain = parts.path.isprintable() and not any(each in parts.path for each in "@\\ ")
    path = parts.path if is_plain and len(parts.path) <= _PATH_CHARS else "/..."
    query = "?..." if parts.query else ""
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}{query}"
