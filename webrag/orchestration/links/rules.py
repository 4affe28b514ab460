"""Rules for following links, by their addresses; it scores no relevance."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from webrag.ingestion.addresses import site_of
from webrag.ingestion.models import is_generic_anchor
from webrag.orchestration.models import NextLink

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
# A site that let so many requests run into nothing is left: each costs a round's whole time.
_SILENT_SITE_FAILURES: Final = 3
# Probability of a link that is followed before all others. Where none is as likely, waiting for
# better ones lost evidence.
_STANDS_OUT: Final = 0.15
# Of the best link's; what is far below it waits for a round that knows more links.
_FAR_BELOW: Final = 0.25
# Seconds that a reader would wait for an answer that is certain to come.
_PATIENCE_S: Final = 800.0
_LEAST_COST_S: Final = 2.0  # a page that takes no time still takes a reader's attention
# After these a link must promise the more, the more pages were read: docs/experiments.md, "Pages
# against recall", has what that leaves out.
_PATIENT_PAGES: Final = 5
# Links tried for each page wanted, before links are scored again with what the others brought.
_TRIES_PER_PAGE: Final = 2
_WORD: Final = re.compile(r"[^\W_]+")
# Of a round's pages, where the named page has few links. An index has hundreds, and for these the
# site's map chooses better: with two of five pages kept for them, .594 in place of .625 was found.
_OWN_SHARE: Final = 0.8
_FEW_OWN: Final = 10
_REMEMBERED: Final = 20_000  # addresses; each round scores those of the last one again


@dataclass(frozen=True, slots=True)
class LinkScope:
    """The targets a run may follow.

    Attributes:
        kind: `same_site` stays on the sites of the named pages, `allow_list` adds the allowed
            domains with their subdomains, `any` admits every http(s) address.
        sites: Sites of the named pages, as `site_of` gives them.
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
        """Tell whether a canonical URL may be followed."""
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


class NoPage(str):
    """Says in a clause for users why an address leads to no page that anything could store."""


def skip_reason(url: str, *, reads_pdf: bool = False) -> NoPage | None:
    """Say in a clause for users why a target can hold no answer; None when it may.

    With `reads_pdf` PDFs may hold one, too. Within one question they take too long: many are the
    whole manual.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "file", "git+https", "git+http"):
        return NoPage(f"a {parts.scheme} address is not a page")
    name, ending = _last_segment(parts.path)
    if ending in _NOT_PAGES and not (reads_pdf and ending == "pdf"):
        return NoPage(f"a .{ending} file is not a page that can be read")
    if ending not in _PAGE_ENDINGS and name in _ACTIONS:
        return NoPage(f"'{name}' is an action, not a page")
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        is_action = key.casefold() in ("action", "do") and value.casefold() in _ACTION_QUERY
        if is_action or key.casefold() in ("oldid", "diff"):
            return NoPage(f"'{key}={value}' is an action or an old version, not a page")
    return None


@lru_cache(maxsize=_REMEMBERED)
def penalty(url: str) -> float:
    """Factor on a link's score: below 1 for listings, histories, searches, print views and code."""
    parts = urlsplit(url)
    name, _ = _last_segment(parts.path)
    folders = parts.path.strip("/").casefold().split("/")[:-1]
    stem = name.removesuffix(_SOURCE_ENDING)
    is_source = stem != name and ("_8" in stem or _SOURCE_NUMBER.fullmatch(stem))
    if is_source or not _SOURCE_FOLDERS.isdisjoint(folders):
        return _CODE_PENALTY
    is_listing = not _LISTINGS.isdisjoint((name, *folders[:1])) or "printable" in parts.query
    return _LISTING_PENALTY if is_listing else 1.0


@lru_cache(maxsize=_REMEMBERED)
def anchor_of(title: str) -> str:
    """The words by which a link describes its target; empty for "next", "here" or the like."""
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


def silent_sites(failures: Mapping[str, "FailureKind"]) -> frozenset[str]:
    """Sites that gave no answer to several requests, by the addresses that failed."""
    counted = Counter(site_of(url) for url, kind in failures.items() if kind in _SILENT)
    return frozenset(s for s, count in counted.items() if count >= _SILENT_SITE_FAILURES)


def worth_now(scores: Sequence[float], size: int, *, rounds_left: int) -> int:
    """Count the links, told by their scores, best first, that are worth a fetch now; at least one.

    A link that is far less likely than one that stands out waits while further rounds are to come:
    the pages fetched now link to better ones, and each page can be spent once. So do those far
    down the list: where many links are dead, what takes their place would be the worst of them.
    The rounds left include this one, in which `size` pages are wanted.
    """
    if rounds_left <= 1:
        return max(len(scores), 1)
    best = max(scores, default=0.0)
    bar = best * _FAR_BELOW if best >= _STANDS_OUT else 0.0
    worth = sum(score >= bar for score in scores)
    return max(min(worth, _TRIES_PER_PAGE * size), 1)


def weakest_followed(confidence: float, page_s: float, pages: int, in_vain: float) -> float:
    """Give the least probability of a link that promises more than a page costs.

    What it promises counts as far as the answer is still missing, and a page costs the more the
    surer the evidence is that it may push out: by the seconds that a page has cost in this run, and
    the pages read after the named ones. Pages that were likely to answer, and brought nothing
    better than what there was, make that the likelier answer: `in_vain` is the chance by their
    links' scores that none of them answers.
    """
    missing = (1 - confidence) * in_vain
    missing /= (confidence + missing) or 1.0
    cost = max(page_s, _LEAST_COST_S) / _PATIENCE_S * max(pages / _PATIENT_PAGES, 1)
    return min(cost / max(missing, 1e-3) ** 2, 1.0)


def _last_segment(path: str) -> tuple[str, str]:
    segment = unquote(path.rstrip("/").rpartition("/")[2]).casefold()
    stem, dot, ending = segment.rpartition(".")
    return (stem, ending) if dot else (segment, "")


FailureKind = Literal["dead", "refused", "cut off", "without an answer", "unusable"]

"""Why a link brought no page, as it is counted for users."""

_SILENT: Final = ("cut off", "without an answer")


def failures_in_words(kinds: Iterable[FailureKind]) -> str:
    """Count failed links by their kind, as in "2 links were dead, 1 was cut off"; may be empty."""
    counted = Counter(kinds)
    said = [f"{n} {'was' if n == 1 else 'were'} {kind}" for kind, n in counted.most_common()]
    if not said:
        return ""
    count, _, rest = said[0].partition(" ")
    return ", ".join((f"{count} link{'' if count == '1' else 's'} {rest}", *said[1:]))


@dataclass(slots=True)
class ExpansionOutcome:
    """Result of following links for one round.

    Attributes:
        ingested: Pages obtained, with the page each link was found on.
        failed: URL to reason.
        seconds: URL of each page obtained to the time its fetch took, indexing included.
        aliases: URL that turned out to be another address of a known page, to that page's.
        sources: URL of each page obtained to the name of the page source it came from.
        rate_limited: A service's limit of requests was reached, so the round was made smaller.
        stopped_by: Sentence that says why this run can obtain no more pages; None when it can.
    """

    ingested: list[NextLink] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    failure_kinds: dict[str, FailureKind] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    chunks_by_url: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    candidates_scored: int = 0
    timed_out: bool = False
    rate_limited: bool = False
    stopped_by: str | None = None

    @property
    def tried(self) -> int:
        """Links that were followed, in vain or not."""
        return len(self.ingested) + len(self.failed) + len(self.aliases)


@dataclass(frozen=True, slots=True)
class Frontier:
    """Links that may be followed next, best first; none is stored, failed or outside the scope.

    Attributes:
        scored: Targets that were scored to find them.
        degraded: Sentence that says why a mapping service added nothing; None when all is well.
        dead: Links that were left out because they failed lately, in another run.
        refused: A sentence for each map of the site that was refused just now.
        weak: Links that promise less than a page costs; named, and not followed.
    """

    candidates: tuple[NextLink, ...] = ()
    scored: int = 0
    degraded: str | None = None
    dead: int = 0
    refused: tuple[str, ...] = ()
    weak: tuple[NextLink, ...] = ()

    def reaching(self, score: float) -> "Frontier":
        """The links that score at least so much; the others are weak."""
        kept = tuple(each for each in self.candidates if each.score >= score)
        weak = tuple(each for each in self.candidates if each.score < score)
        return replace(self, candidates=kept, weak=weak)

    def own_first(self, wanted: int) -> "Frontier":
        """Put the links of named pages first where these have few, four of five pages wanted.

        A site's own map knows names and texts; who wrote the named page knew what belongs to it.
        What is far less likely than the best link stays where it is.
        """
        linked = (each for each in self.candidates if each.page_url and not each.found_in)
        own = [each for each in linked if each.depth == 1]
        if len(own) > _FEW_OWN:
            return self
        bar = max((each.score for each in self.candidates), default=0.0) * _FAR_BELOW
        first = [each for each in own if each.score >= bar][: math.ceil(wanted * _OWN_SHARE)]
        moved = (*first, *(each for each in self.candidates if each not in first))
        return replace(self, candidates=moved)

    def without(self, sites: frozenset[str]) -> "Frontier":
        """The links that lead to none of some sites."""
        kept = tuple(each for each in self.candidates if site_of(each.url) not in sites)
        return replace(self, candidates=kept)
