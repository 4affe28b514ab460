"""Stored pages with an answer's citations marked in them, and compared with the live page."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from webrag.concurrency import in_background
from webrag.presentation.reports import LIVE
from webrag.presentation.stored_page import Mark, page_html
from webrag.retrieval.citation_checks import WordChange, word_changes
from webrag.web.site import NotKeptError, Site

if TYPE_CHECKING:
    from uuid import UUID

    from webrag.answering.models import AnswerCitation
    from webrag.corpus.models import PageText
    from webrag.web.runs import WatchedRun

_VERIFY_S = 30.0
_ENDINGS = ".,;:!?\u3002"


def changed_words(before: str, after: str) -> tuple[WordChange, ...]:
    """Tell what became of a quotation, word by word; blanks do not count."""
    old, new = before.split(), after.split()
    # What is found on the live page may end before the mark that ends its sentence.
    if old and new and old[-1].rstrip(_ENDINGS) == new[-1]:
        new[-1] = old[-1]
    return word_changes(" ".join(old), " ".join(new))


def marks_of(
    citations: Sequence["AnswerCitation"], page: "PageText"
) -> tuple[list[Mark], list[int]]:
    """Give marks of the citations of a page, in page order, and numbers of those that moved since.

    A citation is marked only where the stored text still holds its very words at its offsets.
    """
    own = [each for each in citations if each.document_id == page.document_id]
    held = [e for e in own if page.markdown[e.char_start : e.char_end] == e.verbatim_text]
    marks = [Mark(each.number, each.char_start, each.char_end) for each in held]
    lost = sorted({each.number for each in own} - {each.number for each in held})
    return sorted(marks, key=lambda mark: (mark.start, mark.number)), lost


def named_mark(values: Mapping[str, str], page: "PageText") -> tuple[list[Mark], list[int]]:
    """The mark of the fields `n`, `start` and `quote` of an address, or the number that moved."""
    quote, number, start = values.get("quote", ""), values.get("n", ""), values.get("start", "")
    if not quote or not all(each.isascii() and each.isdigit() for each in (number, start)):
        return [], []
    begin = int(start[:9])
    if page.markdown[begin : begin + len(quote)] != quote:
        return [], [int(number[:4])]
    return [Mark(int(number[:4]), begin, begin + len(quote))], []


class _ReadHandlers:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def page(self, request: Request) -> Response:
        return await self._read(request, lambda page: named_mark(request.query_params, page))

    async def cited(self, request: Request) -> Response:
        run, citations = self._cited_by(request)
        return await self._read(request, lambda page: marks_of(citations, page), run, citations)

    async def _read(
        self,
        request: Request,
        marked: "Callable[[PageText], tuple[list[Mark], list[int]]]",
        run: "WatchedRun | None" = None,
        citations: "Sequence[AnswerCitation]" = (),
    ) -> Response:
        document_id: UUID = request.path_params["document_id"]
        async with self._site.enter(request, "read") as rag:
            page = await rag.page_text(document_id)
            images = await rag.page_images(document_id)
        if page is None:
            raise NotKeptError("This page is not stored: it was forgotten, or never fetched.")
        marks, lost = marked(page)
        cited = [each for each in citations if each.document_id == document_id]
        asked = request.query_params.get("at", "")
        return self._site.page(
            request,
            "read.html",
            page=page,
            shown=await in_background(page_html, page.markdown, marks, images),
            run=run,
            marks=marks,
            lost=lost,
            cited=cited,
            at=next((each for each in cited if str(each.number) == asked), None),
        )

    async def verify(self, request: Request) -> Response:
        """Compare a citation with the page as it is now; nothing is stored."""
        from webrag.retrieval.citation_checks import Citation

        await self._site.checked_form(request)
        run, cited = self._cited_by(request)
        number = request.path_params["number"]
        citation = next((each for each in cited if each.number == number), None)
        if citation is None:
            raise NotKeptError(f"The answer has no citation {number}.")
        asked = Citation(
            quote=citation.verbatim_text,
            url=citation.source_url,
            char_start=citation.char_start,
            char_end=citation.char_end,
        )
        async with self._site.enter(request, "verify") as rag:
            check = (await rag.verify(asked, deadline_s=_VERIFY_S))[0]
        live = check.live
        is_changed = live.state == "changed" and live.text is not None
        return self._site.page(
            request,
            "verify.html",
            run=run,
            citation=citation,
            live=live,
            found=LIVE[live.state],
            words=changed_words(citation.verbatim_text, live.text or "") if is_changed else (),
        )

    def _cited_by(self, request: Request) -> "tuple[WatchedRun, Sequence[AnswerCitation]]":
        """An answer that may still be in the making, and what it cites."""
        run = self._site.run_of(request)
        if run.kind != "answer":
            raise NotKeptError("Nothing is cited here: this is no answer, pages are being added.")
        return run, () if run.result is None else run.result.citations


def read_routes(site: Site) -> list[Route]:
    """Route where stored pages are read."""
    handlers = _ReadHandlers(site)
    return [
        Route("/pages/{document_id:uuid}", handlers.page, methods=["GET"]),
        Route("/runs/{run_id}/pages/{document_id:uuid}", handlers.cited, methods=["GET"]),
        Route("/runs/{run_id}/verify/{number:int}", handlers.verify, methods=["POST"]),
    ]
