"""Recognises the parts of a site that never end, by addresses, outcomes and repetition. No I/O."""

import hashlib
import json
import re
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from webrag.crawling.report import SIZE_REASONS

_WORD: Final = re.compile(r"[^\W\d_]+")
# Odd constants without a pattern, one per word of a shingle.
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD], np.uint64)
_LEAST_WORDS: Final = 20
_BANDS: Final = 4  # texts that differ in up to 3 of 64 bits share one of four bands
_BAND_BITS: Final = 64 // _BANDS
_MOST_DIFFERENT_BITS: Final = 3
_REMEMBERED: Final = 4_000


def text_signature(text: str) -> int | None:
    """64 bits that hardly differ between texts that hardly differ; None for short texts."""
    words = _words(text)
    if len(words) < _LEAST_WORDS:
        return None
    hashes = np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64, len(words))
    shingles = hashes[:-2] * _FACTORS[0] ^ hashes[1:-1] * _FACTORS[1] ^ hashes[2:] * _FACTORS[2]
    mixed = np.unique(shingles)
    for factor in _FACTORS:  # so that every bit depends on every word
        mixed ^= mixed >> np.uint64(31)
        mixed *= factor
    bits = np.unpackbits((mixed ^ mixed >> np.uint64(32)).view(np.uint8).reshape(-1, 8), axis=1)
    majority = bits.sum(axis=0, dtype=np.int64) * 2 > len(mixed)
    return int.from_bytes(np.packbits(majority).tobytes(), "big")


def words_hash(text: str) -> int:
    """Equal for texts whose words are equal, numbers ignored; for those without a signature."""
    return zlib.crc32(" ".join(_words(text)).encode())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


class KnownTexts:
    """The texts met lately, at most a few thousand."""

    def __init__(self) -> None:
        self._bands: OrderedDict[tuple[int, int], int] = OrderedDict()

    def as_values(self) -> list[tuple[int, int, int]]:
        """All that is known, as numbers, those met longest ago first."""
        return [(*band, signature) for band, signature in self._bands.items()]

    def take_values(self, values: Iterable[Sequence[int]]) -> None:
        """Know what `as_values` gave."""
        self._bands = OrderedDict(((band, bits), signature) for band, bits, signature in values)

    def add(self, signature: int) -> bool:
        """Remember a text and tell whether a text like it was known."""
        bands = [
            (band, signature >> band * _BAND_BITS & (1 << _BAND_BITS) - 1) for band in range(_BANDS)
        ]
        seen = [self._bands[band] for band in bands if band in self._bands]
        for band in bands:
            self._bands[band] = signature
            self._bands.move_to_end(band)
        while len(self._bands) > _REMEMBERED * _BANDS:
            self._bands.popitem(last=False)
        return any((signature ^ other).bit_count() <= _MOST_DIFFERENT_BITS for other in seen)


_UUID = r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}"
_HEX = r"(?=[a-f]*[0-9])[0-9a-f]{8,}"
_TOKEN = r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{20,}"  # noqa: S105
_CHANGING: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_UUID}|{_HEX}|{_TOKEN})(?![A-Za-z0-9])|[0-9]+", re.IGNORECASE
)
_VARIABLE: Final = "#"  # no path and no query holds one
_SESSION_KEYS: Final = frozenset(
    """cfid cftoken jsessionid oscsid phpsessid sess session_id sessionid sessid xtsid
    zenid""".split()  # noqa: SIM905
)
_SESSION_PATH: Final = re.compile(
    r";(?:jsessionid|sid|phpsessid|cfid|cftoken)=[^/;?]*|/\((?:[SAF]\([A-Za-z0-9_-]+\))+\)",
    re.IGNORECASE,
)
_SESSION_VALUE: Final = re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{12,}\Z")
_SHORT_SESSION_KEYS: Final = frozenset({"s", "sid", "session"})
_CALENDAR: Final = re.compile(r"(?:^|/)(?:1[89]|2[0-9])[0-9]{2}[/-](?:0?[1-9]|1[0-2])(?:[/-]|/?$)")
_ENDING: Final = re.compile(r"\.[A-Za-z]{1,5}$")


def without_session(url: str) -> str:
    """The URL without the session id it carries in its path or query."""
    head, mark, query = url.partition("?")
    head = _SESSION_PATH.sub("", head)
    kept = [part for part in query.split("&") if not _is_session(part)]
    return head + (f"{mark}{'&'.join(kept)}" if mark and any(kept) else "")


def url_pattern(url: str) -> str:
    """The path and query of a URL with numbers and ids replaced: what a program varies."""
    return _path_and_query(url, _plain)


def path_pattern(url: str) -> str:
    """The path of a URL with numbers and ids replaced."""
    return _plain(urlsplit(url).path)


def varies(url: str) -> bool:
    """Tell whether a program could make more addresses like this one by counting."""
    return url_pattern(url) != _path_and_query(url, str)


def is_calendar(url: str) -> bool:
    """Tell whether the path ends in a year and a month, and in no word of its own."""
    path = urlsplit(url).path
    last = _ENDING.sub("", path.rstrip("/").rpartition("/")[2])
    return _CALENDAR.search(path) is not None and not any(char.isalpha() for char in last)


def places(url: str) -> list[tuple[bool, str]]:
    """The page's folder itself, then with True everything below each folder above it."""
    folder = _plain(urlsplit(url).path.rpartition("/")[0]) + "/"
    names = folder.strip("/").split("/") if folder != "/" else []
    above = [f"/{'/'.join(names[:count])}/" if count else "/" for count in range(len(names) + 1)]
    return [(False, folder), *((True, path) for path in above)]


def parameters(url: str) -> list[tuple[str, str]]:
    """Names and values in the query of a URL."""
    query = urlsplit(url).query
    return parse_qsl(query, keep_blank_values=True) if query else []


def _plain(text: str) -> str:
    return _CHANGING.sub(_VARIABLE, text)


def _path_and_query(url: str, shown: Callable[[str], str]) -> str:
    query = "&".join(sorted(f"{key}={shown(value)}" for key, value in parameters(url)))
    return shown(urlsplit(url).path) + (f"?{query}" if query else "")


def _is_session(part: str) -> bool:
    key, _, value = part.partition("=")
    name = key.casefold()
    if name in _SHORT_SESSION_KEYS:
        return _SESSION_VALUE.match(value) is not None
    return name in _SESSION_KEYS or name.startswith("aspsessionid")


_REMEMBERED_FOLDERS: Final = 2_000
_TREE_FACTOR: Final = 2
_SITE_FACTOR: Final = 5
_VISITS_PER_NEW_TEXT: Final = 4


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Limits of each rule.

    Of pages whose addresses differ only in numbers and ids, or in one query parameter, `trial` are
    visited before what they say decides about the rest, `share` before all others, and `waiting`
    taken note of. Of a site `per_deep` have paths of `deep_segments`; of a path `per_facets` have
    several query parameters, in `key_sets` combinations. Failures, and duplicates of other pages,
    are in a row in one folder; twice as many below a folder, five times as many on the site.
    """

    depth: int = 50
    segments: int = 16
    repeats: int = 2
    parameters: int = 6
    trial: int = 50
    share: int = 250
    waiting: int = 6_000
    per_deep: int = 250
    deep_segments: int = 8
    per_facets: int = 100
    key_sets: int = 12
    failures: int = 20
    duplicates: int = 12

    @classmethod
    def for_pages(cls, max_pages: int) -> "TrapLimits":
        """Limits in proportion: addresses that differ in numbers get half of the pages first."""
        half, quarter = max(max_pages // 2, 50), max(max_pages // 4, 50)
        facets = max(max_pages // 10, 25)
        waiting = 5_000 + 2 * max_pages
        return cls(share=half, waiting=waiting, per_deep=quarter, per_facets=facets)


@dataclass(slots=True)
class _Series:
    """Pages whose addresses a program could have made by counting; the new ones told news."""

    visited: int = 0
    new: int = 0


class TrapGuard:
    """Keeps count of one crawl; its memory is bounded whatever the site."""

    def __init__(self, limits: TrapLimits) -> None:
        self._limits = limits
        self._counts: Counter[int] = Counter()
        self._key_sets: dict[int, set[int]] = {}
        self._folders: OrderedDict[tuple[bool, str], Counter[str]] = OrderedDict()
        self._closed: dict[tuple[bool, str], str] = {}
        self._texts = KnownTexts()
        self._series: dict[int, _Series] = {}
        self._short_texts: set[int] = set()

    def learned(self) -> bytes:
        """All that was counted, compressed, for a guard of another process to `recall`."""
        values = {
            "counts": list(self._counts.items()),
            "key_sets": [(key, sorted(known)) for key, known in self._key_sets.items()],
            "folders": [(*key, f["failures"], f["duplicates"]) for key, f in self._folders.items()],
            "closed": [(*key, reason) for key, reason in self._closed.items()],
            "texts": self._texts.as_values(),
            "series": [(key, each.visited, each.new) for key, each in self._series.items()],
            "short_texts": sorted(self._short_texts),
        }
        return zlib.compress(json.dumps(values).encode())

    def recall(self, learned: bytes) -> None:
        """Take over what the guard of another process has `learned`."""
        values = json.loads(zlib.decompress(learned))
        self._counts = Counter(dict(values["counts"]))
        self._key_sets = {key: set(known) for key, known in values["key_sets"]}
        for is_tree, path, failures, duplicates in values["folders"]:
            self._folders[is_tree, path] = Counter(failures=failures, duplicates=duplicates)
        self._closed = {(is_tree, path): why for is_tree, path, why in values["closed"]}
        self._texts.take_values(values["texts"])
        self._series = {key: _Series(*counts) for key, *counts in values["series"]}
        self._short_texts = set(values["short_texts"])

    def admit(self, url: str, depth: int) -> str | None:
        """Take a page, so many links from the start, into the count, or say to users why not."""
        reason = self._shape_reason(url, depth) or self.closed(url)
        if reason is not None:
            return reason
        keys = self._keys(url)
        limits = {
            "waiting": self._limits.waiting,
            "deep": self._limits.per_deep,
            "facets": self._limits.per_facets,
        }
        for rule, key in keys:
            if self._counts[key] >= limits[rule]:
                return SIZE_REASONS[rule]
        if self._too_many_key_sets(url):
            return SIZE_REASONS["facets"]
        self._counts.update(key for _, key in keys)
        return None

    def release(self, url: str) -> None:
        """Take back an admission: the page was known already."""
        self._counts.subtract(key for _, key in self._keys(url))

    def closed(self, url: str) -> str | None:
        """Say why nothing more is fetched where this page is, None when it may be."""
        if not self._closed:
            return None
        return next((self._closed[key] for key in places(url) if key in self._closed), None)

    def begin(self, url: str) -> str | None:
        """Take a page into the count of those visited, or say to users why it is left alone.

        Pages in a series, numbered or told apart by a parameter, go on as long as one in four says
        something new: a manual's do, those of a program that counts do not.
        """
        reason = self.closed(url)
        if reason is not None:
            return reason
        keys = self._series_keys(url)
        for rule, key in keys:
            known = self._series.setdefault(key, _Series())
            if known.visited >= self._limits.trial + _VISITS_PER_NEW_TEXT * known.new:
                return _SERIES_REASONS[rule]
        for _, key in keys:
            self._series[key].visited += 1
        return None

    def may_wait(self, url: str) -> bool:
        """Tell whether a page comes after all others: pages like it have had their share."""
        found = (self._series.get(key) for _, key in self._series_keys(url))
        return any(each is not None and each.visited >= self._limits.share for each in found)

    def note_obtained(
        self, url: str, signature: int | None, *, words: int = 0, is_alias: bool = False
    ) -> None:
        """Learn from a page, or an alias, by its `text_signature`, or else its `words_hash`."""
        is_known = signature is not None and self._texts.add(signature)
        if not is_alias and not is_known and self._is_new(signature, words):
            for _, key in self._series_keys(url):
                self._series.setdefault(key, _Series()).new += 1
        if is_alias or is_known:
            self._note(url, "duplicates")
            return
        for place in places(url):
            self._folders.pop(place, None)

    def note_failed(self, url: str) -> None:
        """Learn from a page that could not be obtained."""
        self._note(url, "failures")

    def _shape_reason(self, url: str, depth: int) -> str | None:
        limits = self._limits
        names = urlsplit(url).path.strip("/").split("/")
        words = Counter(name for name in names if not name.isdigit())
        if depth > limits.depth:
            return f"more than {limits.depth} links from the start page"
        if len(names) > limits.segments:
            return "a path that does not end"
        if max(words.values(), default=0) > limits.repeats:
            return "a path that repeats itself"
        if len(parameters(url)) > limits.parameters:
            return "too many query parameters"
        return None

    def _is_new(self, signature: int | None, words: int) -> bool:
        if signature is not None:
            return True
        if words in self._short_texts or len(self._short_texts) >= _REMEMBERED:
            return False
        self._short_texts.add(words)
        return True

    def _series_keys(self, url: str) -> list[tuple[str, int]]:
        return [_key(rule, series) for rule, series in _series_of(url)]

    def _keys(self, url: str) -> list[tuple[str, int]]:
        """The limits that a page counts for, each with what it is counted under."""
        keys = [_key("waiting", f"{rule} {series}") for rule, series in _series_of(url)]
        if urlsplit(url).path.strip("/").count("/") + 1 >= self._limits.deep_segments:
            keys.append(_key("deep", ""))
        if len(parameters(url)) > 1:
            keys.append(_key("facets", path_pattern(url)))
        return keys

    def _too_many_key_sets(self, url: str) -> bool:
        names = sorted(key for key, _ in parameters(url))
        if not names:
            return False
        known = self._key_sets.setdefault(_key("keys", path_pattern(url))[1], set())
        _, combination = _key("set", "&".join(names))
        if combination not in known and len(known) >= self._limits.key_sets:
            return True
        known.add(combination)
        return False

    def _note(self, url: str, what: Literal["failures", "duplicates"]) -> None:
        limit = getattr(self._limits, what)
        for key in places(url):
            folder = self._folders.setdefault(key, Counter())
            self._folders.move_to_end(key)
            folder[what] += 1
            if folder[what] >= limit * _patience(*key):
                self._closed[key] = _CLOSED_REASONS[what]
        while len(self._folders) > _REMEMBERED_FOLDERS:
            self._folders.popitem(last=False)


_SERIES_REASONS: Final = {
    "calendar": "a calendar whose pages say the same",
    "pattern": "pages whose addresses differ in numbers only and that say the same",
    "query": "pages that differ in a query parameter only and say the same",
}

_CLOSED_REASONS: Final = {
    "failures": "in a folder where one page after the other failed",
    "duplicates": "in a folder where one page after the other said the same",
}


def _patience(is_tree: bool, path: str) -> int:
    """The more a verdict would close, the later it falls."""
    if not is_tree:
        return 1
    return _TREE_FACTOR if path != "/" else _SITE_FACTOR


def _series_of(url: str) -> list[tuple[str, str]]:
    series = []
    if varies(url):
        series.append(("calendar" if is_calendar(url) else "pattern", url_pattern(url)))
    if len(parameters(url)) == 1:
        series.append(("query", path_pattern(url)))
    return series


def _key(rule: str, value: str) -> tuple[str, int]:
    """A rule, and a number for what it counts, so that memory does not grow with addresses."""
    digest = hashlib.blake2b(f"{rule}\n{value}".encode("utf-8", "replace"), digest_size=8)
    return rule, int.from_bytes(digest.digest(), "big")
