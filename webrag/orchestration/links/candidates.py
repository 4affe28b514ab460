"""Links that may be followed and what following them brought. No I/O here."""

from dataclasses import dataclass, replace

from pydantic import Field

from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import site_of


class ScoredCandidate(FrozenModel):
    """A link with its score.

    Attributes:
        parent_url: Page the link was found on; None for derived parent addresses.
        heading: Nearest heading above the link.
        score: How promising it is, [0, 1].
        breakdown: Signal name to unweighted value.
        depth: Links from a named page, if this link is followed.
        found_in: The map of the site that names it, as in "the site's search index"; empty when
            a page links to it.
    """

    url: str
    parent_url: str | None
    title: str = ""
    heading: str | None = None
    score: float
    breakdown: dict[str, float]
    depth: int = 1
    found_in: str = ""


class ExpansionOutcome(FrozenModel):
    """Result of following links for one round.

    Attributes:
        ingested: Pages obtained, with the page each link was found on.
        failed: URL to reason.
        unanswered: Those of the failed whose site gave no answer.
        aliases: URL that turned out to be another address of a known page, to that page's.
        sources: URL of each page obtained to the name of the page source it came from.
        best_score: Of the links that led to a page that this run had not obtained, stored ones
            included; 0.0 when none did.
        bytes_received: Read from the network, failed fetches included.
        rate_limited: A service's limit of requests was reached, so the round was made smaller.
        stopped_by: Why no more pages can be obtained in this run, a sentence; None when they can.
    """

    ingested: tuple[ScoredCandidate, ...] = ()
    failed: dict[str, str] = Field(default_factory=dict)
    unanswered: frozenset[str] = frozenset()
    aliases: dict[str, str] = Field(default_factory=dict)
    chunks_by_url: dict[str, int] = Field(default_factory=dict)
    sources: dict[str, str] = Field(default_factory=dict)
    best_score: float = 0.0
    candidates_scored: int = 0
    candidates_selected: int = 0
    bytes_received: int = 0
    depth: int = 0
    timed_out: bool = False
    rate_limited: bool = False
    stopped_by: str | None = None

    @property
    def chunks_added(self) -> int:
        """Child chunks of all pages obtained."""
        return sum(self.chunks_by_url.values())


@dataclass(frozen=True, slots=True)
class Frontier:
    """Links that may be followed next.

    Attributes:
        candidates: Best first; none is stored, failed or outside the scope.
        scored: Targets that were scored to find them.
        degraded: Why a mapping service added nothing, a sentence; None when all is well.
        spares: Those next in order; they take the place of candidates that fail.
        dead: Links that were left out because they failed lately, in another run.
        refused: A sentence for each map of the site that was refused just now.
        has_weak: Whether links were left out that promise far less than those followed before.
        knows_texts: Whether the site's own map holds its pages' text, and links were judged by it.
    """

    candidates: tuple[ScoredCandidate, ...] = ()
    scored: int = 0
    degraded: str | None = None
    spares: tuple[ScoredCandidate, ...] = ()
    dead: int = 0
    refused: tuple[str, ...] = ()
    has_weak: bool = False
    knows_texts: bool = False

    def reaching(self, score: float) -> "Frontier":
        """The links that score at least so much; the others are weak."""
        kept, spares = (
            tuple(each for each in part if each.score >= score)
            for part in (self.candidates, self.spares)
        )
        has_weak = (kept, spares) != (self.candidates, self.spares)
        return replace(self, candidates=kept, spares=spares, has_weak=has_weak)

    def without(self, sites: frozenset[str]) -> "Frontier":
        """The links that lead to none of some sites."""
        if not sites:
            return self
        kept, spares = (
            tuple(each for each in part if site_of(each.url) not in sites)
            for part in (self.candidates, self.spares)
        )
        return replace(self, candidates=kept, spares=spares)
