"""Which language a page is in: what it declares, unless its script says otherwise."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

__all__ = ["page_language"]

_PRIMARY = re.compile(r"\s*([a-z]{2,3})(?=$|[-_,;\s])", re.IGNORECASE)
_UNSURE = frozenset({"und", "mul", "zxx", "mis", "xx"})
# Names the Unicode database gives to letters begin with their script.
_SCRIPT_LANGUAGE = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CJK": "zh", "THAI": "th", "HEBREW": "he",
    "GREEK": "el", "GEORGIAN": "ka", "ARMENIAN": "hy", "CYRILLIC": None, "ARABIC": None,
    "DEVANAGARI": None, "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "KHMER": "km",
}  # fmt: skip
# Languages written in another script than Latin; a page in one may hold mostly Latin code.
_NOT_LATIN = frozenset(
    """am ar be bg bn ckb dv el fa gu he hi hy ja ka kk km kn ko ky lo mk ml mn mr my ne or pa ps
    ru sd si sr ta te tg th ti ug uk ur yi zh""".split()  # noqa: SIM905
)
_SAMPLE_CHARS = 10_000
_FAR = re.compile("[\u0370-\U0010ffff]")
_LEAST_LETTERS = 40
_MAJORITY = 0.6


def page_language(declared: Sequence[str], text: str) -> str | None:
    """Return the primary language tag of a page, lower case, None when it is not known.

    The first usable declaration counts, unless most of the text is in a script that this language
    does not use: templates declare English whatever they are filled with.

    Args:
        declared: What the page and its server say, best first; empty strings are passed over.
        text: The page's content.
    """
    language = next((tag for value in declared if (tag := _primary(value))), None)
    script = _main_script(text)
    if script is None or language in _NOT_LATIN:
        return language
    return _SCRIPT_LANGUAGE.get(script)


def _primary(value: str) -> str | None:
    match = _PRIMARY.match(value)
    tag = match.group(1).lower() if match else ""
    return tag if tag and tag not in _UNSURE else None


def _main_script(text: str) -> str | None:
    """The script most letters are in when it is not Latin; kana decide for Japanese."""
    sample = text[:_SAMPLE_CHARS]
    # Most pages are in Latin script; naming each letter takes longer than converting the page.
    if sample.isascii() or len(_FAR.findall(sample)) < len(sample) / 5:
        return None
    letters = [char for char in sample if char.isalpha()]
    if len(letters) < _LEAST_LETTERS:
        return None
    scripts = Counter(unicodedata.name(char, "").partition(" ")[0] for char in letters)
    kana = scripts["HIRAGANA"] + scripts["KATAKANA"]
    if kana > len(letters) * 0.1:
        return "HIRAGANA"
    script, count = scripts.most_common(1)[0]
    return script if count >= len(letters) * _MAJORITY and script in _SCRIPT_LANGUAGE else None
