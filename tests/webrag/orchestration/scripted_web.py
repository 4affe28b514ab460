"""A network and a corpus that answer as they are told."""

import asyncio
from collections.abc import Collection
from datetime import datetime
from typing import Any

from webrag.corpus.acquirer import AdmitPage, PageNotAdmittedError
from webrag.corpus.models import AcquiredPage, LinkCandidate, StoredPage
from webrag.ingestion.fetch_context import received
from webrag.orchestration.links.expander import LinkExpander
from webrag.orchestration.links.rules import LinkScope
from webrag.orchestration.models import ExpansionConfig

SEED = "https://d.test/guide/start"


SCOPE = LinkScope.of("same_site", [SEED])


def target(name: object) -> str:
    return f"https://d.test/{name}"


class Web:
    """A scripted network: each target answers with an error, another URL, or itself."""

    def __init__(self, answers: dict[str, Any] | None = None, size: int = 10) -> None:
        self.answers = answers or {}
        self.size = size
        self.asked: list[str] = []
        self.running = 0
        self.most_running = 0
        self.stored: list[str] = []
        self.already_stored: set[str] = set()
        self.dead: set[str] = set()
        self.stored: list[str] = []
        self.links_of: dict[str, list[LinkCandidate]] = {}

    async def acquire(
        self, url: str, *, depth: int = 0, admits: AdmitPage | None = None
    ) -> AcquiredPage:
        self.asked.append(url)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            answer = self.answers.get(url, url)
            if answer is None:
                await asyncio.Event().wait()
            received(self.size)
            if isinstance(answer, Exception):
                raise answer
            if admits is not None and not admits(answer):
                raise PageNotAdmittedError(f"{url} leads to {answer}.", url=url)
            self.stored.append(answer)
            return AcquiredPage(
                url=answer,
                requested_url=url,
                page_id=1,
                title=None,
                outcome="stored" if url in self.already_stored else "indexed",
                depth=depth,
                chunk_count=2,
                token_count=10,
            )
        finally:
            self.running -= 1

    async def links(self, urls: list[str]) -> list[LinkCandidate]:
        return [link for url in urls for link in self.links_of.get(url, [])]

    async def known_dead(self, urls: Collection[str], _now: datetime) -> frozenset[str]:
        return frozenset(urls) & self.dead

    async def pages(self, urls: list[str]) -> dict[str, StoredPage]:
        return {url: None for url in urls if url in self.stored}  # type: ignore[misc]

    def expander(self, **config: Any) -> LinkExpander:
        return LinkExpander(self, None, ExpansionConfig(**config))  # type: ignore[arg-type]
