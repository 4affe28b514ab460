"""Every door gives the same units of the same pages, in the same order, and nothing untrue."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio
from click.testing import CliRunner
from mcp import Client
from mcp.types import TextContent

from tests.webrag.brief_text import quotations, unmarked
from tests.webrag.stored_corpora import PAGES, SITE, KilnSite
from webrag import WebRAG
from webrag.cli.main import main
from webrag.concurrency import in_background
from webrag.mcp_server.http_server import http_app
from webrag.mcp_server.server import assemble_server
from webrag.presentation.brief.sections import GAP
from webrag.presentation.untrusted import DEFUSING_PREFIX
from webrag.retrieval.citation_checks import Citation
from webrag.settings import Settings
from webrag.tool_spec import WebRAGToolSpec

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTIONS = (
    "What happens after a power cut?",
    "How hot does the stoneware program get?",
    "Which wire of the thermocouple is negative?",
    "How do I write a program of my own?",
    "How many firings does the log keep?",
    "Who deletes old firings from the log?",
    "What limits how many pages a corpus can hold?",
    "How is the confidence computed?",
    "How do I use the retriever with LlamaIndex?",
    "Which thresholds decide whether an answer is shown?",
    "What does the fuse protect?",
    "Can two kilns share a controller?",
    "How do I read the log?",
    "What does a rate of 0 mean?",
    "Why does the controller refuse targets above 1300 degrees?",
    "What does R1 connect to?",
    "How long does the bisque program soak?",
    "What is meant for raw clay?",
    "Why must the lid stay closed above 200 degrees?",
    "What does an open lid switch do?",
    "How do I check the thermocouple?",
    "What temperature must boiling water show?",
    "What should I do before the first firing?",
    "How is the energy of a firing calculated?",
    "How often does the controller write to the log?",
    "When is a program file read?",
    "What happens when the relay is too small?",
    "Can I change a program while it runs?",
    "How many connections does a process keep?",
    "Which version of Postgres is needed?",
    "How do several machines share a corpus?",
    "Which feature of the reranker weighs most?",
    "What is the plateau signal?",
    "When does the loop stop as saturated?",
    "What does rag.query_engine do?",
    "How does an agent research with WebRAG?",
    "How much current may the coil of the relay take, and what does the red wire do?",
    "What is the top temperature of crystal and how long does it soak?",
    "Does the controller support Bluetooth?",
    "How much does the controller cost?",
)
Ask = Callable[[str], Awaitable[list[str]]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rag(postgres_dir: Path) -> AsyncIterator[WebRAG]:
    settings = Settings(data_dir=postgres_dir, collection=f"test_{uuid4().hex[:16]}")
    async with WebRAG(settings, page_source=KilnSite()) as opened:
        await opened.ingest([SITE + path for path in PAGES])
        yield opened
        await opened.drop_collection()


async def from_mcp(rag: WebRAG, question: str, **settings: Any) -> Any:
    """The reply of a fresh session of a real client."""
    server = assemble_server(
        rag.settings.model_copy(update=settings), load=lambda: nullcontext(rag)
    ).server
    async with Client(server) as client:
        return await client.call_tool("search", {"query": question})


async def from_page(rag: WebRAG, question: str) -> list[str]:
    """The quotations of a browser's page, in reading order."""
    settings = rag.settings.model_copy(update={"mcp_transport": "streamable-http"})
    app = http_app(assemble_server(settings, load=lambda: nullcontext(rag)), settings)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as browser:
        answer = await browser.get("/", params={"q": question}, headers={"accept": "text/html"})
    links = re.findall(r'class="chip" data-read data-stored="([^"]+)"', answer.text)
    return [parse_qs(urlsplit(unescape(each)).query)["quote"][0] for each in links]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_every_door_quotes_the_same_units_in_the_same_order(
    rag: WebRAG, question: str
) -> None:
    result = await rag.search(question)
    said = quotations(rag.brief(result))

    replied = await from_mcp(rag, question, mcp_structured_output=True)
    text = replied.content[0]
    told = replied.structured_content
    spec = await WebRAGToolSpec(rag).search(query=question)
    engine = await rag.query_engine(max_quotes=3).aquery(question)
    answer = await rag.ask(question)
    page = await from_page(rag, question)

    assert said
    assert isinstance(text, TextContent)
    assert quotations(text.text) == said
    assert quotations(spec) == said
    sent = {quote["text"] for passage in told["passages"] for quote in passage["quotations"]}
    assert set(said) <= sent
    cited = [each["verbatim_text"] for each in engine.metadata["citations"]]
    assert [each for each in cited if each in said] == [each for each in said if each in cited]
    assert engine.metadata["abstained"] or cited[0] == said[0]
    # Below the sentence or the header row that it stands under, and joined to what it goes on from.
    joined = "\n\n".join(each.verbatim_text for each in answer.citations)
    # An announcement says something, but no answer in sentences ends with one.
    is_answer = result.confidence_band != "none" and not said[0].endswith(":")
    assert not is_answer or said[0] in joined
    assert list(dict.fromkeys(page)) == [each.verbatim_text for each in answer.citations]


@pytest.mark.parametrize("question", QUESTIONS[:6])
async def test_the_terminal_gives_the_quotations_of_the_brief(rag: WebRAG, question: str) -> None:
    said = quotations(rag.brief(await rag.search(question)))

    command = ["--data-dir", str(rag.settings.data_dir), "--collection", rag.settings.collection]
    run = await in_background(
        CliRunner().invoke, main, ["search", question, "--json", *command], "webrag"
    )

    assert said
    passages = json.loads(run.stdout)["passages"]
    assert set(said) <= {quote["text"] for each in passages for quote in each["quotations"]}


@pytest.mark.parametrize("question", QUESTIONS[:12])
@pytest.mark.parametrize("detail", ["brief", "full"])
async def test_every_line_that_is_printed_as_evidence_stands_on_its_page(
    rag: WebRAG, question: str, detail: Any
) -> None:
    result = await rag.search(question)
    brief = rag.brief(result, nonce="5f3a9c01", detail=detail)
    sources = dict(re.findall(r"^\[(\d+)\] .+ \u2014 (\S+) \(", brief, re.M))
    framed = re.findall(
        r"Source \[(\d+)\][^\n]*\n(?:[^\n]*\n)??<page-5f3a9c01>\n(.+?)\n</page-5f3a9c01>",
        unmarked(brief),
        re.S,
    )
    lines = {
        (sources[number], line.strip())
        for number, text in framed
        for line in text.splitlines()
        if line != GAP.strip() and not line.startswith(DEFUSING_PREFIX)
    }
    given = [Citation(url=url, quote=line) for url, line in lines if re.search(r"\w", line)]

    checks = await rag.verify(given, live=False)

    assert checks
    refused = [each for each in checks if each.stored.state not in ("exact", "moved")]
    assert [(each.url, each.citation.quote, each.stored.state) for each in refused] == []


async def test_follow_up_names_what_the_session_has_had_and_prints_what_is_new(
    rag: WebRAG,
) -> None:
    server = assemble_server(rag.settings, load=lambda: nullcontext(rag)).server
    async with Client(server) as client:

        async def ask(query: str) -> str:
            content = (await client.call_tool("search", {"query": query})).content[0]
            assert isinstance(content, TextContent)
            return content.text

        first = await ask("What happens after a power cut?")
        second = await ask("What happens after a power cut")
        again = await ask("What happens after a power cut?")

    had = quotations(first)
    assert had
    assert not set(had) & set(quotations(second))
    assert re.search(r"^- You have chars \d+-\d+, passage \S+ of .+ \(https://kiln", second, re.M)
    assert quotations(again) == had


async def test_passages_that_a_caller_says_it_has_are_not_sent_again(rag: WebRAG) -> None:
    result = await rag.search("What happens after a power cut?")
    passage = rag.evidence(result)[0].chunk_id
    server = assemble_server(rag.settings, load=lambda: nullcontext(rag)).server
    async with Client(server) as client:
        asked = {"query": "What happens after a power cut?", "seen": [str(passage)]}
        content = (await client.call_tool("search", asked)).content[0]

    assert isinstance(content, TextContent)
    assert not set(quotations(rag.brief(result))[:1]) & set(quotations(content.text))
    assert f"passage {passage} of" in content.text


async def test_word_that_no_page_has_is_told_whatever_its_form(rag: WebRAG) -> None:
    result = await rag.search("Does Wireshark record GPU clocks of the kiln?")

    assert result.confidence_band != "high"
    assert set(result.absent_words) >= {"Wireshark", "GPU"}
    assert "Wireshark, " in rag.brief(result).partition("\n")[0]


async def test_word_of_general_use_is_not_told_as_missing(rag: WebRAG) -> None:
    result = await rag.search("In which several places does Wireshark decide otherwise?")

    assert result.absent_words == ("Wireshark",)
