"""Which characters a stored text may hold; it knows no markup."""

import re
import unicodedata
from typing import Any

DEFAULT_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode (17.0) draws as nothing, as ranges for a character class."""

# Besides: controls except tab and newline, and interlinear marks. They hide text from people, or
# instructions in it.
_INVISIBLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufff9-\ufffb{DEFAULT_IGNORABLE}]")
_LINE_BREAKS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")
_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
# Parsers read any number of zeros before the digits.
_NUMERIC_REFERENCE = re.compile(
    r"&#(?:x0*+([0-9a-f]{1,8})(?![0-9a-f])|0*+([0-9]{1,8})(?![0-9]));?", re.IGNORECASE
)
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_WHITE_SPACE = re.compile(r"\s+")


def normalize_characters(text: str) -> str:
    r"""Return text with `\n` line breaks, plain spaces, NFC, and nothing invisible in it.

    Applying it twice changes nothing. Joiners inside words of scripts that need them are dropped
    too: they are invisible, and text that differs only in them must compare equal.
    """
    text = _LINE_BREAKS.sub("\n", text)
    text = _SPACES.sub(" ", _INVISIBLE.sub("", text))
    return unicodedata.normalize("NFC", text)


def storable(text: str) -> str:
    """Replace NUL and half surrogate pairs by U+FFFD: JSON may carry them, no table takes them."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def storable_values(value: Any) -> Any:
    """Replace them in every text that a value of JSON holds, keys of dictionaries included."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable_values(key): storable_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(storable_values, value))
    return value


def strip_private_use(html: str) -> str:
    """Remove private-use characters, also when written as numeric references.

    Pages use them for icon fonts; the conversion needs them free for its own marks.
    """
    html = _PRIVATE_USE.sub("", html)
    if "&#" in html:
        html = _NUMERIC_REFERENCE.sub(_without_private_use, html)
        # What stood around a removed one may make another; that is text and no reference.
        html = _NUMERIC_REFERENCE.sub(_as_text, html)
    return html


def collapse(text: str) -> str:
    """Return one line: every run of white space is one space, none at the ends."""
    return _WHITE_SPACE.sub(" ", text).strip()


def _without_private_use(match: re.Match[str]) -> str:
    return "" if _names_private_use(match) else match.group()


def _as_text(match: re.Match[str]) -> str:
    return f"&amp;{match.group()[1:]}" if _names_private_use(match) else match.group()


def _names_private_use(match: re.Match[str]) -> bool:
    code = int(match.group(1), 16) if match.group(1) else int(match.group(2))
    return 0xE000 <= code <= 0xF8FF or code >= 0xF0000


def bare(text: str) -> str:
    """Without width, accents, marks and what is drawn as nothing."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(
        char for char in decomposed if unicodedata.category(char) not in ("Mn", "Me", "Cf")
    )
