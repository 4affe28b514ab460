"""Decides whether a quotation says what a sentence says; pure, conservative: doubt means no."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from webrag.answering.clauses import clauses, is_bound, nearest_clauses, terms_of
from webrag.answering.qualifiers import keeps_qualifiers, keeps_units
from webrag.indexing.lexical import analyze, query_terms

__all__ = ["denies", "identifiers", "is_negated", "is_supported", "numbers"]

# Measured on the pairs of the test: at .5 no contradicted sentence passes on words alone.
_MIN_COVERAGE: Final = 0.5
# Fewer words in common are enough where the meanings are close.
_MIN_COVERAGE_WITH_MEANING: Final = 0.34
_MIN_SIMILARITY: Final = 0.6

_NUMBER: Final = re.compile(
    r"(?<![\w.])[-+]?\d[\d,_\u202f\u00a0]*(?:\.\d+)*(?:e[-+]?\d+)?", re.IGNORECASE
)
# Without "one", which is as often a pronoun.
_WORD_NUMBERS: Final = {
    "zero": "0", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "twice": "2",
    "dozen": "12", "hundred": "100", "thousand": "1000", "million": "1000000",
}  # fmt: skip
_IDENTIFIER: Final = re.compile(
    r"https?://[^\s)\]>\"']+"
    r"|`[^`\n]+`"
    r"|(?<![\w-])--?[A-Za-z][\w-]*"
    r"|\b\w+(?:(?:::|[._/])\w+)+\b"
    r"|\b[A-Za-z]*[a-z][A-Z]\w*"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])\w+\b"
    r"|\b[A-Z]{2,}\b"
)
_NEGATION: Final = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without|hardly|unable|impossible"
    r"|unsupported|lacks?|lacking|fail(?:s|ed|ing)?|refuse[sd]?|reject(?:s|ed)?|forbid(?:s|den)?"
    r"|prohibit(?:s|ed)?|disallow(?:s|ed)?|prevent(?:s|ed)?|den(?:y|ies|ied)|ignore[sd]?)\b|n't\b"
)
_OPPOSITES: Final = (
    ("increase", "decrease"), ("raise", "lower"), ("enable", "disable"), ("before", "after"),
    ("minimum", "maximum"), ("always", "never"), ("true", "false"), ("first", "last"),
    ("more", "fewer"), ("more", "less"), ("faster", "slower"), ("above", "below"),
    ("add", "remove"), ("start", "stop"), ("open", "close"), ("allow", "forbid"),
    ("include", "exclude"), ("required", "optional"), ("local", "remote"), ("old", "new"),
    ("ascending", "descending"), ("synchronous", "asynchronous"), ("public", "private"),
    ("success", "failure"), ("most", "least"), ("larger", "smaller"), ("greater", "less"),
    ("longer", "shorter"), ("higher", "lower"), ("accept", "reject"), ("grant", "revoke"),
    ("input", "output"), ("client", "server"), ("push", "pull"), ("read", "write"),
    ("left", "right"), ("upper", "lower"), ("even", "odd"), ("encrypt", "decrypt"),
)  # fmt: skip
_CONDITION: Final = re.compile(r"\b(?:if|when|unless|where)\b[^,.;]{0,500}+(?:,|$)", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"(?<=[.!?;:])\s+|\n+")


def is_supported(
    sentence: str,
    quotes: Sequence[str],
    *,
    context: str = "",
    similarity: Callable[[str, str], float] | None = None,
) -> bool:
    """Whether quotations together say what a sentence says.

    Every number of the sentence must be in them, with its unit and beside the same words, every
    identifier in them or in their context, most of its words must be theirs, and it must not deny
    what they say, turn it round, widen it or leave its condition out. A sentence that is copied
    whole is supported.

    Args:
        sentence: What is claimed.
        quotes: Verbatim, plain or with markup.
        context: Titles and headings above the quotations.
        similarity: Cosine of two texts, to accept other wording; None for words alone.
    """
    support = "\n".join(quotes)
    if not query_terms(sentence) or not support.strip():
        return False
    if _squeezed(sentence) in map(_squeezed, _SENTENCE.split(support)):
        return True
    if not numbers(sentence) <= numbers(support):
        return False
    if not identifiers(sentence) <= _names(f"{support}\n{context}", identifiers(sentence)):
        return False
    if not (is_bound(sentence, support, numbers) and is_bound(sentence, support, identifiers)):
        return False
    if not (keeps_units(sentence, support) and keeps_qualifiers(sentence, support)):
        return False
    if _turns_round(sentence, support) or not _same_polarity(sentence, support):
        return False
    return _says_as_much(sentence, support, context, similarity)


def numbers(text: str) -> set[str]:
    """Numbers of a text in one spelling: `1,000`, `1_000` and `thousand` are alike."""
    plain = unicodedata.normalize("NFKC", text)
    found = {_one_spelling(match[0]) for match in _NUMBER.finditer(plain)}
    # "512MB" and "30s" hold their number too.
    found |= {_one_spelling(value) for value in re.findall(r"(?<![\w.])\d+(?=[a-z%])", plain, re.I)}
    words = re.findall(r"[a-z]+", plain.casefold())
    return found | {_WORD_NUMBERS[word] for word in words if word in _WORD_NUMBERS}


def identifiers(text: str) -> set[str]:
    """Names of code, flags, addresses and acronyms in a text, without marks around them."""
    found = (match[0].strip("`").rstrip(".,;:") for match in _IDENTIFIER.finditer(text))
    return {
        name.casefold() for name in found if len(name) > 1 and not name.replace(".", "").isdigit()
    }


def is_negated(text: str) -> bool:
    """Whether a text denies something; names of code in it do not count."""
    return bool(_NEGATION.search(_IDENTIFIER.sub(" ", text.replace("\u2019", "'")).casefold()))


def denies(text: str) -> bool:
    """Whether a statement denies something, conditions such as "if it is not set" aside."""
    return is_negated(_CONDITION.sub(" ", text))


def _one_spelling(number: str) -> str:
    digits = re.sub(r"[,_\u202f\u00a0]", "", number).lstrip("+")
    return re.sub(r"\.0+$", "", digits).rstrip(".") or digits


def _names(support: str, wanted: Iterable[str]) -> set[str]:
    folded = support.casefold()
    return {name for name in wanted if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded)}


def _turns_round(sentence: str, support: str) -> bool:
    said, known = set(analyze(sentence)), set(analyze(support))
    for pair in _OPPOSITES:
        for one, other in (pair, pair[::-1]):
            mine, theirs = set(analyze(one)), set(analyze(other))
            if mine and theirs and mine <= said and not mine <= known and theirs <= known:
                return True
    return False


def _same_polarity(sentence: str, support: str) -> bool:
    """Compared with the sentences, then clause by clause with the clauses closest to the claim.

    "Reads are logged but writes are not" denies one thing and says another.
    """
    terms = set(query_terms(sentence))
    parts = [part for part in _SENTENCE.split(support) if part.strip()]
    shared = [len(terms & set(analyze(part))) for part in parts]
    most = max(shared, default=0)
    nearest = [part for part, count in zip(parts, shared, strict=True) if count == most]
    is_alike = any(denies(part) == denies(sentence) for part in nearest)
    known = clauses(support)
    closest = [(clause, nearest_clauses(clause, known)) for clause in clauses(sentence)]
    if not is_alike and not any(_holds_all(clause, found) for clause, found in closest):
        return False
    return all(
        any(denies(each) == denies(clause) and not _turns_round(clause, each)
            for each in found)
        for clause, found in closest
        if found
    )  # fmt: skip


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _holds_all(claim: str, found: Sequence[str]) -> bool:
    terms = set(query_terms(claim))
    return any(terms <= terms_of(clause) for clause in found)


def _says_as_much(
    sentence: str,
    support: str,
    context: str,
    similarity: Callable[[str, str], float] | None,
) -> bool:
    terms = set(query_terms(sentence))
    known = set(analyze(f"{support}\n{context}"))
    covered = len(terms & known) / len(terms)
    if not terms & set(analyze(support)):
        return False
    if covered >= _MIN_COVERAGE:
        return True
    close = similarity is not None and similarity(sentence, support) >= _MIN_SIMILARITY
    return close and covered >= _MIN_COVERAGE_WITH_MEANING
