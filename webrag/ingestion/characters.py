"""Makes texts storable and parts them in sentences; it knows no markup."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, Literal

DEFAULT_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What Unicode (17.0) draws as nothing, as ranges for a character class."""

# Besides: controls except tab and newline, and interlinear marks. They hide text from people, or
# instructions in it.
_INVISIBLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufff9-\ufffb{DEFAULT_IGNORABLE}]")
# Scripts whose letters join, or are kept apart, by characters that are drawn as nothing.
_JOINING = "\u0620-\u07fa\u0840-\u086a\u08a0-\u109f\u1780-\u17b3\u17b6-\u17dd\u1820-\u18aa"
_DRAWN = "\u00a9\u00ae\u203c-\u205e\u2070-\u303d\u3297\u3299\U0001f000-\U0001faff"
# Joiners of a word or of an emoji, and selectors of its form, each alone at such a place.
_MEANT = re.compile(
    f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?:(?<=[{_DRAWN}])|(?<=[{_DRAWN}]\ufe0f))\u200d(?=[{_DRAWN}])"
    f"|(?<=[{_DRAWN}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"
)
_LINE_BREAKS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")
_SPACES = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
# Bytes that these begin with in UTF-8, and those that are not storable.
_PRIVATE_LEADS, _UNSTORABLE_LEADS = (b"\xee", b"\xef", b"\xf3", b"\xf4"), (b"\0", b"\xed")
# Parsers read any number of zeros before the digits.
_NUMERIC_REFERENCE = re.compile(
    r"&#(?:x0*+([0-9a-f]{1,8})(?![0-9a-f])|0*+([0-9]{1,8})(?![0-9]));?", re.IGNORECASE
)
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


def normalize_characters(text: str) -> str:
    r"""Return text with `\n` line breaks, plain spaces, NFC, and nothing invisible in it.

    Applying it twice changes nothing. Joiners stay inside words of scripts that need them and in
    emoji; what compares texts passes over them.
    """
    if text.isascii():
        return text if text.isprintable() else _INVISIBLE.sub("", _LINE_BREAKS.sub("\n", text))
    text = unicodedata.normalize("NFC", _LINE_BREAKS.sub("\n", text))
    kept = _INVISIBLE.sub(lambda each: each[0] if _MEANT.match(text, each.start()) else "", text)
    if kept != text:
        return normalize_characters(kept)  # other characters may stand beside a joiner now
    return unicodedata.normalize("NFC", _SPACES.sub(" ", text))


def storable(text: str) -> str:
    """Replace NUL and half surrogate pairs by U+FFFD: JSON may carry them, no table takes them."""
    is_storable = not _may_hold(text, _UNSTORABLE_LEADS)
    return text if is_storable else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _may_hold(text: str, leads: Iterable[bytes]) -> bool:
    encoded = text.encode("utf-8", "surrogatepass")  # a tenth of the time
    return any(map(encoded.__contains__, leads))


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
    if not html.isascii() and _may_hold(html, _PRIVATE_LEADS):
        html = _PRIVATE_USE.sub("", html)
    if "&#" in html and any(map(_names_private, _NUMERIC_REFERENCE.finditer(html))):
        html = _NUMERIC_REFERENCE.sub(lambda each: "" if _names_private(each) else each[0], html)
        # What stood around a removed one may make another; that is text and no reference.
        html = _NUMERIC_REFERENCE.sub(
            lambda each: f"&amp;{each[0][1:]}" if _names_private(each) else each[0], html
        )
    return html


def collapse(text: str) -> str:
    """Return one line: every run of white space is one space, none at the ends."""
    return " ".join(text.split())


def one_line(text: str) -> str:
    """A text on one line, without what is drawn as nothing and without icons."""
    return collapse(normalize_characters(strip_private_use(text)))


def folded(text: str) -> str:
    """The letters and digits of a text alone, whatever their case."""
    return "".join(filter(str.isalnum, text.casefold()))


def _names_private(match: re.Match[str]) -> bool:
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


SentenceRule = Literal["prose", "line", "typed", "statement"]

_RULES: Final[Mapping[SentenceRule, re.Pattern[str]]] = {
    "prose": re.compile(
        r"""(?:[.!?\u2026\u061f\u0964]["'\u2019\u201d)\]*_]*"""
        # The day of a German date is no end: "am 26. und 27. Januar".
        r"""(?!(?<!\d\d\d\.)(?<=\d\.)\s+(?:J\u00e4nner|Januar|Februar|M\u00e4rz|April|Mai|Juni|Juli"""
        r"""|August|September|Oktober|November|Dezember)\b)"""
        r"""(?=\s+["'\u2018\u201c(\[*_`]*[^\W\d_a-z])"""
        r"""|[\u3002\uff01\uff1f]["\u201d\u300d\u300f\uff09]*)"""
    ),
    # The rules of `prose` would change 6 of 891 sentences around links of documentation pages, and
    # with them what their links score.
    "line": re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9`*])|[\u3002\uff01\uff1f]|\n"),
    "typed": re.compile(r"(?<=[.?!])\s+"),
    "statement": re.compile(r"(?<=[.!?;:])\s+|\n+"),
}
_LONGEST_ABBREVIATION = 10  # characters, with the one before it
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[A-Za-z]|e\.g|i\.e|etc|cf|vs|al|resp|approx|No|Fig|Eq|Dr|Mr|Mrs|Ms|St|ver)\.$"
)


def sentence_ends(
    text: str, start: int = 0, end: int | None = None, *, rule: SentenceRule
) -> Iterator[int]:
    """Offsets between `start` and `end` at which a sentence is over, ascending.

    By the rule `prose`, for markdown that is quoted: after the mark and what closes with it, before
    a blank and something that can begin a sentence, not after an abbreviation; in scripts without
    blanks after the mark alone. `line`, for what stands around a link: behind the blank, and lines
    end sentences too. `typed`, for questions, whose sentences begin with small letters as well:
    behind any blank after a mark. `statement`, for what is compared with a claim: as `typed`, and
    at semicolons, colons and lines.
    """
    for mark in _RULES[rule].finditer(text, start, len(text) if end is None else end):
        cut = mark.end()
        near = max(start, cut - _LONGEST_ABBREVIATION)
        if rule != "prose" or not _ABBREVIATION.search(text, near, cut):
            yield cut


def sentences(text: str, *, rule: SentenceRule) -> list[str]:
    """The sentences of a text without white space around them; blank ones are left out."""
    cuts = [0, *sentence_ends(text, rule=rule), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(cuts))
    return [part for part in parts if part]
