"""Shows stored pages, adds, refreshes and forgets them, and exports all."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ada_url import URL
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from webrag.argument_checks import shown_value
from webrag.corpus.models import FailedPage
from webrag.corpus.rows import document_id_of
from webrag.crawling.report import MOST_PAGES, USUAL_PAGES, CrawlOptions
from webrag.errors import AccessDeniedError, FetchError, InputError, WebRAGError
from webrag.ingestion.addresses import is_file
from webrag.presentation.reports import OUTCOMES, counted, crawl_line, ending
from webrag.settings.model import changed_settings
from webrag.web.asking import addresses
from webrag.web.rendering import HEADERS
from webrag.web.runs import WatchedRun
from webrag.web.site import (
    COLLECTION_COOKIE,
    Failure,
    Site,
    failure_of,
    may_allow_hosts,
    may_run,
    number,
)

if TYPE_CHECKING:
    from webrag.corpus.models import AcquiredPage, CorpusStatus
    from webrag.crawling.report import CrawlProgress, SiteReport

_PAGES_SHOWN = 50
_MOST_PORTIONS = 999_999
_JOBS_SHOWN = 8
_MOST_FAILURES = 500

_JOBS = ("pages", "site")


class _CorpusHandlers:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """Sites first; pages of a site or that were looked for, or those that were not fetched."""
        site = self._site
        words = request.query_params.get("find", "").strip()
        host = request.query_params.get("site", "").strip()
        portion = number(request.query_params.get("page", "1"), "The page", _MOST_PORTIONS)
        shows = request.query_params.get("show", "pages" if words or host else "sites")
        async with site.enter(request, "status") as rag:
            status: CorpusStatus = await rag.status(include_urls=False)
            start = (portion - 1) * _PAGES_SHOWN
            found = await rag.list_pages(words, site=host or None, limit=_PAGES_SHOWN, offset=start)
        failures = status.failures[:_MOST_FAILURES] if shows == "failed" else ()
        return site.page(
            request,
            "corpus.html",
            status=status,
            sites=status.sites,
            words=words,
            host=host,
            found=found.total,
            folders=sorted(
                {page.url.rpartition("/")[0] for page in found.pages if is_file(page.url)}
            ),
            pages=[(document_id_of(page.url), page) for page in found.pages],
            number=portion,
            is_last=start + _PAGES_SHOWN >= found.total,
            failures=[failure_of(e) for e in failures if words in f"{e.url} {e.reason}"],
            may_allow=may_allow_hosts(site),
            shows=shows,
            jobs=site.runs.latest(*_JOBS, owner=site.owner_of(request))[:_JOBS_SHOWN],
            may_forget=site.may_forget,
            may_switch=site.may_switch,
        )

    async def add(self, request: Request) -> Response:
        form = await self._site.checked_form(request)
        urls = _named(form)
        refresh = bool(form.get("refresh"))
        if form.get("whole") != "site":
            return self._begin(request, "pages", {"urls": urls, "refresh": refresh}, _pages_work)
        limit = number(form.get("max_pages") or USUAL_PAGES, "The number of pages", MOST_PAGES)
        asked = {"urls": urls[:1], "max_pages": limit, "refresh": refresh}
        return self._begin(request, "site", asked, _site_work)

    async def allow(self, request: Request) -> Response:
        """Let a host be contacted although its address is private, and fetch a page of it."""
        site = self._site
        form = await site.checked_form(request)
        if site.renew is None or not may_allow_hosts(site):
            raise AccessDeniedError("This server lets nobody allow hosts here.")
        settings, urls = site.settings(), _named(form)[:1]
        host = URL(urls[0]).host if URL.can_parse(urls[0]) else ""
        if not host or "," in host:
            raise InputError(f"No host can be allowed for {shown_value(urls[0])}.")
        hosts = ",".join(dict.fromkeys([*settings.allow_hosts, host]))
        with changed_settings(settings, {"allow_hosts": hosts}) as changed:
            await site.renew(changed)
        return self._begin(request, "pages", {"urls": urls, "refresh": True}, _pages_work)

    async def forget(self, request: Request) -> Response:
        site = self._site
        if not site.may_forget:
            raise AccessDeniedError("This server does not let anybody delete pages.")
        form = await site.checked_form(request)
        url, host = str(form.get("url", "")), str(form.get("site", ""))
        async with site.enter(request, "forget") as rag:
            if form.get("sure") == "yes":
                report = await rag.forget(url or None, site=host or None, confirm=True)
                return site.page(request, "forgotten.html", what=url or host, report=report)
            told: list[str] = []

            def never(urls: Any) -> bool:
                told.extend(urls)
                return False

            await rag.forget(url or None, site=host or None, confirm=never)
        return site.page(request, "forget.html", url=url, host=host, told=told)

    async def switch(self, request: Request) -> Response:
        site = self._site
        form = await site.checked_form(request)
        if not site.may_switch:
            raise AccessDeniedError("This server shows one collection to each of its callers.")
        name = str(form.get("collection", ""))
        async with site.enter(request, "status") as rag:
            names = [each.name for each in await rag.collections()]
        if name not in names:
            raise InputError(
                f"There is no collection {shown_value(name)}.",
                hint=f"There are: {', '.join(names)}.",
            )
        response = RedirectResponse("/corpus", status_code=303)
        cookie = site.templates.signed(name)
        response.set_cookie(COLLECTION_COOKIE, cookie, httponly=True, samesite="strict")
        return response

    async def export(self, request: Request) -> Response:
        if not may_run(request):
            raise AccessDeniedError(
                "Another site asked for the export; open the list of stored pages and export there."
            )
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="webrag-export-"))
        path = folder / "webrag-corpus.jsonl"
        try:
            async with self._site.enter(request, "read") as rag:
                await rag.export_corpus(path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        cleanup = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
        return FileResponse(path, filename=path.name, headers=dict(HEADERS), background=cleanup)

    def _begin(
        self,
        request: Request,
        kind: str,
        asked: dict[str, Any],
        work: Callable[[WatchedRun, Any], Awaitable[Any]],
    ) -> Response:
        site = self._site

        async def entered(run: WatchedRun) -> Any:
            async with site.enter(request, "ingest") as rag:
                return await work(run, rag)

        run = site.runs.start(kind, asked, entered, owner=site.owner_of(request))
        return RedirectResponse(f"/runs/{run.id}", status_code=303)


def _named(form: Mapping[str, Any]) -> tuple[str, ...]:
    urls = tuple(addresses([form.get("url", "")]))
    if not urls:
        raise InputError("No address was given: name a page or a site.")
    return urls


_NOTHING: Final = {
    "failures": (),
    "skipped": {},
    "ending": "",
    "notes": (),
    "may_go_on": False,
    "is_empty": False,
}


async def _pages_work(run: WatchedRun, rag: Any) -> dict[str, Any]:
    done = 0
    urls = run.asked["urls"]
    statuses: dict[str, int | None] = {}

    def told(url: str, outcome: "AcquiredPage | WebRAGError") -> None:
        nonlocal done
        done += 1
        is_failure = isinstance(outcome, WebRAGError)
        if isinstance(outcome, FetchError):
            statuses[url] = outcome.status
        text = str(outcome) if isinstance(outcome, WebRAGError) else OUTCOMES[outcome.outcome]
        run.tell("line", text=_line(url, text), failed=is_failure)
        run.tell_progress(f"{done:,} of {counted(len(urls), 'page')}")

    report = await rag.ingest(list(urls), refresh=run.asked["refresh"], on_page=told)
    failures = _failures(report.failed, statuses)
    return _NOTHING | {
        "counts": {"stored": len(report.pages), "failed": len(report.failed)},
        "failures": failures,
        "notes": report.degraded,
        "may_go_on": any(each.remedy == "again" for each in failures),
        "is_empty": not report.pages,
    }


def _failures(failed: Mapping[str, str], statuses: Mapping[str, int | None]) -> list[Failure]:
    now = datetime.now(UTC)
    return [
        failure_of(FailedPage(url=url, reason=why, checked_at=now, status=statuses.get(url)))
        for url, why in failed.items()
    ]


async def _site_work(run: WatchedRun, rag: Any) -> dict[str, Any]:
    options = CrawlOptions(max_pages=run.asked["max_pages"], refresh=run.asked["refresh"])
    statuses: dict[str, int | None] = {}

    def told(at: "CrawlProgress") -> None:
        if at.url:
            text = at.reason or OUTCOMES[at.outcome]
            run.tell("line", text=_line(at.url, text), failed=at.outcome == "failed")
            statuses[at.url] = at.status
        run.tell_progress(crawl_line(at))

    start_url = run.asked["urls"][0]
    report: SiteReport = await rag.ingest_site(start_url, options, on_progress=told)
    return _NOTHING | {
        "counts": {OUTCOMES[name]: count for name, count in report.pages.items() if count}
        | ({"visited before it was continued": report.before} if report.before else {})
        | {f"not fetched: {reason}": count for reason, count in report.failed.items()},
        "failures": _failures(report.failures, statuses),
        "skipped": report.skipped,
        "ending": ending(report, caller="page"),
        "notes": report.degraded,
        "may_go_on": report.ended != "complete",
        "is_empty": not report.obtained,
    }


def _line(url: str, what: str) -> str:
    return what if url in what else f"{url}: {what}"


def corpus_routes(site: Site) -> list[Route]:
    """Route where stored pages are looked after."""
    handlers = _CorpusHandlers(site)
    return [
        Route("/corpus", handlers.show, methods=["GET"]),
        Route("/corpus/add", handlers.add, methods=["POST"]),
        Route("/corpus/allow", handlers.allow, methods=["POST"]),
        Route("/corpus/forget", handlers.forget, methods=["POST"]),
        Route("/corpus/collection", handlers.switch, methods=["POST"]),
        Route("/corpus/export", handlers.export, methods=["GET"]),
    ]
