"""Two tenants of one server: whatever it offers, nothing that one has is told to the other.

What is offered is asked of the server itself, so that a new tool, resource, prompt or route is
walked as well, or named here as one that nobody knows how to call.
"""

import json
import logging
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from mcp.types import PromptReference, ResourceTemplateReference
from starlette.routing import Route

from webrag.corpus.schema import drop_collection, list_collections
from webrag.ingestion.logins.session import Cookie, Login
from webrag.ingestion.logins.store import LoginStore
from webrag.mcp_server.authorization.callers import collection_name
from webrag.mcp_server.http_server import HEALTH_PATH, PATH, http_app
from webrag.mcp_server.server import assemble_server
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database
from webrag.settings import load_settings
from webrag.wiring.page_sources import LOGINS_FOLDER

# In whatever the first tenant has: its name, and so its collection, pages, questions and jobs.
MARKER = "zanzibar"
OTHER = "tortuga"
QUESTION = "Where does the clock of the tower stand?"


def page(title: str, text: str) -> str:
    return (
        f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>"
        f"<p>{text} It has done so for many years, as all in the town know.</p></main></body>"
    )


@dataclass
class Tenant:
    """One caller in a collection; both have the same subject.

    Attributes:
        known: What it was told or says itself, and may therefore read again.
    """

    client: Any
    http: httpx2.AsyncClient
    known: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, said: object) -> None:
        """Keep what the server said."""
        self.seen[what] = str(said)

    def leaks(self) -> list[str]:
        """What was told of the other tenant, beyond what was said to the server."""
        return [what for what, said in self.seen.items() if MARKER in self.without_known(said)]

    def without_known(self, said: str) -> str:
        for each in sorted(self.known, key=len, reverse=True):
            said = said.replace(each, "")
        return said.lower()

    async def csrf(self) -> str:
        text = (await self.http.get("/runs/none")).text
        found = re.search('name="csrf" content="([^"]+)"', text)
        assert found, text
        return found[1]


@pytest.fixture
async def settings(postgres_dir: Path, issuer: Any) -> AsyncIterator[dict[str, Any]]:
    base = f"t{uuid.uuid4().hex[:8]}"
    logins = LoginStore(postgres_dir / LOGINS_FOLDER)
    logins.save(Login(f"{MARKER}.test", (Cookie("session", MARKER, f"{MARKER}.test"),)))
    yield {
        "data_dir": postgres_dir,
        "collection": base,
        "allow_hosts": ["127.0.0.1"],
        "mcp_enable_forget": True,
        "mcp_structured_output": True,
        "mcp_oauth_issuer": issuer.issuer,
        "mcp_oauth_audience": [issuer.audience],
        "collection_claim": "team",
        # The collection of one is closed for that of the other.
        "mcp_max_open_collections": 1,
    }
    logins.forget(f"{MARKER}.test")
    database = Database(DatabaseConfig(data_dir=postgres_dir, collection=base))
    for name in await list_collections(database):
        if name.startswith(base):
            await drop_collection(database, name)
    await database.close()


@pytest.fixture
def tenants(serving_mcp: Any, connecting: Any, settings: dict[str, Any], issuer: Any) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Tenant, Tenant]]:
        tokens = [issuer.token(sub="same", team=team) for team in (MARKER, OTHER)]
        headers = [{"authorization": f"Bearer {token}"} for token in tokens]
        async with (
            serving_mcp(None, **settings) as base,
            connecting(base, tokens[0]) as first,
            connecting(base, tokens[1]) as second,
            httpx2.AsyncClient(base_url=base, headers=headers[0], timeout=60) as first_http,
            httpx2.AsyncClient(base_url=base, headers=headers[1], timeout=60) as second_http,
        ):
            yield Tenant(first, first_http), Tenant(second, second_http)

    return opened


@dataclass
class Planted:
    """What the first tenant has, as far as another could name it."""

    site: str
    url: str
    page_id: str
    passage_id: str
    runs: list[str]
    collection: str

    @property
    def words(self) -> Iterator[str]:
        yield from (self.url, self.page_id, self.passage_id, self.collection, *self.runs)


async def planted(first: Tenant, site: Any, routes: dict[str, Any], base: str) -> Planted:
    """Fill the first tenant's collection; what it fetched is gone from the site afterwards."""
    url = f"{site}/tower"
    await first.client.call_tool("ingest", {"url": [url, f"{site}/{MARKER}-missing"]})
    found = await first.client.call_tool("search", {"query": QUESTION})
    passage = found.structured_content["passages"][0]["passage_id"]
    (page,) = (await first.client.list_resources()).resources
    page_id = str(page.uri).rpartition("/")[2]
    forms = {
        "/runs": {"q": f"{QUESTION} {MARKER}"},
        "/corpus/add": {"url": f"{site}/{MARKER}", "whole": "site"},
    }
    runs = []
    for path, form in forms.items():
        answer = await first.http.post(path, data=form | {"csrf": await first.csrf()})
        run = answer.json()["run"] if answer.status_code == 201 else answer.headers["location"]
        await first.http.get(f"{run}/events")
        runs.append(run.rpartition("/")[2])
    for what in ("/", "/corpus", f"/runs/{runs[0]}"):
        assert MARKER in (await first.http.get(what)).text
    for path in list(routes):
        if MARKER in str(routes[path]):
            del routes[path]
    return Planted(str(site), url, page_id, passage, runs, collection_name(base, "team", MARKER))


@pytest.fixture
def routes() -> dict[str, Any]:
    return {
        "/tower": page(f"The tower of {MARKER}", f"The clock of the tower stands in {MARKER}."),
        f"/{MARKER}": page(MARKER, f"The clock of the tower is kept by {MARKER}."),
        "/own": page("The mill", "The wheel of the mill turns in the brook behind the hill."),
    }


def arguments_for(schema: Mapping[str, Any], known: Planted) -> list[dict[str, Any]]:
    """Ways to ask a tool for what another has: with what must be given, and with each argument."""
    citation = {"url": known.url, "quote": "The clock of the tower", "passage_id": known.passage_id}
    values: dict[str, Any] = {
        "url": known.url,
        "query": QUESTION,
        "source_url": known.url,
        "source_urls": [known.url],
        "sites": [known.site.partition("://")[2]],
        "contains": known.collection,
        "heading": "The tower",
        "quote": "The clock of the tower",
        "passage_id": known.passage_id,
        "citations": [citation],
        "wordings": [known.collection],
        "known_context": known.collection,
        "constraints": [known.collection],
        "version": known.collection,
        "include": [f"{known.url}*"],
        "exclude": [f"{known.url}*"],
    }
    samples: dict[str, Any] = {"integer": 1, "boolean": True, "number": 0.5}
    asked = schema["properties"]
    for name, wanted in asked.items():
        kind = wanted.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        choice = wanted.get("enum")
        items = wanted.get("items", {}).get("enum")
        sample = (
            choice[0] if choice else [items[0]] if items else samples.get(kind, known.collection)
        )
        values.setdefault(name, sample)
    needed = {name: values[name] for name in schema.get("required", ())}
    return [needed, *({**needed, name: values[name]} for name in asked if name not in needed)]


async def walk_tools(second: Tenant, known: Planted) -> None:
    for tool in (await second.client.list_tools()).tools:
        for number, arguments in enumerate(arguments_for(tool.input_schema, known)):
            result = await second.client.call_tool(tool.name, arguments)
            second.note(f"tool {tool.name} {number}: {sorted(arguments)}", result)


async def walk_resources(second: Tenant, known: Planted) -> None:
    names = [known.page_id, known.passage_id, known.collection, known.url]
    second.note("resources", await second.client.list_resources())
    for template in (await second.client.list_resource_templates()).resource_templates:
        pattern = re.sub(r"\{\?[^}]*\}", "", template.uri_template)
        for name in names:
            uri = re.sub(r"\{[^}]*\}", name, pattern)
            with pytest.raises(MCPError) as error:
                await second.client.read_resource(uri)
            second.note(f"resource {uri}", error.value)
        for variable in re.findall(r"\{\??(\w+)\}", template.uri_template):
            await _complete(second, ResourceTemplateReference(uri=template.uri_template), variable)


async def walk_prompts(second: Tenant, known: Planted) -> None:
    for prompt in (await second.client.list_prompts()).prompts:
        given = {each.name: known.url for each in prompt.arguments or []}
        second.note(f"prompt {prompt.name}", await second.client.get_prompt(prompt.name, given))
        for each in prompt.arguments or []:
            await _complete(second, PromptReference(name=prompt.name), each.name)


async def _complete(second: Tenant, reference: Any, variable: str) -> None:
    for words in ("", MARKER[:4], "tower", "http"):
        argument = {"name": variable, "value": words}
        completion = await second.client.complete(reference, argument)
        second.note(f"completion {reference} {argument}", completion.completion.values)
        assert not any("/tower" in value for value in completion.completion.values)


def page_routes(settings: dict[str, Any]) -> list[Route]:
    """Every route of the server but that of the protocol, and its files, which are the same."""
    chosen = load_settings(
        mcp_transport="streamable-http", mcp_public_url="http://localhost:1", **settings
    )
    found = http_app(assemble_server(chosen), chosen).routes
    routes = [each for each in found if isinstance(each, Route)]
    assert [each.path for each in found if each not in routes] == ["/static"]  # type: ignore[attr-defined]
    return [each for each in routes if each.path not in (PATH, HEALTH_PATH)]


async def walk_routes(second: Tenant, known: Planted, routes: list[Route]) -> None:
    values = {"document_id": [known.page_id], "run_id": known.runs, "number": ["1"]}
    values["thread_id"] = known.runs  # kept in the browser alone, by the id of its run
    fields = {"q": QUESTION, "url": known.url, "site": known.site.partition("://")[2]}
    fields |= {"find": known.collection, "collection": known.collection, "wording": "a tower"}
    for route in routes:
        paths = [re.sub(r":\w+\}", "}", route.path)]
        for name in route.param_convertors:
            paths = [path.replace(f"{{{name}}}", each) for path in paths for each in values[name]]
        for path in paths:
            for method in sorted((route.methods or set()) - {"HEAD", "OPTIONS"}):
                await _ask(second, method, path, fields)


async def _ask(second: Tenant, method: str, path: str, fields: dict[str, str]) -> None:
    alone = [{name: value} for name, value in fields.items()]
    for number, given in enumerate([{}, fields, *alone]):
        if method == "GET":
            answer = await second.http.get(path, params=given)
        else:
            form = given | {"csrf": await second.csrf()}
            answer = await second.http.request(method, path, data=form)
        second.note(f"{method} {path} {number}", answer.text)
        run = answer.headers.get("location") or (
            answer.json().get("run", "") if answer.status_code == 201 else ""
        )
        if run.startswith("/runs/"):
            # Its own.
            await second.http.get(f"{run}/events")
            second.note(f"run of {method} {path} {number}", (await second.http.get(run)).text)


@pytest.mark.timeout(600)
async def test_nothing_of_one_tenant_is_told_to_another_by_anything_the_server_offers(
    tenants: Any,
    settings: dict[str, Any],
    static_site: Any,
    routes: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = static_site(routes)
    async with tenants() as (first, second):
        known = await planted(first, site, routes, settings["collection"])
        caplog.set_level(logging.DEBUG, logger="webrag")
        caplog.clear()
        second.known = list(known.words)
        await second.client.call_tool("ingest", {"url": f"{site}/own"})
        await walk_resources(second, known)
        await walk_prompts(second, known)
        await walk_routes(second, known, page_routes(settings))
        await walk_tools(second, known)
        second.note("log", caplog.text)
        status = await second.client.call_tool("status", {})
        kept = str(await first.client.call_tool("search", {"query": QUESTION}))

    assert second.leaks() == []
    assert json.loads(json.dumps(status.structured_content))["other_collections"] == []
    # What was asked for was there all the time.
    assert known.passage_id in kept
    assert len(second.seen) > 100


async def test_runs_of_one_subject_stay_in_the_collection_they_were_started_in(
    tenants: Any, static_site: Any, routes: dict[str, Any]
) -> None:
    async with tenants() as (first, second):
        form = {"q": f"Where is {MARKER}?", "csrf": await first.csrf()}
        run = (await first.http.post("/runs", data=form)).json()["run"]
        await first.http.get(f"{run}/events")
        own = await first.http.get(run)
        foreign = [await second.http.get(f"{run}{more}") for more in ("", "/events")]
        stolen = await second.http.post(f"{run}/stop", data={"csrf": await second.csrf()})
        stale = await second.http.post("/runs", data=form)
        recent = (await second.http.get("/")).text

    assert own.status_code == 200
    assert [each.status_code for each in (*foreign, stolen, stale)] == [404, 404, 404, 403]
    assert MARKER not in recent
