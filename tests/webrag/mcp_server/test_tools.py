import asyncio
import json
import re
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent, Tool

from webrag.corpus.models import PageStatus
from webrag.crawling.report import CrawlOptions
from webrag.errors import InputError, PageGoneError
from webrag.mcp_server.server import assemble_server
from webrag.presentation.brief.models import EvidenceBlock
from webrag.presentation.reports import STATUS_PAGES
from webrag.question import Question
from webrag.settings import Settings

URL = "https://docs.example.org/"
Load = Callable[[], Any]
Call = Callable[..., Awaitable[CallToolResult]]
QUESTION = {"url": URL, "query": "What is it?"}


def text_of(result: CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture
def call(load: Load) -> Call:
    """Call one tool of a fresh server through a real client."""

    async def call(tool: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
        async with Client(assemble_server(Settings(), load=load).server) as client:
            return await client.call_tool(tool, arguments, **options)

    return call


@pytest.fixture
async def tools(load: Load) -> list[Tool]:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        return (await client.list_tools()).tools


async def test_tools_are_listed_with_their_annotations(tools: list[Tool]) -> None:
    by_name = {tool.name: tool for tool in tools}

    assert list(by_name) == ["answer", "search", "read", "status", "ingest", "verify"]
    hints = {name: tool.annotations for name, tool in by_name.items()}
    assert {n: h.read_only_hint for n, h in hints.items() if h} == {
        "answer": False,
        "search": True,
        "read": True,
        "status": True,
        "ingest": False,
        "verify": True,
    }
    assert {n: h.open_world_hint for n, h in hints.items() if h} == {
        "answer": True,
        "search": False,
        "read": False,
        "status": False,
        "ingest": True,
        "verify": True,
    }


async def test_tools_that_store_pages_destroy_nothing_and_can_be_repeated(
    tools: list[Tool],
) -> None:
    stores = [tool.annotations for tool in tools if tool.name in ("answer", "ingest")]

    assert [(h.destructive_hint, h.idempotent_hint) for h in stores if h] == [(False, True)] * 2


@pytest.mark.parametrize(
    "said",
    ["terms", "names of options or functions", "sentence you expect to read", "may be wrong",
     "unless the question uses the page's words"],
)  # fmt: skip
async def test_wordings_are_described_so_that_a_model_can_write_them(
    tools: list[Tool], said: str
) -> None:
    assert said in tools[0].input_schema["properties"]["wordings"]["description"]


async def test_tools_offer_no_structured_output(tools: list[Tool]) -> None:
    assert [tool.output_schema for tool in tools] == [None] * 6


async def test_tools_are_listed_in_5500_characters(tools: list[Tool]) -> None:
    listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]

    assert len(json.dumps(listed, separators=(",", ":"))) <= 5_500
    assert max(len(tool.description or "") for tool in tools) < 1024


def schemas_in(schema: Any) -> list[dict[str, Any]]:
    """A schema and all that stand in it."""
    below = [*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])]
    return [schema, *(each for part in below for each in schemas_in(part))]


# What their pages on schemas of tools say that one may hold; each refuses something else.
EVERY_PROVIDER = frozenset({"type", "description", "properties", "required", "items", "enum"})
PROVIDERS = {
    # docs.anthropic.com/en/docs/agents-and-tools/tool-use/overview
    "Anthropic": EVERY_PROVIDER | {"maxItems", "minItems", "default", "anyOf", "$ref", "format"},
    # platform.openai.com/docs/guides/structured-outputs, "Supported schemas"
    "OpenAI": EVERY_PROVIDER | {"maxItems", "minItems", "anyOf", "$ref", "pattern", "minimum"},
    # ai.google.dev/api/caching#Schema
    "Gemini": EVERY_PROVIDER | {"maxItems", "minItems", "format", "nullable", "minimum"},
    # docs.mistral.ai/capabilities/function_calling
    "Mistral": EVERY_PROVIDER | {"maxItems", "minItems", "default", "format"},
    # docs.cohere.com/v2/docs/structured-outputs: no limits of arrays
    "Cohere": EVERY_PROVIDER | {"default", "$ref"},
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_schemas_keep_to_what_a_provider_takes(tools: list[Tool], provider: str) -> None:
    found = [each for tool in tools for each in schemas_in(tool.input_schema)]

    assert {key for each in found for key in each} <= PROVIDERS[provider]
    assert all(isinstance(each["type"], str) for each in found)
    assert all("items" in each for each in found if each["type"] == "array")
    assert all(each.get("properties") for each in found if each["type"] == "object")
    assert all(set(each.get("required", ())) <= set(each.get("properties", ())) for each in found)
    assert all(re.fullmatch(r"[a-z][a-z_]{0,63}", tool.name) for tool in tools)


async def test_every_argument_is_described(tools: list[Tool]) -> None:
    described = {
        f"{tool.name}.{name}": field.get("description", "")
        for tool in tools
        for name, field in tool.input_schema["properties"].items()
    }

    assert described
    assert [name for name, text in described.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("named", [URL, [URL], json.dumps([URL])])
async def test_one_address_is_taken_for_a_list_of_one(call: Call, memory: Any, named: Any) -> None:
    await call("ingest", {"url": named})

    assert memory.calls[0][1]["urls"] == [URL]


async def test_answer_passes_every_parameter_on(call: Call, memory: Any) -> None:
    arguments = {
        "url": [URL, "https://other.example.org/"],
        "query": "What is it?",
        "wordings": ["the name of the option", "the page says so"],
        "parts": ["what is it called", "what does it do"],
        "intent": "how_to",
        "known_context": "Nothing.",
        "constraints": ["code"],
        "expansion_budget": 2,
        "research_mode": "deep",
        "retrieval_mode": "auto",
    }

    await call("answer", arguments)

    expected = Question.of(arguments.pop("query"), urls=arguments.pop("url"), **arguments)
    assert memory.calls == [("answer", {"question": expected})]


async def test_answer_defaults_to_a_fast_chunked_pass(call: Call, memory: Any) -> None:
    await call("answer", QUESTION)

    question = memory.calls[0][1]["question"]
    assert (question.research_mode, question.retrieval_mode) == ("fast", "chunk")
    assert question.expansion_budget is None


async def test_answer_is_text_with_guide_and_a_nonce_of_its_own(call: Call) -> None:
    first = await call("answer", QUESTION)
    second = await call("answer", QUESTION)

    assert re.fullmatch(r"brief of 0 guide=True nonce=[0-9a-f]{8}", text_of(first))
    assert text_of(first) != text_of(second)
    assert first.structured_content is None


async def test_read_passes_its_place_on(call: Call, memory: Any) -> None:
    await call("read", {"url": URL, "heading": "Title", "max_tokens": 300})

    place = {"offset": None, "heading": "Title", "quote": None, "passage_id": None}
    assert memory.calls == [("read", {"url": URL, **place, "max_tokens": 300})]


@pytest.mark.parametrize(
    ("place", "tokens"), [({}, 4_000), ({"offset": 9}, 4_000), ({"heading": "Title"}, 1_000)]
)
async def test_read_gives_less_where_a_place_is_named(
    call: Call, memory: Any, place: dict[str, Any], tokens: int
) -> None:
    await call("read", {"url": URL, **place})

    assert memory.calls[0][1]["max_tokens"] == tokens


async def test_read_gives_the_text_framed_by_a_nonce_of_its_own(call: Call) -> None:
    first, second = [text_of(await call("read", {"url": URL})) for _ in range(2)]

    assert re.search(r"<page-([0-9a-f]{8})>\n# Title\n\nText\.\n</page-\1>\Z", first)
    assert first != second


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": URL, "offset": -1}, "offset is -1"),
        ({"url": URL, "max_tokens": 10}, "max_tokens is 10"),
        ({"url": URL, "passage_id": "7"}, "passage_id is '7'"),
        ({"url": URL, "section": "x"}, "read has no argument"),
        ({"url": URL, "heading": "Nowhere"}, "no heading 'Nowhere'"),
    ],
)
async def test_read_refuses_what_names_no_place(
    call: Call, arguments: dict[str, Any], said: str
) -> None:
    result = await call("read", arguments)

    assert result.is_error
    assert said in text_of(result)


async def test_ingest_of_a_site_passes_its_limits_on(call: Call, memory: Any) -> None:
    limits = {"max_pages": "30", "include": ["/guide/**"], "exclude": "*.pdf", "refresh": True}

    result = await call("ingest", {"url": URL, **limits})

    options = CrawlOptions(max_pages=30, include=("/guide/**",), exclude=("*.pdf",), refresh=True)
    assert memory.calls == [("ingest_site", {"url": URL, "options": options})]
    assert "9 pages that were found have not been visited" in text_of(result)


async def test_ingest_of_a_site_that_takes_too_long_says_how_to_go_on(
    load: Load, memory: Any
) -> None:
    memory.delay_s = 30
    server = assemble_server(Settings(mcp_soft_deadline=0.5), load=load).server
    async with Client(server) as client:
        result = await client.call_tool("ingest", {"url": URL, "max_pages": 30})

    assert not result.is_error
    assert "3 pages visited, 9 wait." in text_of(result)
    assert "Repeat the call to go on" in text_of(result)
    assert memory.cancelled.is_set()


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_pages": 0}, "max_pages is 0"),
        ({"max_pages": 10**7}, "it must be a whole number from 1 to 1,000,000."),
        ({"max_pages": 5, "url": ["ftp://x"]}, "ftp"),
        ({"max_pages": 5, "url": [URL, "https://b.org/"]}, "from one page: call once for each"),
    ],
)
async def test_ingest_refuses_a_crawl_that_cannot_be(
    call: Call, memory: Any, limits: dict[str, Any], said: str
) -> None:
    result = await call("ingest", {"url": URL} | limits)

    assert result.is_error
    assert said in text_of(result)
    assert memory.calls == []


async def test_search_passes_every_parameter_on(call: Call, memory: Any) -> None:
    arguments = {
        "query": "q",
        "wordings": ["q, as the page puts it"],
        "source_urls": [URL],
        "sites": ["docs.example.org"],
        "years": [2024, 2025],
        "has": ["table"],
        "as_of": "2026-05-31",
        "intent": "factual",
        "top_k": 5,
    }

    await call("search", arguments)

    moment = datetime(2026, 5, 31, tzinfo=UTC)
    expected = Question.of(arguments.pop("query"), **{**arguments, "as_of": moment})
    assert memory.calls == [("search", {"question": expected})]


async def test_what_is_no_date_is_not_searched_as_of(call: Call, memory: Any) -> None:
    result = await call("search", {"query": "q", "as_of": "last spring"})

    assert (result.is_error, memory.calls) == (True, [])
    assert "as_of is 'last spring'; it must be a date such as 2026-05-31" in text_of(result)


async def test_search_without_filters_covers_all_that_is_stored(call: Call, memory: Any) -> None:
    await call("search", {"query": "q", "sites": [], "years": None, "has": ""})

    assert memory.calls[0][1]["question"] == Question.of("q")


async def test_status_reports_the_corpus(call: Call) -> None:
    assert text_of(await call("status", {})).startswith("[CORPUS STATUS]")


@pytest.mark.parametrize(
    ("tool", "arguments", "asked"),
    [
        ("answer", {"url": "a.example/b", "query": "q"}, {"urls": "https://a.example/b"}),
        ("search", {"query": "q", "source_urls": "localhost:80/x"}, {"source_urls": "http://localhost/x"}),
        ("search", {"query": "q", "source_urls": ["a.example"]}, {"sites": "a.example"}),
    ],
)  # fmt: skip
async def test_hosts_without_a_scheme_are_taken_in_questions(
    call: Call, memory: Any, tool: str, arguments: dict[str, Any], asked: dict[str, Any]
) -> None:
    await call(tool, arguments)

    assert memory.calls[0][1]["question"] == Question.of("q", **asked)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"url": "docs.example.org/a"}),
        ("ingest", {"url": "docs.example.org/a"}),
        ("verify", {"citations": [{"url": "docs.example.org/a", "quote": "q"}]}),
        ("status", {"source_url": "docs.example.org/a"}),
    ],
)
async def test_hosts_without_a_scheme_are_taken_wherever_a_page_is_named(
    call: Call, memory: Any, tool: str, arguments: dict[str, Any]
) -> None:
    await call(tool, arguments)

    assert "https://docs.example.org/a" in str(memory.calls)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search", {"query": "q", "source_urls": ["a.example/x", "b.example"]}, "'b.example'"),
        ("search", {"query": "q", "source_urls": ["a.example"], "sites": ["b.example"]}, "`sites`"),
        ("status", {"source_url": "example.org:99999"}, "'example.org:99999' is not a host."),
    ],
)
async def test_hosts_that_cannot_be_meant_are_refused_in_a_sentence(
    call: Call, memory: Any, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = await call(tool, arguments)

    assert result.is_error
    assert said in text_of(result)


async def test_status_of_a_host_lists_its_pages_alone(load: Load, memory: Any) -> None:
    other = stored(1).model_copy(update={"url": "https://other.example.org/"})
    memory.stored = (stored(0), other)

    async with Client(assemble_server(Settings(), load=load).server) as client:
        text = text_of(await client.call_tool("status", {"source_url": "docs.example.org"}))

    assert text.startswith("[CORPUS STATUS]\nDocuments indexed: 1\n")
    assert (f"{URL}000" in text, "other.example.org" in text) == (True, False)


async def test_ingest_passes_the_version_on(call: Call, memory: Any) -> None:
    await call("ingest", {"url": URL, "version": "v3.2"})
    await call("ingest", {"url": URL, "version": "3.2", "max_pages": 5})

    options = CrawlOptions(max_pages=5, version="3.2")
    assert memory.calls == [
        ("ingest", {"urls": [URL], "refresh": False, "version": "3.2"}),
        ("ingest_site", {"url": URL, "options": options}),
    ]


async def test_what_is_no_version_is_not_ingested(call: Call, memory: Any) -> None:
    result = await call("ingest", {"url": URL, "version": "newest"})

    assert result.is_error
    assert "The version 'newest' cannot be used" in text_of(result)
    assert memory.calls == []


async def test_ingest_reports_pages_and_failures(call: Call) -> None:
    result = await call("ingest", {"url": [URL, "https://gone.example.org/"]})

    assert not result.is_error
    assert "1 of 2 pages are stored." in text_of(result)


async def test_ingest_that_stored_nothing_is_an_error(call: Call) -> None:
    result = await call("ingest", {"url": "https://gone.example.org/"})

    assert result.is_error
    assert "(failed: 404: no such page)" in text_of(result)


async def test_ingest_reports_an_address_that_is_none_beside_the_others(
    call: Call, memory: Any
) -> None:
    result = await call("ingest", {"url": [URL, "nonsense"]})

    assert not result.is_error
    assert "1 of 2 pages are stored." in text_of(result)
    assert "- nonsense\n  (failed: " in text_of(result)
    assert memory.calls == [("ingest", {"urls": [URL], "refresh": False})]


async def test_verify_checks_the_citations_beside_one_that_names_no_page(
    call: Call, memory: Any
) -> None:
    good = {"quote": "It is bright.", "url": URL}
    result = await call("verify", {"citations": [{"quote": "It is dark."}, good]})

    assert not result.is_error
    assert "[1] Not checked: A citation names no page: give its url" in text_of(result)
    assert "[2] NOT there" in text_of(result)
    assert len(memory.calls[0][1]["citations"]) == 1


async def test_ingest_says_that_another_source_was_used(call: Call, memory: Any) -> None:
    memory.degraded = ("Firecrawl refused the key, so pages were fetched directly.",)

    report = await call("ingest", {"url": URL})

    assert "\nNote: Firecrawl refused the key" in text_of(report)


async def test_ingest_tells_each_page_as_soon_as_it_is_done(call: Call) -> None:
    seen: list[str | None] = []

    async def note(_value: float, _total: float | None, message: str | None) -> None:
        seen.append(message)

    urls = [URL, "https://gone.example.org/"]
    await call("ingest", {"url": urls}, progress_callback=note)

    assert seen[-2:] == [f"Stored: {URL} (1/2)", "Failed: https://gone.example.org/ (2/2)"]


@pytest.fixture
def interrupted(load: Load, memory: Any) -> Callable[[float], Awaitable[CallToolResult]]:
    """Ingest three pages with time for `pages` of them."""

    async def interrupted(pages: float) -> CallToolResult:
        memory.page_delay_s = 0.4
        settings = Settings(mcp_soft_deadline=0.4 * pages, mcp_tool_timeout=30)
        urls = ["https://gone.example.org/", URL, f"{URL}slow"]
        async with Client(assemble_server(settings, load=load).server) as client:
            return await client.call_tool("ingest", {"url": urls})

    return interrupted


async def test_ingest_reports_what_is_done_at_the_soft_deadline(
    interrupted: Callable[[float], Awaitable[CallToolResult]],
) -> None:
    result = await interrupted(2.5)

    assert not result.is_error
    assert text_of(result) == (
        "[INGEST REPORT]\n"
        "1 of 3 pages are stored.\n\n"
        f"- Page — {URL}\n  (stored)\n"
        "- https://gone.example.org/\n  (failed: 404: no such page)\n"
        f"- {URL}slow\n  (not finished)\n\n"
        "Time ran out before 1 of 3 pages were finished. Repeat the call to continue: what is "
        "stored is kept."
    )


async def test_ingest_that_had_no_time_for_any_page_is_no_error(
    interrupted: Callable[[float], Awaitable[CallToolResult]],
) -> None:
    result = await interrupted(0.5)

    assert not result.is_error
    assert "Time ran out before 3 of 3 pages were finished." in text_of(result)


async def test_ingest_refuses_more_urls_than_one_call_takes(call: Call, memory: Any) -> None:
    result = await call("ingest", {"url": [f"{URL}{number}" for number in range(51)]})

    assert text_of(result) == (
        "[ERROR]\nurl names 51 pages; one call takes at most 50: name the others in further calls."
    )
    assert memory.calls == []


async def test_log_holds_no_secret_of_the_arguments(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="webrag"):
        await call(
            "answer",
            {"url": "https://user:hunter2@docs.example.org/a?token=t0k3n", "query": "my secret"},
        )

    assert "url=https://docs.example.org/a?..., query (9 characters)" in caplog.text
    assert not [word for word in ("hunter2", "t0k3n", "my secret") if word in caplog.text]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("answer", {"query": "q"}, "url is missing: Pages to start from."),
        ("answer", {"url": URL}, "query is missing: The question in full words."),
        (
            "answer",
            QUESTION | {"url": 7},
            "url takes a list, whose entry 1 is 7; it must be text.",
        ),
        (
            "answer",
            QUESTION | {"intent": "poetry"},
            "intent is 'poetry'; it must be one of factual, comparison, how_to, exploratory.",
        ),
        (
            "answer",
            QUESTION | {"expansion_budget": -1},
            "expansion_budget is -1; it must be a whole number from 0.",
        ),
        (
            "answer",
            QUESTION | {"research_mode": "slow"},
            "research_mode is 'slow'; it must be one of fast, deep.",
        ),
        (
            "search",
            {"query": ["q"]},
            "query is ['q']; it must be text.",
        ),
        (
            "search",
            {"query": "q", "years": ["2024", "last"]},
            "years takes a list, whose entry 2 is 'last'; it must be a whole number from 1.",
        ),
        (
            "search",
            {"query": "q", "has": ["poem"]},
            "has takes a list, whose entry 1 is 'poem'; it must be one of table, code, math, "
            "definition_list, admonition, steps.",
        ),
        (
            "status",
            {"source_url": "ftp://x"},
            "The URL scheme is ftp; only http and https can be read.",
        ),
    ],
)
async def test_bad_input_is_one_sentence(
    call: Call, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    result = await call(tool, arguments)

    assert (text_of(result), result.is_error) == (f"[ERROR]\n{sentence}", True)


async def test_failure_is_an_error_result_with_advice(call: Call, memory: Any) -> None:
    memory.error = PageGoneError("The site answered 404.", url=URL, status=404)

    result = await call("answer", QUESTION)

    assert result.is_error
    assert "Details: The site answered 404." in text_of(result)
    assert "Do not attempt to answer from memory" in text_of(result)


async def test_input_error_of_the_application_is_one_sentence(call: Call, memory: Any) -> None:
    memory.error = InputError("The question is empty: ask something.")

    result = await call("answer", QUESTION)

    assert text_of(result) == "[ERROR]\nThe question is empty: ask something."
    assert result.is_error


async def test_unexpected_failure_keeps_its_message_to_the_log(
    call: Call, memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory.error = KeyError("secret-token")

    result = await call("answer", QUESTION)

    assert result.is_error
    assert "secret-token" not in text_of(result)
    assert "secret-token" in caplog.text


async def test_call_that_takes_too_long_is_ended_and_explained(load: Load, memory: Any) -> None:
    memory.delay_s = 30
    async with Client(assemble_server(Settings(mcp_tool_timeout=0.2), load=load).server) as client:
        result = await client.call_tool("answer", QUESTION)

    assert result.is_error
    assert "WebRAG timed out after 0.2s." in text_of(result)
    assert memory.cancelled.is_set()


async def test_progress_rises_from_start_through_each_phase(call: Call) -> None:
    seen: list[tuple[float, str | None]] = []

    async def note(value: float, _total: float | None, message: str | None) -> None:
        seen.append((value, message))

    await call("answer", QUESTION, progress_callback=note)

    assert [message for _, message in seen][-2:] == [
        "Searching 3 documents...",
        "Expanding to linked pages... (1/5)",
    ]
    assert [value for value, _ in seen] == sorted({value for value, _ in seen})


async def test_silence_is_broken_within_three_seconds(call: Call, memory: Any) -> None:
    memory.delay_s = 3.0
    seen: list[str | None] = []

    async def note(_value: float, _total: float | None, message: str | None) -> None:
        seen.append(message)

    await call("answer", QUESTION, progress_callback=note)

    assert seen[-1] == "Expanding to linked pages... (1/5) (3s so far)"


async def test_cancelled_call_cancels_the_work(call: Call, memory: Any) -> None:
    memory.delay_s = 30
    running = asyncio.ensure_future(call("answer", QUESTION))
    async with asyncio.timeout(5):
        while not memory.calls:
            await asyncio.sleep(0.01)

    running.cancel()

    async with asyncio.timeout(5):
        await memory.cancelled.wait()


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        (
            "search",
            {"query": "q", "recency": "month"},
            "search has no argument 'recency'; it takes query, wordings, parts, intent, "
            "max_tokens, detail, seen, source_urls, sites, years, has, as_of, top_k.",
        ),
        (
            "answer",
            QUESTION | {"question": "q"},
            "answer has no argument 'question'; it takes query, wordings, parts, intent, "
            "max_tokens, detail, seen, url, known_context, constraints, expansion_budget, "
            "research_mode, retrieval_mode.",
        ),
        (
            "ingest",
            {"url": URL, "pages": 20},
            "ingest has no argument 'pages'; it takes url, refresh, max_pages, include, exclude, "
            "version. Did you mean max_pages?",
        ),
        (
            "verify",
            {"citations": []},
            "citations is missing: Quotations to check. For example "
            '{"citations": [{"url": "https://...", "quote": "..."}]}.',
        ),
        (
            "verify",
            {"citations": [{"quote": "q", "url": URL}] * 21},
            "citations has 21 entries; one call takes at most 20: check the others with further "
            "calls.",
        ),
        (
            "verify",
            {"citations": [{"quote": "q", "passage_id": "x"}]},
            "passage_id is 'x'; it must be a whole id (a UUID).",
        ),
    ],
)
async def test_what_would_be_ignored_is_refused_and_what_is_known_is_named(
    call: Call, memory: Any, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    result = await call(tool, arguments)

    assert (text_of(result), result.is_error, memory.calls) == (f"[ERROR]\n{sentence}", True, [])


@pytest.mark.parametrize("as_text", [False, True])
async def test_verify_passes_every_citation_on(call: Call, memory: Any, as_text: bool) -> None:
    given: Any = [{"quote": "q", "url": URL, "char_start": "3", "char_end": 4}]

    result = await call("verify", {"citations": json.dumps(given) if as_text else given})

    passed = memory.calls[0][1]
    assert [(c.quote, c.url, c.char_start, c.char_end) for c in passed["citations"]] == [
        ("q", URL, 3, 4)
    ]
    assert passed["live"] is True
    assert text_of(result).startswith("[VERIFICATION]\n0 of 1 are verbatim")


async def test_deleting_is_offered_only_when_it_is_enabled(load: Load, tools: list[Tool]) -> None:
    async with Client(
        assemble_server(Settings(mcp_enable_forget=True), load=load).server
    ) as client:
        offered = (await client.list_tools()).tools
        result = await client.call_tool("forget", {"url": URL})

    forget = offered[-1]
    assert "forget" not in {tool.name for tool in tools}
    assert forget.annotations is not None
    assert forget.annotations.destructive_hint
    assert text_of(result) == f"[FORGET REPORT]\n1 page deleted.\n- {URL}"


async def test_deleting_that_is_not_enabled_cannot_be_called(call: Call, memory: Any) -> None:
    result = await call("forget", {"url": URL})

    assert result.is_error
    assert memory.calls == []


async def test_structured_content_is_sent_when_asked_for_beside_the_whole_text(load: Load) -> None:
    async with Client(
        assemble_server(Settings(mcp_structured_output=True), load=load).server
    ) as client:
        result = await client.call_tool("answer", QUESTION)

    assert text_of(result).startswith("brief of 0")
    assert result.structured_content is not None
    assert result.structured_content["confidence_band"] == "medium"


STRUCTURED: dict[str, tuple[str, dict[str, Any]]] = {
    "answer": ("answer", QUESTION),
    "search": ("search", {"query": "What is it?"}),
    "read": ("read", {"url": URL}),
    "status": ("status", {}),
    "pages": ("ingest", {"url": [URL, "https://example.org/gone", "ftp://x"]}),
    "a site": ("ingest", {"url": URL, "max_pages": 9}),
    "verify": ("verify", {"citations": [{"quote": "x", "url": URL}, {"quote": "y", "url": ""}]}),
    "forget": ("forget", {"url": URL}),
}


@pytest.mark.parametrize(("name", "given"), STRUCTURED.values(), ids=STRUCTURED)
async def test_structured_results_keep_to_the_schemas_that_are_listed(
    load: Load, name: str, given: dict[str, Any]
) -> None:
    settings = Settings(mcp_structured_output=True, mcp_enable_forget=True)
    async with Client(assemble_server(settings, load=load).server) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        result = await client.call_tool(name, given)

    schema = schemas[name]
    assert schema is not None
    jsonschema.validate(result.structured_content, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"made": "up"}, schema)


async def test_a_crawl_that_time_ended_keeps_to_its_schema(load: Load, memory: Any) -> None:
    memory.delay_s = 5
    settings = Settings(mcp_structured_output=True, mcp_soft_deadline=0.2)
    async with Client(assemble_server(settings, load=load).server) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        result = await client.call_tool("ingest", {"url": URL, "max_pages": 9})

    assert result.structured_content == {
        "start_url": URL,
        "ended": "time",
        "visited": 3,
        "queued": 9,
    }
    jsonschema.validate(result.structured_content, schemas["ingest"] or {})


async def test_pages_that_a_call_stored_are_announced(load: Load, memory: Any) -> None:
    server = assemble_server(Settings(), load=load).server
    async with Client(server) as client, client.listen(resources_list_changed=True) as changes:
        await client.call_tool("search", {"query": "q"})
        memory.urls_fetched = (URL,)
        await client.call_tool("answer", QUESTION)
        async with asyncio.timeout(10):
            event = await anext(aiter(changes))

    assert "resources" in type(event).__name__.lower()


async def test_call_that_took_most_of_its_time_is_a_warning_in_the_log(
    load: Load, memory: Any, caplog: pytest.LogCaptureFixture
) -> None:
    memory.delay_s = 4.1
    async with Client(assemble_server(Settings(mcp_tool_timeout=5), load=load).server) as client:
        await client.call_tool("status", {})

    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert [each.startswith("Tool status took 4.") for each in warned] == [True]


async def test_debug_log_tells_parameters_sizes_and_the_beginning_of_the_answer(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", "webrag.mcp_server"):
        await call("search", {"query": "What is it?"})

    told = [each.getMessage() for each in caplog.records if each.levelname == "DEBUG"]
    assert told[0] == "Tool search parameters: {'query': 'What is it?'}"
    assert told[1].startswith("Tool search answered: brief of 0")


async def test_search_without_results_is_a_warning_in_the_log(
    call: Call, caplog: pytest.LogCaptureFixture
) -> None:
    await call("search", {"query": "What is it?"})

    assert "Nothing was found for a question of 11 characters" in caplog.messages


async def test_crawl_that_ended_at_its_limit_is_told_in_the_words_of_a_call(call: Call) -> None:
    text = text_of(await call("ingest", {"url": URL, "max_pages": 3}))

    assert "Repeat the call with a higher max_pages to go on." in text


async def test_status_without_a_page_that_fits_says_so(call: Call) -> None:
    text = text_of(await call("status", {"contains": "credential"}))

    assert text.endswith("No page has 'credential' in its URL or title.")


def stored(number: int) -> PageStatus:
    return PageStatus(
        url=f"{URL}{number:03}",
        title=f"Page {number:03}",
        chunk_count=1,
        token_count=10,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        depth=0,
        gone_at=None,
    )


async def test_status_lists_pages_in_portions_and_names_the_next(load: Load, memory: Any) -> None:
    memory.stored = tuple(map(stored, range(STATUS_PAGES + 1)))

    async with Client(assemble_server(Settings(), load=load).server) as client:
        first = text_of(await client.call_tool("status", {}))
        last = text_of(await client.call_tool("status", {"page": 2}))

    assert (f"{URL}000" in first, f"{URL}050" in first) == (True, False)
    assert first.endswith("\nNext: page=2")
    assert (f"{URL}000" in last, f"{URL}050" in last, "Next:" in last) == (False, True, False)


async def test_status_lists_only_pages_with_the_words_that_are_wanted(
    load: Load, memory: Any
) -> None:
    memory.stored = tuple(map(stored, range(3)))

    async with Client(assemble_server(Settings(), load=load).server) as client:
        text = text_of(await client.call_tool("status", {"contains": "page 001"}))

    assert [f"{URL}{number:03}" in text for number in range(3)] == [False, True, False]


async def test_status_skips_no_page_however_small_the_response_budget_is(
    load: Load, memory: Any
) -> None:
    pages = map(stored, range(STATUS_PAGES))
    memory.stored = tuple(
        each.model_copy(update={"title": "Page " * (n % 40)}) for n, each in enumerate(pages)
    )
    settings = Settings(mcp_response_token_budget=1_000)
    texts = [""]

    async with Client(assemble_server(settings, load=load).server) as client:
        while "Next: " in texts[-1] or not texts[-1]:
            texts.append(text_of(await client.call_tool("status", {"page": len(texts)})))

    listed = re.findall(rf"{URL}\d{{3}}", "\n".join(texts))
    assert listed == [each.url for each in memory.stored]
    assert all(memory.count_tokens(text) <= 1_000 for text in texts)


async def test_status_skips_no_page_when_titles_cost_more_tokens_than_letters(
    load: Load, memory: Any
) -> None:
    from llama_index.core.utils import get_tokenizer

    memory.count_tokens = lambda text: len(get_tokenizer()(text))
    named = [("設定を変更する方法と管理者の案内" * 4, ""), ("Guide", "guide-to-it-" * 10)]
    memory.stored = tuple(
        stored(n).model_copy(update={"title": title, "url": f"{URL}{path}{n:03}"})
        for n, (title, path) in enumerate(named * 30)
    )
    texts = [""]
    settings = Settings(mcp_response_token_budget=1_000)

    async with Client(assemble_server(settings, load=load).server) as client:
        while "Next: " in texts[-1] or not texts[-1]:
            texts.append(text_of(await client.call_tool("status", {"page": len(texts)})))

    assert all(each.url in "\n".join(texts) for each in memory.stored)
    assert all(memory.count_tokens(text) <= 1_000 for text in texts)


async def test_schemas_and_instructions_together_stay_below_1500_tokens(load: Load) -> None:
    from llama_index.core.utils import get_tokenizer

    async with Client(
        assemble_server(Settings(mcp_enable_forget=True), load=load).server
    ) as client:
        tools = (await client.list_tools()).tools
        instructions = client.instructions or ""

    listed = "".join(tool.model_dump_json(by_alias=True, exclude_none=True) for tool in tools)
    assert len(get_tokenizer()(listed + instructions)) < 1500


async def test_clients_are_told_how_long_a_brief_may_be(load: Load) -> None:
    settings = Settings(mcp_response_token_budget=10_000)
    async with Client(assemble_server(settings, load=load).server) as client:
        tools = (await client.list_tools()).tools

    sizes = {tool.name: (tool.meta or {}).get("anthropic/maxResultSizeChars") for tool in tools}
    assert (sizes["answer"], sizes["search"], sizes["status"]) == (60_000, 60_000, None)


async def test_tool_list_is_the_same_after_every_call(load: Load) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        before = await client.list_tools()
        await client.call_tool("answer", QUESTION)
        after = await client.list_tools()

    assert before == after


@pytest.mark.parametrize("tool", ["answer", "search"])
@pytest.mark.parametrize(("given", "expected"), [({}, None), ({"max_tokens": "900"}, 900)])
async def test_length_of_a_brief_is_passed_on(
    tool: str, given: dict[str, Any], expected: int | None, memory: Any, load: Load
) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        arguments = QUESTION if tool == "answer" else {"query": QUESTION["query"]}
        await client.call_tool(tool, {**arguments, **given})

    assert memory.briefs == [(expected, "brief")]


async def test_length_that_holds_no_brief_is_refused_in_one_sentence(load: Load) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        result = await client.call_tool("answer", {**QUESTION, "max_tokens": 20})

    assert result.is_error
    assert (
        result.content[0].text == "[ERROR]\nmax_tokens is 20; it must be a whole number from 300."
    )


def printed(number: int) -> EvidenceBlock:
    return EvidenceBlock(
        source_number=1,
        url=URL,
        title=None,
        heading=None,
        text="Kilns fire.",
        char_start=3,
        char_end=14,
        relevance=0.5,
        chunk_id=uuid.UUID(int=number),
    )


async def test_session_is_not_sent_again_what_other_questions_brought(
    memory: Any, load: Load, serving_mcp: Any, connecting: Any
) -> None:
    memory.blocks = [printed(7)]
    async with serving_mcp(load) as base:
        async with connecting(base, mode="legacy") as client:
            for query in ("first", "second", "first"):
                await client.call_tool("search", {"query": query})
        async with connecting(base, mode="legacy") as other:
            await other.call_tool("search", {"query": "third"})

    had = (uuid.UUID(int=7), 3, 14)
    assert memory.seen == [[], [had], [had], []]


async def test_passages_that_a_caller_names_count_as_seen(memory: Any, call: Call) -> None:
    named = uuid.UUID(int=9)

    await call("search", {"query": "q", "seen": str(named)})

    ((seen,),) = memory.seen
    assert (seen[0], seen[1]) == (named, 0)
