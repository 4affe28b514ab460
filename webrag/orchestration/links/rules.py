"""Which links may and should be followed, judged by their address; it scores no relevance."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field

from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import site_of
from webrag.ingestion.models import is_generic_anchor

_NOT_PAGE_ENDINGS: Final = """
7z aac apk avi avif bin bmp bz2 css csv deb dmg doc docx eot epub exe gif gz ico iso jar jpeg
jpg js json map mkv mov mp3 mp4 mpeg msi odp ods odt ogg otf patch pdf png ppt pptx ps rar rpm rss
sh sig svg swf tar tgz tif tiff ttf wav webm webp whl woff woff2 xls xlsx xml xz yaml yml zip
zst
"""
_NOT_PAGES: Final = frozenset(_NOT_PAGE_ENDINGS.split())
# Without a page's file ending these are forms and actions of a site's software.
_ACTION_NAMES: Final = """
account add-to-cart cart checkout delete edit login log-in logout log-out password-reset
register sign-in signin sign-out signout sign-up signup subscribe unsubscribe
"""
_ACTIONS: Final = frozenset(_ACTION_NAMES.split())
_ACTION_QUERY: Final = frozenset(
    {"edit", "delete", "login", "logout", "submit", "history", "raw", "diff", "rollback"}
)
# They hold other pages' words without their answers.
_LISTING_NAMES: Final = """
archive archives blame changelog commits feed genindex history print printable py-modindex
revisions search share sitemap tag tags whatlinkshere
"""
_LISTINGS: Final = frozenset(_LISTING_NAMES.split())
# Where generators put code, or the sources of pages, beside the pages: Sphinx, Javadoc, and Doxygen
# by a name such as `list_8h_source` or `a00089_source`. A class and its code have the same name,
# and the code took four pages of ten.
_SOURCE_FOLDERS: Final = frozenset({"_modules", "_sources", "src-html"})
_SOURCE_ENDING: Final = "_source"
_SOURCE_NUMBER: Final = re.compile(r"a\d{5}", re.ASCII)
_PAGE_ENDINGS: Final = frozenset({"html", "htm", "xhtml", "md", "markdown", "txt", "php", "aspx"})
_LISTING_PENALTY: Final = 0.5
_CODE_PENALTY: Final = 0.25
_FOLDER_PAGE: Final = "index"
# Dead links use up the failures of a run. On partly reachable sites, putting such folders last
# reached .02 more of the pages with evidence; two or five failures made no difference.
_DEAD_FOLDER_FAILURES: Final = 3
# A site that let so many requests run into nothing is left: each costs a round's whole time.
_SILENT_SITE_FAILURES: Final = 3
# Of the best link's score; what is below waits for a round that knows more links.
_WORTH_NOW_SHARE: Final = 0.5
# Seconds that a page as promising as the best one followed before may cost where nothing of the
# answer is found.
_PATIENCE_S: Final = 20.0
# A page that takes no time still pushes others out of the evidence. Of 182 pages of later rounds on
# ten sites, those whose link scored half of the best or more held evidence with one in 10 (98), the
# others with one in 28 (84).
_LEAST_COST_S: Final = 2.0
# Links tried for each page wanted, before links are scored again with what the others brought.
_TRIES_PER_PAGE: Final = 2
_DATE: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)[-/](\d\d)(?:[-/](\d\d))?(?!\d)", re.ASCII)
_WORD: Final = re.compile(r"[^\W_]+")
# Of a round's pages, where the named page has few links. An index has hundreds, and for these the
# site's map chooses better: with two of five pages kept for them, .594 in place of .625 was found.
_OWN_SHARE: Final = 0.8
_FEW_OWN: Final = 10
_REMEMBERED: Final = 20_000  # addresses; each round scores those of the last one again


@dataclass(frozen=True, slots=True)
class LinkScope:
    """Targets a run may follow.

    Attributes:
        kind: `same_site` stays on the sites of the named pages, `allow_list` adds the allowed
            domains to them, `any` admits every http(s) address.
        sites: Sites of the named pages, as `site_of` gives them.
        allowed_domains: Hosts; a host also admits its subdomains.
    """

    kind: Literal["same_site", "allow_list", "any"]
    sites: frozenset[str]
    allowed_domains: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        kind: Literal["same_site", "allow_list", "any"],
        seed_urls: Iterable[str],
        allowed_domains: Iterable[str] = (),
    ) -> "LinkScope":
        """The scope of a run that starts from `seed_urls`."""
        domains = tuple(domain.casefold().removeprefix("www.") for domain in allowed_domains)
        return cls(kind, frozenset(map(site_of, seed_urls)), domains)

    def admits(self, url: str) -> bool:
        """Whether a canonical URL may be followed."""
        if self.kind == "any":
            return True
        site = site_of(url)
        if site in self.sites:
            return True
        host = site.rsplit(":", 1)[0]
        return self.kind == "allow_list" and any(
            domain in (site, host) or host.endswith(f".{domain}") for domain in self.allowed_domains
        )

    @property
    def stored_sites(self) -> tuple[str, ...] | None:
        """Sites whose stored pages are inside the scope; None when all are."""
        if self.kind == "any":
            return None
        extra = self.allowed_domains if self.kind == "allow_list" else ()
        return tuple(sorted({*self.sites, *extra}))


def skip_reason(url: str, *, reads_pdf: bool = False) -> str | None:
    """Why a target can hold no answer, as a clause for users; None when it may.

    Args:
        url: The target.
        reads_pdf: PDFs may hold one, too. Within one question they take too long: many are the
            whole manual.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file", "git+https", "git+http"):
        return f"a {parts.scheme} address is not a page"
    name, ending = _last_segment(parts.path)
    if ending in _NOT_PAGES and not (reads_pdf and ending == "pdf"):
        return f"a .{ending} file is not a page that can be read"
    if ending not in _PAGE_ENDINGS and name in _ACTIONS:
        return f"'{name}' is an action, not a page"
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key.casefold() in ("action", "do", "oldid", "diff") and (
            value.casefold() in _ACTION_QUERY or key.casefold() in ("oldid", "diff")
        ):
            return f"'{key}={value}' is an action or an old version, not a page"
    return None


@lru_cache(maxsize=_REMEMBERED)
def penalty(url: str) -> float:
    """Factor on a link's score: below 1 for listings, histories, searches, print views and code."""
    parts = urlsplit(url)
    name, _ = _last_segment(parts.path)
    folders = parts.path.strip("/").casefold().split("/")[:-1]
    listed = not _LISTINGS.isdisjoint((name, *folders[:1]))
    if _is_source_listing(name) or not _SOURCE_FOLDERS.isdisjoint(folders):
        return _CODE_PENALTY
    return _LISTING_PENALTY if listed or "printable" in parts.query else 1.0


def _is_source_listing(name: str) -> bool:
    stem = name.removesuffix(_SOURCE_ENDING)
    return stem != name and ("_8" in stem or _SOURCE_NUMBER.fullmatch(stem) is not None)


def anchor_of(title: str) -> str:
    """What a link says of its target; empty when it only says "next", "here" or the like."""
    text = " ".join(title.split())
    plain = text.strip(" \u00ab\u00bb\u2039\u203a<>\u2190\u2192.:|[]()")
    return "" if is_generic_anchor(plain) else text


@lru_cache(maxsize=_REMEMBERED)
def path_words(url: str) -> str:
    """The words of a URL's path, without its file ending."""
    path = unquote(urlsplit(url).path)
    head, _, last = path.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    name = stem if dot and ending.casefold() in _PAGE_ENDINGS else last
    return " ".join(_WORD.findall(f"{head}/{name}"))


def path_date(url: str) -> datetime | None:
    """The date that a URL's path names, as those of announcements and archives do."""
    for year, month, day in _DATE.findall(urlsplit(url).path):
        with suppress(ValueError):
            return datetime(int(year), int(month), int(day or 1), tzinfo=UTC)
    return None


def next_to_try(urls: Iterable[str], *, failed: Iterable[str], obtained: Iterable[str]) -> int:
    """Position of the first URL outside the folders that seem to be missing; 0 when none is.

    A folder seems to be missing when several of its pages could not be obtained and none could.
    """
    failures = Counter(map(_folder, failed))
    alive = set(map(_folder, obtained))
    dead = {folder for folder, count in failures.items() if count >= _DEAD_FOLDER_FAILURES} - alive
    return next((n for n, url in enumerate(urls) if _folder(url) not in dead), 0)


def silent_sites(unanswered: Iterable[str]) -> frozenset[str]:
    """Sites that gave no answer to several requests.

    Args:
        unanswered: Addresses for which there was none.
    """
    counted = Counter(map(site_of, unanswered))
    return frozenset(s for s, count in counted.items() if count >= _SILENT_SITE_FAILURES)


def worth_now(scores: Sequence[float], size: int, *, rounds_left: int, are_telling: bool) -> int:
    """How many of the links are worth a fetch now, at least one.

    A link that scores far below the best one waits while further rounds are to come: the pages
    fetched now link to better ones, and each page can be spent once. So do those far down the list:
    where many links are dead, what takes their place would be the worst of them.

    Args:
        scores: Of the links, best first.
        size: Pages wanted now.
        rounds_left: Rounds that may still be made, this one included.
        are_telling: Whether the scores were made under other wordings as well, or by the text of
            the pages themselves. By a question's own words alone, waiting lost evidence.
    """
    if rounds_left <= 1:
        return max(len(scores), 1)
    bar = max(scores) * _WORTH_NOW_SHARE if scores and are_telling else 0.0
    worth = sum(score >= bar for score in scores)
    return max(min(worth, _TRIES_PER_PAGE * size), 1)


def weakest_followed(best_followed: float, confidence: float, page_s: float) -> float:
    """Least score of a link that promises more than a page costs, once others were followed.

    What a link promises grows with its score beside the best one followed before and with what is
    still to be found: where pages come quickly, a tenth of the best is enough while nothing is
    found, a fifth at a confidence of .5, half at .8, all of it from .9 on.

    Args:
        best_followed: Score of the best link that has led to a page; 0 before any has: a start page
            may name nothing of the question, so every link is worth a fetch.
        confidence: That the evidence so far answers the question, [0, 1].
        page_s: Seconds that a page has cost in this run.
    """
    cost = max(page_s, _LEAST_COST_S) / _PATIENCE_S
    return best_followed * (cost / max(1 - confidence, cost))


def shared_path(url: str, named: str) -> float:
    """Share of a named page's path, word by word from its beginning, that a URL has too.

    0 on other sites, and where the named page is that of a whole folder: all below would count.
    """
    words = path_words(named).casefold().split()
    is_folder = urlsplit(named).path.endswith("/") or words[-1:] == [_FOLDER_PAGE]
    if is_folder or not words or site_of(url) != site_of(named):
        return 0.0
    own = path_words(url).casefold().split()
    common = takewhile(lambda pair: pair[0] == pair[1], zip(words, own, strict=False))
    return sum(1 for _ in common) / len(words)


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0]


def _last_segment(path: str) -> tuple[str, str]:
    segment = unquote(path.rstrip("/").rpartition("/")[2]).casefold()
    stem, dot, ending = segment.rpartition(".")
    return (stem, ending) if dot else (segment, "")


FailureKind = Literal["dead", "refused", "cut off", "without an answer", "unusable"]

"""Why a link brought no page, as it is counted for users."""

_SILENT: Final = ("cut off", "without an answer")


def unanswered(kinds: Mapping[str, FailureKind]) -> frozenset[str]:
    """Find the addresses whose site gave no answer among those that failed."""
    return frozenset(url for url, kind in kinds.items() if kind in _SILENT)


def failures_in_words(kinds: Iterable[FailureKind]) -> str:
    """Count failed links by their kind, as in "2 links were dead, 1 was cut off"; may be empty."""
    counted = Counter(kinds)
    said = [f"{n} {'was' if n == 1 else 'were'} {kind}" for kind, n in counted.most_common()]
    if not said:
        return ""
    count, _, rest = said[0].partition(" ")
    return ", ".join((f"{count} link{'' if count == '1' else 's'} {rest}", *said[1:]))


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

    @property
    def is_on_page(self) -> bool:
        """Whether it stands on a page, and is neither named by a map nor derived."""
        return self.parent_url is not None and not self.found_in


class ExpansionOutcome(FrozenModel):
    """Result of following links for one round.

    Attributes:
        ingested: Pages obtained, with the page each link was found on.
        failed: URL to reason.
        failure_kinds: URL to what kind of failure that was.
        seconds: URL of each page obtained to the time its fetch took, indexing included.
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
    failure_kinds: dict[str, FailureKind] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)
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

    def own_first(self, wanted: int) -> "Frontier":
        """Put the links of named pages first where these have few, four of five pages wanted.

        A site's own map knows names and texts; who wrote the named page knew what belongs to it.
        """
        ordered = (*self.candidates, *self.spares)
        own = [each for each in ordered if each.depth == 1 and each.is_on_page]
        if len(own) > _FEW_OWN:
            return self
        first = own[: math.ceil(wanted * _OWN_SHARE)]
        moved = (*first, *(each for each in ordered if each not in first))
        count = len(self.candidates)
        return replace(self, candidates=moved[:count], spares=moved[count:])

    def without(self, sites: frozenset[str]) -> "Frontier":
        """The links that lead to none of some sites."""
        if not sites:
            return self
        kept, spares = (
            tuple(each for each in part if site_of(each.url) not in sites)
            for part in (self.candidates, self.spares)
        )
        return replace(self, candidates=kept, spares=spares)
