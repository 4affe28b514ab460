"""Remembers what each site's robots.txt allows; it does not fetch the file itself."""

import asyncio
import itertools
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from protego import Protego

from webrag.concurrency import in_background

KEPT_S = 3_600.0
# A site in trouble is asked again soon; a working one at most once per hour.
FAILURE_KEPT_S = 60.0
_REMEMBERED_SITES = 500
_MAX_SITEMAPS = 100
# An address is compared with every rule: 150,000 wildcards, which 500 kB can hold, take half a
# second each time. Files of large shops hold some hundreds.
_MAX_WILDCARDS = 20_000


@dataclass(frozen=True)
class RobotsAnswer:
    """A robots.txt, of which "" allows everything, or the reason why there is none to read."""

    text: str = ""
    failure: str | None = None


@dataclass(frozen=True)
class RobotsRules:
    """One site's rules for one crawler; a `failure` says why they are unknown.

    Then nothing may be fetched (RFC 9309, 2.3.1.4). Sitemaps are addresses as written.
    """

    failure: str | None
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]
    _parsed: Protego
    _agent: str

    def allows(self, url: str) -> bool:
        """Tell whether the rules let this crawler fetch `url`."""
        return self.failure is None and bool(self._parsed.can_fetch(url, self._agent))


Fetch: TypeAlias = Callable[[str], Awaitable[RobotsAnswer]]


class _Entry:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.rules: RobotsRules | None = None
        self.expires = 0.0


class RobotsCache:
    """Rules per site, fetched once however many pages of it are wanted at the same time."""

    def __init__(self, fetch: Fetch, user_agent: str) -> None:
        self._fetch = fetch
        self._agent = user_agent.partition("/")[0].strip() or user_agent
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def rules(self, origin: str) -> RobotsRules:
        """Return the rules of `https://host[:port]`, asking when they are not known or too old."""
        entry = self._entries.setdefault(origin, _Entry())
        self._entries.move_to_end(origin)
        while len(self._entries) > _REMEMBERED_SITES:
            self._entries.popitem(last=False)
        async with entry.lock:
            if entry.rules is None or time.monotonic() > entry.expires:
                answer = await self._fetch(f"{origin}/robots.txt")
                # Reading 500 kB takes half a second.
                entry.rules = await in_background(self._parse, answer)
                kept = KEPT_S if answer.failure is None else FAILURE_KEPT_S
                entry.expires = time.monotonic() + kept
        return entry.rules

    def _parse(self, answer: RobotsAnswer) -> RobotsRules:
        failure, is_huge = answer.failure, answer.text.count("*") > _MAX_WILDCARDS
        if is_huge:
            failure = f"The site's robots.txt has more than {_MAX_WILDCARDS:,} wildcards."
        parsed = Protego.parse("" if is_huge else answer.text)
        delay = parsed.crawl_delay(self._agent)
        sitemaps = tuple(itertools.islice(parsed.sitemaps, _MAX_SITEMAPS))
        return RobotsRules(failure, delay, sitemaps, parsed, self._agent)
