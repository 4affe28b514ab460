"""The contract between verification and what presents its results. No I/O here."""

from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from webrag.argument_checks import check_text
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import page_address

MAX_QUOTE_CHARS = 10_000

FindingState = Literal[
    "exact",
    "moved",
    "reformatted",
    "changed",
    "absent",
    "not_stored",
    "gone",
    "unreachable",
    "unchecked",
]

VERBATIM: Final[tuple[FindingState, ...]] = ("exact", "moved")
"""States of a version that holds the quotation as it was quoted."""


class Citation(FrozenModel):
    """A quotation somebody gives, and where it is said to stand in the stored text of a page.

    A passage, too, names a page; without `char_end` it is as long as the quotation.
    """

    quote: str
    url: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    passage_id: UUID | None = None


class Finding(FrozenModel):
    """The passage of one version of a page that fits a quotation, if any.

    Attributes:
        state: `exact` the version holds it verbatim, at the place named if one was; `moved`
            verbatim, but elsewhere; `reformatted` the same words with other white space, markup or
            typographic signs; `changed` only a similar passage was found; `absent` not even that;
            `not_stored` the corpus lacks the page, `gone` the site says
            that the page does not exist, `unreachable` the live page could not be read,
            `unchecked` it was not asked for or time ran out.
        text: The version's own words from `char_start` on; None when nothing is like it.
        similarity: Share of words in common, [0, 1]; 1.0 for the first three states.
        reason: Why the version could not be read.
        seen_at: When the site delivered or confirmed the version.
    """

    state: FindingState
    text: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    similarity: float = 0.0
    reason: str | None = None
    seen_at: datetime | None = None


class CitationCheck(FrozenModel):
    """A quotation, and what was found of it in the stored version and on the page as it is now.

    Where the stored version has it no more, the site last confirmed a kept earlier text with it at
    `last_seen_at`, and the first text without it was stored at `missing_since`.
    """

    citation: Citation
    url: str
    stored: Finding
    live: Finding
    page_unchanged: bool | None = None
    last_seen_at: datetime | None = None
    missing_since: datetime | None = None


def check_citation(citation: Citation) -> None:
    """Refuse what cannot be looked up, whatever is stored."""
    quote = check_text("A quote", citation.quote)
    if not quote.strip():
        raise InputError("A quote is empty: give the text that was quoted.")
    if len(quote) > MAX_QUOTE_CHARS:
        raise InputError(
            f"A quote has {len(quote):,} characters; at most {MAX_QUOTE_CHARS:,} are allowed."
        )
    quoted_place(citation)
    if citation.url:
        page_address(citation.url)
    elif citation.passage_id is None:
        raise InputError("A citation names no page: give its url, or the id of a passage.")


def quoted_place(citation: Citation) -> tuple[int, int] | None:
    """Give the offsets the quotation is said to stand at; None when that is not said."""
    start, end = citation.char_start, citation.char_end
    if start is None:
        return None
    end = start + len(citation.quote) if end is None else end
    if not 0 <= start < end:
        raise InputError(
            f"char_start is {start} and char_end is {end}; they must be offsets, the first smaller."
        )
    return start, end
