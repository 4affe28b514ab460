"""Reads the data inside JavaScript files: located and converted, never executed."""

import itertools
import json
import re
from typing import Any, Final

from webrag.ingestion.site_maps.listing import MapRefusedError

# What is not closed reaches to the end: trying it again at every quote would take quadratic time.
_STRING: Final = re.compile(
    r"(\"(?:[^\"\\]++|\\.)*+(?:\"|\\?\Z)|'(?:[^'\\]++|\\.)*+(?:'|\\?\Z)"
    r"|`(?:[^`\\]++|\\.)*+(?:`|\\?\Z)|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))",
    re.DOTALL,
)
_KEY: Final = re.compile(r"([{,]\s*+)([\w$]++)(?=\s*+:)")
_TRAILING_COMMA: Final = re.compile(r",(\s*+[}\]])")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(u[0-9a-fA-F]{4}|.))|\"", re.DOTALL)
_JSON_ESCAPES: Final = re.compile(r"[\"\\/bfnrt]|u[0-9a-fA-F]{4}")
_NEEDS_CARE: Final = re.compile(r"\\[^\"\\/bfnrtu]|\n")
# Stands where a string was taken out; control characters are no part of code.
_HOLE: Final = "\x00"
_NEAR: Final = 100
_PARSE_CALL: Final = "JSON.parse("


def read_json(text: str) -> Any:
    """Read a JSON file.

    Raises:
        MapRefusedError: It is none, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(error) from error


def read_data(text: str, after: str = "", *, literal_of: str = "") -> Any:
    """Read the first table or list of a JavaScript file, as a literal or inside `JSON.parse`.

    Args:
        text: The file.
        after: What stands before the data; it begins behind the first occurrence.
        literal_of: The data is JSON inside a text that holds this near its beginning.

    Raises:
        MapRefusedError: There is no data, or it is nested too deeply.
    """
    if literal_of:
        return _read_quoted(text, literal_of)
    begin = text.find(after)
    if begin < 0:
        raise MapRefusedError(f"{after.strip()!r} does not occur in it")
    begin += len(after)
    opening = re.compile(r"[\[{]|JSON\.parse\(").search(text, begin)
    if opening is None:
        raise MapRefusedError("it holds no data")
    if opening.group() == _PARSE_CALL:
        quoted = _STRING.match(text, opening.end())
        if quoted is None or len(quoted[0]) < 2 or quoted[0][-1] != quoted[0][0]:
            raise MapRefusedError("the text given to JSON.parse is not closed")
        return read_json(_decoded(quoted.group()))
    try:
        return json.JSONDecoder().raw_decode(text, opening.start())[0]
    except (ValueError, RecursionError):
        return _read_literal(text[opening.start() :])


def _read_quoted(text: str, known: str) -> Any:
    """JSON inside the string around a word known to be in it."""
    at = text.find(known)
    quote = max(text.rfind(mark, max(at - _NEAR, 0), at) for mark in ("'{", '"{', "`{"))
    if at < 0 or quote < 0:
        raise MapRefusedError("it holds no data")
    quoted = _STRING.match(text, quote)
    assert quoted is not None, "a text that begins with a quote matches"
    return read_json(_decoded(quoted[0]))


def _read_literal(text: str) -> Any:
    parts = _STRING.split(text.replace(_HOLE, " "))
    code = _HOLE.join(parts[::2])
    code = _TRAILING_COMMA.sub(r"\1", _KEY.sub(r'\1"\2"', code))
    strings = map(_as_json_string, parts[1::2])
    whole = "".join(
        itertools.chain.from_iterable(
            itertools.zip_longest(code.split(_HOLE), strings, fillvalue="")
        )
    )
    try:
        return json.JSONDecoder().raw_decode(whole)[0]
    except (ValueError, RecursionError) as error:
        raise _refusal(error) from error


def _as_json_string(quoted: str) -> str:
    if quoted.startswith("/*"):
        return " "
    if len(quoted) < 2 or quoted[-1] != quoted[0]:
        return quoted
    if quoted[0] == '"' and not _NEEDS_CARE.search(quoted):
        return quoted
    return json.dumps(_decoded(quoted))


def _decoded(quoted: str) -> str:
    """The text of a JavaScript string."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    if _HOLE not in body:
        # Indexes of megabytes have nothing but these; a call for each takes a second.
        simple = body.replace("\\\\", _HOLE).replace("\\'", "'").replace("\\\n", "")
        if "\\" not in simple:
            return simple.replace(_HOLE, "\\")
    try:
        return str(json.loads(f'"{_ESCAPE.sub(_as_json_escape, body)}"', strict=False))
    except ValueError as error:
        raise _refusal(error) from error


def _as_json_escape(match: re.Match[str]) -> str:
    byte, char = match.groups()
    if byte:
        return f"\\u00{byte}"
    if match[0] == '"':
        return '\\"'
    if char == "\n":
        return ""
    return match[0] if _JSON_ESCAPES.fullmatch(char) else char


def _refusal(error: Exception) -> MapRefusedError:
    if isinstance(error, RecursionError):
        return MapRefusedError("it is nested too deeply")
    return MapRefusedError(f"it is not written as data ({str(error)[:100]})")
