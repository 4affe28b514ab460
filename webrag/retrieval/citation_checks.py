"""The contract between verification and what presents its results. No I/O here."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

__all__ = ["Citation", "CitationCheck", "Finding", "FindingState"]

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


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Citation(_Frozen):
    """A quotation somebody gives, with as much of its address as they know.

    Attributes:
        url: Page it is said to be from; may be left out when `passage_id` is given.
        quote: The text, as it was quoted.
        char_start: Where it is said to begin in the stored text of the page.
        char_end: Where it is said to end; None for the length of the quotation.
        passage_id: Chunk it is said to stand in.
    """

    quote: str
    url: str | None = None
    char_start: int | None = None
    char_end: int | None = None
    passage_id: UUID | None = None


class Finding(_Frozen):
    """What one version of a page holds of a quotation.

    Attributes:
        state: As in `QuoteMatch`; or `not_stored` the corpus lacks the page, `gone` the site says
            that the page does not exist, `unreachable` the live page could not be read,
            `unchecked` it was not asked for or time ran out.
        text: What the version holds where the quotation should be; None when nothing like it.
        char_start: Where that begins in the version's text.
        char_end: Where it ends.
        similarity: Share of words in common, [0, 1].
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


class CitationCheck(_Frozen):
    """A quotation and what was found of it.

    Attributes:
        url: Canonical address of the page.
        stored: In the version the corpus holds.
        live: On the page as the site delivers it now.
    """

    citation: Citation
    url: str
    stored: Finding
    live: Finding
