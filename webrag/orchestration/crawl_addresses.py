"""What the addresses of a site have in common: patterns, folders and session ids. No I/O here."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

__all__ = [
    "folder_pattern",
    "is_calendar",
    "parameters",
    "path_pattern",
    "places",
    "url_pattern",
    "varies",
    "without_session",
]

_UUID = r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"
_HEX = r"(?=[a-f]*[0-9])[0-9a-f]{8,}"
_TOKEN = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}"  # noqa: S105
_CHANGING: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_UUID}|{_HEX}|{_TOKEN})(?![A-Za-z0-9])|[0-9]+", re.IGNORECASE
)
_VARIABLE: Final = "#"  # no path and no query holds one
_SESSION_KEY_NAMES: Final = """
aspsessionid cfid cftoken jsessionid oscsid phpsessid s sess session session_id sessionid sessid
sid xtsid zenid
"""
_SESSION_KEYS: Final = frozenset(_SESSION_KEY_NAMES.split())
_SESSION_PATH: Final = re.compile(
    r";(?:jsessionid|sid|phpsessid|cfid|cftoken)=[^/;?]*|/\((?:[SAF]\([A-Za-z0-9_-]+\))+\)",
    re.IGNORECASE,
)
_SESSION_VALUE: Final = re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{12,}\Z")
_SHORT_SESSION_KEYS: Final = frozenset({"s", "sid", "session"})
_CALENDAR: Final = re.compile(r"(?:^|/)(?:1[89]|2[0-9])[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?:[/-]|/?$)")
_ENDING: Final = re.compile(r"\.[A-Za-z]{1,5}$")


def without_session(url: str) -> str:
    """The URL without the session id it carries in its path or query."""
    head, mark, query = url.partition("?")
    head = _SESSION_PATH.sub("", head)
    kept = [part for part in query.split("&") if not _is_session(part)]
    return head + (f"{mark}{'&'.join(kept)}" if mark and any(kept) else "")


def url_pattern(url: str) -> str:
    """The path and query of a URL with numbers and ids replaced: what a program varies."""
    query = "&".join(sorted(f"{key}={_plain(value)}" for key, value in parameters(url)))
    return path_pattern(url) + (f"?{query}" if query else "")


def folder_pattern(url: str) -> str:
    """The folder of a URL with numbers and ids replaced, with a slash at its end."""
    return _plain(urlsplit(url).path.rpartition("/")[0]) + "/"


def path_pattern(url: str) -> str:
    """The path of a URL with numbers and ids replaced."""
    return _plain(urlsplit(url).path)


def varies(url: str) -> bool:
    """Whether a program could make more addresses like this one by counting."""
    return url_pattern(url) != _unchanged(url)


def is_calendar(url: str) -> bool:
    """Whether the path ends in a year and a month, and no word tells it from its neighbours."""
    path = urlsplit(url).path
    last = _ENDING.sub("", path.rstrip("/").rpartition("/")[2])
    return _CALENDAR.search(path) is not None and not any(char.isalpha() for char in last)


def places(url: str) -> list[tuple[bool, str]]:
    """The page's folder itself, then with True everything below each folder above it."""
    folder = folder_pattern(url)
    names = folder.strip("/").split("/") if folder != "/" else []
    above = [f"/{'/'.join(names[:count])}/" if count else "/" for count in range(len(names) + 1)]
    return [(False, folder), *((True, path) for path in above)]


def parameters(url: str) -> list[tuple[str, str]]:
    """Names and values in the query of a URL."""
    query = urlsplit(url).query
    return parse_qsl(query, keep_blank_values=True) if query else []


def _plain(text: str) -> str:
    return _CHANGING.sub(_VARIABLE, text)


def _unchanged(url: str) -> str:
    query = "&".join(sorted(f"{key}={value}" for key, value in parameters(url)))
    return urlsplit(url).path + (f"?{query}" if query else "")


def _is_session(part: str) -> bool:
    key, _, value = part.partition("=")
    name = key.casefold()
    if name.startswith("aspsessionid"):
        return True
    if name in _SHORT_SESSION_KEYS:
        return _SESSION_VALUE.match(value) is not None
    return name in _SESSION_KEYS
