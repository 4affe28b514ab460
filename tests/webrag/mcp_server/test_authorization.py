"""Teams on one server: a real memory in a real database, real requests."""

import asyncio
import re
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.types import ResourceTemplateReference

from webrag.corpus.schema import drop_collection, list_collections
from webrag.errors import AccessDeniedError, ConfigurationError
from webrag.mcp_server.authorization.callers import (
    CALLER,
    CallLimits,
    StaticTokens,
    parse_tokens,
)
from webrag.mcp_server.authorization.gate import Admission, CallerEntry, Memories
from webrag.mcp_server.runtime import Runtime
from webrag.mcp_server.server import assemble_server
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.settings import load_settings

RED, BLUE = "red-" * 8, "blue-" * 8
SECRET = "The red team keeps its falcon in the northern tower."
OTHER = "The blue team sails its sloop around the southern island."
# Follows each team's question, so that whoever searches finds a page if there is one.
QUESTION = {"query": "Where does the team keep its falcon, and where does it sail?"}


def page(text: str) -> str:
    return f"<main><h1>Team</h1><p>{text} It has done so for many years, as all know.</p></main>"


@pytest.fixture
async def settings(postgres_dir: Path, tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    base = f"t{uuid.uuid4().hex[:8]}"
    file = tmp_path / "tokens"
    file.write_text(f"red read,write,forget {RED}\nblue read,write,forget {BLUE}\n")
    yield {
        "data_dir": postgres_dir,
        "collection": base,
        "allow_hosts": ["127.0.0.1"],
        "mcp_tokens_file": file,
        "mcp_enable_forget": True,
        "mcp_structured_output": True,
        "collection_claim": "team",
    }
    database = Database(DatabaseConfig(data_dir=postgres_dir, collection=base))
    for name in await list_collections(database):
        if name.startswith(base):
            await drop_collection(database, name)
    await database.close()


@pytest.fixture
def site(static_site: Any) -> Any:
    pages = {f"/{number}": page(f"Chapter {number}. {OTHER}") for number in range(5)}
    return static_site({"/red": page(SECRET), "/blue": page(OTHER), **pages})


def text_of(result: Any) -> str:
    return "\n".join(getattr(each, "text", str(each)) for each in result.content)


async def passages(client: Any) -> list[str]:
    found = await client.call_tool("search", QUESTION)
    return [each["passage_id"] for each in found.structured_content["passages"]]


async def test_what_one_team_stored_reaches_no_other_by_any_tool(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], site: Any
) -> None:
    # Its own text comes back with a check, so it holds nothing that is looked for.
    citation = {"url": f"{site}/red", "quote": "The red team keeps its falcon in"}
    async with (
        serving_mcp(None, **settings) as base,
        connecting(base, RED) as red,
        connecting(base, BLUE) as blue,
    ):
        await red.call_tool("ingest", {"url": f"{site}/red"})
        (passage,) = await passages(red)
        citation["passage_id"] = passage
        answers = {
            "answer": await blue.call_tool("answer", {"url": f"{site}/blue"} | QUESTION),
            "search": await blue.call_tool("search", QUESTION),
            "search of a page": await blue.call_tool(
                "search", QUESTION | {"source_urls": [f"{site}/red"]}
            ),
            "status": await blue.call_tool("status", {}),
            "status of a page": await blue.call_tool("status", {"source_url": f"{site}/red"}),
            "verify": await blue.call_tool("verify", {"citations": [citation], "live": False}),
            "forget": await blue.call_tool("forget", {"url": f"{site}/red"}),
            "ingest": await blue.call_tool("ingest", {"url": f"{site}/1"}),
        }
        kept = text_of(await red.call_tool("search", QUESTION))

    texts = {tool: text_of(result) for tool, result in answers.items()}
    assert [tool for tool, text in texts.items() if "northern tower" in text] == []
    told = {tool: str(result) for tool, result in answers.items() if tool != "verify"}
    assert [tool for tool, text in told.items() if passage in text] == []
    assert f"{site}/red" not in texts["status"]
    assert "not stored" in texts["verify"]
    assert answers["forget"].is_error
    assert "northern tower" in kept
    assert "southern island" not in kept


async def test_what_one_team_stored_reaches_no_other_by_any_resource_or_prompt(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], site: Any
) -> None:
    async with (
        serving_mcp(None, **settings) as base,
        connecting(base, RED) as red,
        connecting(base, BLUE) as blue,
    ):
        await red.call_tool("ingest", {"url": f"{site}/red"})
        uris = [resource.uri for resource in (await red.list_resources()).resources]
        own = [str(await red.read_resource(uri)) for uri in uris]
        for uri in uris:
            with pytest.raises(MCPError, match="is not stored"):
                await blue.read_resource(uri)
        listed = [
            await blue.list_resources(),
            await blue.list_resource_templates(),
            await blue.list_prompts(),
            await blue.get_prompt("cited_answer", {"question": "Where is the falcon?"}),
            await blue.list_tools(),
        ]
        template = ResourceTemplateReference(type="ref/resource", uri="webrag://page/{id}")
        completed = [
            (await client.complete(template, {"name": "id", "value": ""})).completion.values
            for client in (red, blue)
        ]
        reds = (await red.list_resources()).resources

    assert len(uris) == 1
    assert [len(values) for values in completed] == [1, 0]
    assert [str(resource.uri) for resource in reds] == [f"webrag://page/{completed[0][0]}"]
    assert ["northern tower" in text for text in own] == [True]
    assert [each for each in listed if "northern" in str(each) or str(site) in str(each)] == []


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("stateless", [False, True])
async def test_calls_at_once_are_told_only_of_their_own_progress(
    serving_mcp: Any,
    connecting: Any,
    settings: dict[str, Any],
    site: Any,
    mode: str,
    stateless: bool,
) -> None:
    seen: dict[str, list[str]] = {"red": [], "blue": []}

    def noting(team: str) -> Callable[..., Any]:
        async def note(_value: float, _total: float | None, message: str | None) -> None:
            seen[team].append(message or "")

        return note

    async with (
        serving_mcp(None, **settings, mcp_stateless=stateless) as base,
        connecting(base, RED, mode=mode) as red,
        connecting(base, BLUE, mode=mode) as blue,
    ):
        results = await asyncio.gather(
            red.call_tool("ingest", {"url": f"{site}/red"}, progress_callback=noting("red")),
            blue.call_tool("ingest", {"url": f"{site}/blue"}, progress_callback=noting("blue")),
            red.call_tool("answer", {"url": f"{site}/red"} | QUESTION),
            blue.call_tool("answer", {"url": f"{site}/blue"} | QUESTION),
        )

    texts = list(map(text_of, results))
    assert [f"{site}/blue" in text for text in (texts[0], texts[2])] == [False, False]
    assert [f"{site}/red" in text for text in (texts[1], texts[3])] == [False, False]
    assert (f"{site}/red" in str(seen["red"]), f"{site}/blue" in str(seen["red"])) == (True, False)
    assert (f"{site}/blue" in str(seen["blue"]), f"{site}/red" in str(seen["blue"])) == (
        True,
        False,
    )


async def test_collection_that_was_closed_for_another_is_as_it_was(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], site: Any
) -> None:
    async with (
        serving_mcp(None, **settings, mcp_max_open_collections=1) as base,
        connecting(base, RED) as red,
        connecting(base, BLUE) as blue,
    ):
        await red.call_tool("ingest", {"url": f"{site}/red"})
        await blue.call_tool("ingest", {"url": f"{site}/blue"})
        texts = [text_of(await each.call_tool("search", QUESTION)) for each in (red, blue, red)]

    assert ["northern tower" in text for text in texts] == [True, False, True]


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"team": "red"}, 200),
        ({}, 403),
        ({"team": ""}, 403),
        ({"team": ["red"]}, 403),
        ({"team": {"name": "red"}}, 403),
        ({"team": 7}, 403),
        ({"team": "x" * 1001}, 403),
    ],
)
async def test_token_must_say_whose_collection_it_is_for(
    serving_mcp: Any,
    load: Any,
    issuer: Any,
    claims: dict[str, Any],
    status: int,
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    settings = {"mcp_oauth_issuer": issuer.issuer, "collection_claim": "team"}
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {issuer.token(**claims)}",
    }
    async with (
        serving_mcp(
            load, mcp_oauth_audience=[issuer.audience], mcp_stateless=True, **settings
        ) as base,
        httpx2.AsyncClient(base_url=base, headers=headers) as http,
    ):
        answer = await http.post("/mcp", json=message)

    assert answer.status_code == status


async def test_value_of_a_claim_and_a_name_in_the_table_lead_to_the_same_collection(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], site: Any, issuer: Any
) -> None:
    more = {"mcp_oauth_issuer": issuer.issuer, "mcp_oauth_audience": [issuer.audience]}
    async with serving_mcp(None, **settings, **more) as base:
        async with connecting(base, RED) as client:
            await client.call_tool("ingest", {"url": f"{site}/red"})
        texts = []
        for team in ("red", "Red", "blue"):
            async with connecting(base, issuer.token(team=team)) as client:
                texts.append(text_of(await client.call_tool("search", QUESTION)))

    assert ["northern tower" in text for text in texts] == [True, False, False]


async def test_pages_beyond_the_limit_are_not_requested_and_the_rest_is_kept(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], site: Any
) -> None:
    urls = [f"{site}/{number}" for number in range(5)]
    async with (
        serving_mcp(None, **settings, mcp_pages_per_day=3) as base,
        connecting(base, RED) as red,
        connecting(base, BLUE) as blue,
    ):
        ingested = text_of(await red.call_tool("ingest", {"url": urls}))
        requested = [each.path for each in site.requests if each.path != "/robots.txt"]
        answered = await red.call_tool("answer", {"url": f"{site}/red"} | QUESTION)
        searched = text_of(await red.call_tool("search", QUESTION))
        status = text_of(await red.call_tool("status", {}))
        other = await blue.call_tool("ingest", {"url": f"{site}/red"})

    assert len(requested) == 3
    assert ingested.count("The limit of 3 pages a day is reached; try again after 00:00 UTC") == 2
    assert answered.is_error
    assert "The limit of 3 pages a day is reached" in text_of(answered)
    assert "site may be down" not in text_of(answered)
    assert "southern island" in searched
    assert "limit" not in status
    assert not other.is_error


async def test_limit_of_one_caller_fails_no_page_that_another_asks_for_at_the_same_time(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], static_site: Any
) -> None:
    def slow(_request: Any) -> Any:
        time.sleep(0.5)
        return 200, {"Content-Type": "text/html"}, page(SECRET)

    site = static_site({"/0": page(OTHER), "/slow": slow})
    shared = settings | {"collection_claim": None, "mcp_pages_per_day": 1}
    async with (
        serving_mcp(None, **shared) as base,
        connecting(base, RED) as red,
        connecting(base, BLUE) as blue,
    ):
        await red.call_tool("ingest", {"url": f"{site}/0"})
        limited, allowed = await asyncio.gather(
            red.call_tool("ingest", {"url": f"{site}/slow"}),
            blue.call_tool("ingest", {"url": f"{site}/slow"}),
        )

    assert (limited.is_error, allowed.is_error) == (True, False)


async def test_bytes_are_counted_in_deep_answers_too(
    serving_mcp: Any, connecting: Any, settings: dict[str, Any], static_site: Any
) -> None:
    links = "".join(f'<li><a href="/{n}">The falcon in tower {n}</a></li>' for n in range(8))
    pages = {f"/{n}": page(f"Tower {n}. {SECRET} " + "Stone. " * 400) for n in range(8)}
    site = static_site({"/": f"<main><h1>Towers</h1><ul>{links}</ul></main>", **pages})
    async with (
        serving_mcp(None, **settings, mcp_bytes_per_day=4000) as base,
        connecting(base, RED) as red,
    ):
        question = {"url": [f"{site}/0", f"{site}/1"], "query": "Where is the falcon?"}
        await red.call_tool("answer", question | {"research_mode": "deep"})
        before = len(site.requests)
        refused = await red.call_tool("ingest", {"url": f"{site}/7"})

    assert "The limit of 4,000 bytes of pages a day is reached" in text_of(refused)
    assert len(site.requests) == before


def context_of(scope: dict[str, Any]) -> Any:
    """What a tool is called with; the request had this ASGI scope."""
    request = SimpleNamespace(scope=scope)
    return SimpleNamespace(request_context=SimpleNamespace(request=request))


def entry_for(load: Any) -> CallerEntry:
    memories = Memories(lambda _name: load, most_open=1)
    return CallerEntry(Runtime(load), memories, CallLimits(), Admission((), "", None, ()))


@pytest.mark.parametrize(
    ("scopes", "tool", "message"),
    [
        ("write", None, "lacks webrag:read"),
        ("read", "answer", "lacks webrag:write"),
        ("read", "ingest", "lacks webrag:write"),
        ("read,write", "forget", "lacks webrag:forget"),
        ("forget", "ingest", "lacks webrag:read and webrag:write"),
    ],
)
async def test_call_that_got_past_the_gate_is_still_checked(
    load: Any, scopes: str, tool: str | None, message: str
) -> None:
    caller = await StaticTokens(parse_tokens(f"red {scopes} {RED}")).caller(RED)

    with pytest.raises(AccessDeniedError, match=message):
        async with entry_for(load)(context_of({CALLER: caller}), tool):
            pass


async def test_call_without_a_caller_is_refused_where_tokens_are_needed(load: Any) -> None:
    with pytest.raises(AccessDeniedError, match="carries no token"):
        async with entry_for(load)(context_of({}), "search"):
            pass


A = "https://a.example"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mcp_oauth_jwks_url": A}, "MCP_OAUTH_JWKS_URL is set but MCP_OAUTH_ISSUER is not"),
        ({"mcp_oauth_audience": "x"}, "MCP_OAUTH_AUDIENCE is set but MCP_OAUTH_ISSUER is not"),
        ({"collection_claim": "team"}, "nobody has to show a token"),
        ({"mcp_tokens_file": "/nowhere/tokens"}, "cannot be read"),
    ],
)
async def test_settings_that_contradict_each_other_are_refused_before_anything_is_served(
    load: Any, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        assemble_server(load_settings(mcp_transport="streamable-http", **values), load=load)


async def test_settings_for_callers_do_not_concern_the_server_over_stdio(load: Any) -> None:
    settings = load_settings(collection_claim="team", mcp_tokens_file="/nowhere/tokens")

    assert assemble_server(settings, load=load).admission is None


def test_example_of_the_documentation_serves_with_an_authorization_server(
    load: Any, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[3] / "docs/clients.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```ini\n(.*?)```", page, re.S)
    (tmp_path / "env").write_text(example)

    admission = assemble_server(load_settings(tmp_path / "env"), load=load).admission

    assert admission is not None
    assert admission.issuer == "https://login.example.com/realms/team"
    assert admission.resource == "https://rag.example.com/mcp"
