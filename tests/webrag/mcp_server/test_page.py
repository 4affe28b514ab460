"""The page as a part of the HTTP server: the same token, names and permissions as for tools."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from webrag.errors import ConfigurationError, InputError
from webrag.mcp_server.http_server import http_app
from webrag.mcp_server.server import assemble_server
from webrag.settings import load_settings

Load = Callable[[], Any]
HTML = {"accept": "text/html"}
WRITER, READER = "writer-" * 6, "reader-" * 6


@asynccontextmanager
async def page_of(
    load: Load, *, is_local: bool = False, **settings: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    chosen = load_settings(mcp_transport="streamable-http", **settings)
    app = http_app(assemble_server(chosen, load=load), chosen, is_local=is_local)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8765") as http:
        yield http
    await asyncio.sleep(0)


async def test_page_asks_for_the_token_and_tools_do_not_take_the_cookie(load: Load) -> None:
    async with page_of(load, mcp_auth_token="secret") as http:
        before = await http.get("/corpus", headers=HTML)
        style = await http.get("/static/style.css")
        signed = await http.post("/sign-in", data={"token": "secret"})
        after = await http.get("/runs/none", headers=HTML)
        tools = await http.post("/mcp", json={})

    assert (before.status_code, before.headers["location"]) == (303, "/sign-in")
    assert (style.status_code, signed.status_code) == (200, 303)
    assert (after.status_code, tools.status_code) == (404, 401)
    assert "This is not kept any more" in after.text


async def test_token_without_the_right_to_read_signs_nobody_in(load: Load, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"writer write {WRITER}\n")
    async with page_of(load, mcp_tokens_file=tokens) as http:
        answer = await http.post("/sign-in", data={"token": WRITER})

    assert answer.status_code == 403
    assert "lacks webrag:read" in answer.text
    assert "set-cookie" not in answer.headers


async def test_programs_without_a_token_are_told_so_by_status(load: Load) -> None:
    async with page_of(load, mcp_auth_token="secret") as http:
        answer = await http.get("/corpus/export")

    assert answer.status_code == 401


async def test_pages_cannot_be_forgotten_unless_the_server_lets_tools_do_it(load: Load) -> None:
    async with page_of(load) as http:
        answer = await http.post("/corpus/forget", data={"site": "a.test", "sure": "yes"})

    assert answer.status_code == 403
    assert "does not let anybody delete" in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403)],
)
async def test_page_answers_to_no_foreign_name(
    load: Load, headers: dict[str, str], status: int
) -> None:
    async with page_of(load) as http:
        answer = await http.get("/", headers=headers)

    assert answer.status_code == status


async def csrf_of(http: httpx2.AsyncClient) -> str:
    found = re.search('name="csrf" content="([^"]+)"', (await http.get("/runs/none")).text)
    assert found
    return found[1]


async def test_part_of_a_page_that_the_script_asks_for_counts_as_no_call(load: Load) -> None:
    async with page_of(load, mcp_calls_per_minute=1) as http:
        parts = [await http.get("/", headers={"x-webrag-fragment": "1"}) for _ in range(3)]
        whole = [await http.get("/") for _ in range(2)]

    assert [each.status_code for each in parts] == [200, 200, 200]
    assert whole[1].status_code == 403


async def test_crawl_read_as_an_answer_is_told_apart(load: Load) -> None:
    async with page_of(load) as http:
        added = {"csrf": await csrf_of(http), "url": "http://a.test/"}
        run = (await http.post("/corpus/add", data=added)).headers["location"]
        read = await http.get(f"{run}/pages/{uuid4()}?at=1")
        verified = await http.post(f"{run}/verify/1", data=added)

    assert (read.status_code, verified.status_code) == (404, 404)
    assert "this is no answer" in read.text


async def test_form_of_another_site_is_refused_although_it_has_the_token(load: Load) -> None:
    async with page_of(load) as http:
        form = {"csrf": await csrf_of(http), "url": "http://a.test/"}
        headers = {"sec-fetch-site": "cross-site"}
        answer = await http.post("/corpus/add", data=form, headers=headers)

    assert answer.status_code == 403
    assert "did not come from this page" in answer.text


async def test_other_collection_is_opened_by_who_sits_at_the_machine(load: Load) -> None:
    async with page_of(load, is_local=True) as http:
        form = {"csrf": await csrf_of(http), "collection": "manuals"}
        switched = await http.post("/corpus/collection", data=form)
        after = await http.get("/")
        stale = await http.post("/corpus/add", data={**form, "url": "http://a.test/"})

    assert (switched.status_code, after.status_code) == (303, 200)
    assert 'aria-label="Collection manuals"' in after.text
    assert stale.status_code == 403  # its tab still shows the collection that was open before


@pytest.mark.parametrize(
    ("is_local", "name", "said"),
    [(False, "manuals", "shows one collection"), (True, "unknown", "There is no collection")],
)
async def test_collection_that_is_not_ones_to_open_stays_closed(
    load: Load, is_local: bool, name: str, said: str
) -> None:
    async with page_of(load, is_local=is_local) as http:
        form = {"csrf": await csrf_of(http), "collection": name}
        answer = await http.post("/corpus/collection", data=form)

    assert said in answer.text
    assert "set-cookie" not in answer.headers


async def test_collection_named_by_a_cookie_of_another_server_is_not_opened(load: Load) -> None:
    async with page_of(load, is_local=True) as http:
        http.cookies.set("webrag-collection", f"manuals.{'0' * 64}")
        answer = await http.get("/")

    assert 'aria-label="Collection webrag"' in answer.text


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a user who has none yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "webrag/.env"


@pytest.mark.parametrize(
    "served",
    [
        {},
        {"is_local": True, "mcp_public_url": "http://localhost:8765"},
        {"is_local": True, "mcp_allowed_hosts": "rag.example.com"},
    ],
)
async def test_settings_are_only_read_where_the_page_is_served_to_others(
    load: Load, served: dict[str, Any]
) -> None:
    async with page_of(load, **served) as http:
        shown = await http.get("/settings")
        answer = await http.post(
            "/settings", data={"csrf": await csrf_of(http), "max_pages_per_run": "7"}
        )

    assert "Only to be read" in shown.text
    assert "allow_hosts" not in shown.text
    assert "<button class" not in shown.text.partition("<main")[2]
    assert (answer.status_code, "lets nobody change its settings" in answer.text) == (403, True)


async def test_setting_changed_in_the_page_is_used_and_written_down(
    load: Load, settings_file: Path
) -> None:
    async with page_of(load, is_local=True) as http:
        saved = await http.post(
            "/settings", data={"csrf": await csrf_of(http), "max_pages_per_run": "7"}
        )
        shown = await http.get(saved.headers["location"])

    assert settings_file.read_text() == "MAX_PAGES_PER_RUN='7'\n"
    assert 'name="max_pages_per_run" value="7"' in shown.text


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("/settings", {"max_pages_per_run": "many"}, "is &#39;many&#39; but must be"),
        ("/settings/model", {"server": "other", "address": ""}, "No server is chosen"),
        (
            "/settings/model",
            {"server": "http://127.0.0.1:9/v1", "model": "m", "key": "sk-secret-0123456789"},
            "The model does not answer",
        ),
    ],
)
async def test_setting_that_cannot_be_used_changes_nothing_and_shows_no_key(
    load: Load, settings_file: Path, path: str, form: dict[str, str], said: str
) -> None:
    async with page_of(load, is_local=True) as http:
        answer = await http.post(path, data={"csrf": await csrf_of(http), **form})

    assert said in answer.text
    assert "sk-secret" not in answer.text
    assert not settings_file.exists()


async def test_setting_of_the_environment_is_shown_and_cannot_be_changed(
    load: Load, settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "9")
    async with page_of(load, is_local=True) as http:
        await http.post("/settings", data={"csrf": await csrf_of(http), "max_pages_per_run": "7"})
        shown = await http.get("/settings")

    assert "Set by MAX_PAGES_PER_RUN in the environment" in shown.text
    assert not settings_file.exists()


async def test_host_of_ones_own_is_allowed_and_its_page_tried(
    load: Load, settings_file: Path
) -> None:
    async with page_of(load, is_local=True) as http:
        form = {"csrf": await csrf_of(http), "url": "http://wiki.corp:8080/"}
        begun = await http.post("/corpus/allow", data=form)
        shown = await http.get("/settings")

    assert (begun.status_code, begun.headers["location"][:6]) == (303, "/runs/")
    assert settings_file.read_text() == "WEBRAG_ALLOW_HOSTS='wiki.corp:8080'\n"
    assert 'name="allow_hosts" value="wiki.corp:8080"' in shown.text


@pytest.mark.parametrize("url", ["", " ", "http://a.test,169.254.169.254/", "/etc/hosts"])
async def test_host_of_no_page_is_not_allowed(load: Load, settings_file: Path, url: str) -> None:
    async with page_of(load, is_local=True) as http:
        form = {"csrf": await csrf_of(http), "host": "10.0.0.1", "url": url}
        answer = await http.post("/corpus/allow", data=form)

    assert (answer.status_code, settings_file.exists()) == (400, False)


async def test_page_that_the_site_has_no_more_is_not_offered_to_be_tried_again(load: Load) -> None:
    async with page_of(load, is_local=True) as http:
        form = {"csrf": await csrf_of(http), "url": "https://a.test/gone", "refresh": "1"}
        begun = await http.post("/corpus/add", data=form)
        async with asyncio.timeout(30):
            shown = await http.get(begun.headers["location"])
            while "Could not be fetched" not in shown.text:
                await asyncio.sleep(0.01)
                shown = await http.get(begun.headers["location"])

    assert "404: no such page" in shown.text
    assert "again</button>" not in shown.text


@pytest.mark.parametrize("allowed", [{"mcp_public_url": "http://localhost:8765"}, {}])
async def test_nobody_allows_hosts_of_a_server_for_others_or_started_with_some(
    load: Load, settings_file: Path, allowed: dict[str, Any]
) -> None:
    fixed = {} if allowed else {"allow_hosts": ("wiki.corp",)}
    async with page_of(load, is_local=True, **allowed, **fixed) as http:
        form = {"csrf": await csrf_of(http), "url": "http://10.0.0.1/"}
        answer = await http.post("/corpus/allow", data=form)

    assert (answer.status_code, settings_file.exists()) == (403, False)
    assert "lets nobody allow hosts" in answer.text


async def test_settings_wait_for_the_calls_under_way(load: Load) -> None:
    settings = load_settings(mcp_transport="streamable-http")
    assembled = assemble_server(settings, load=load)

    with assembled.calls.entered(), pytest.raises(InputError, match="is under way"):
        await assembled.renew(settings)


async def test_settings_that_no_memory_opens_with_are_taken_back(load: Load) -> None:
    settings = load_settings(mcp_transport="streamable-http")
    tries: list[str] = []

    def second_fails() -> Any:
        tries.append(assembled.settings.collection)
        if tries[-1] == "other":
            raise ConfigurationError("made with another model")
        return load()

    assembled = assemble_server(settings, load=second_fails)
    await assembled.runtime.memory()
    with pytest.raises(ConfigurationError):
        await assembled.renew(settings.model_copy(update={"collection": "other"}))

    assert (tries, assembled.runtime.is_ready) == (["webrag", "other", "webrag"], True)
    await assembled.runtime.close()


async def test_memory_that_is_asked_for_while_settings_change_is_the_new_one(load: Load) -> None:
    settings = load_settings(mcp_transport="streamable-http")
    opened: list[str] = []

    def remembered() -> Any:
        opened.append(assembled.settings.collection)
        return load()

    assembled = assemble_server(settings, load=remembered)
    await assembled.runtime.memory()
    renewing = asyncio.create_task(
        assembled.renew(settings.model_copy(update={"collection": "other"}))
    )
    await asyncio.sleep(0)
    asked_meanwhile = await assembled.runtime.memory()
    await renewing

    assert opened == ["webrag", "other"]
    assert asked_meanwhile is await assembled.runtime.memory()
    await assembled.runtime.close()


async def test_model_that_the_environment_names_is_not_replaced_by_a_form(
    load: Load, settings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATION_LLM_API_KEY", "sk-0123456789abcdef")
    async with page_of(load, is_local=True) as http:
        form = {"csrf": await csrf_of(http), "server": "none"}
        answer = await http.post("/settings/model", data=form)

    assert "ORCHESTRATION_LLM_API_KEY in the environment wins" in answer.text
    assert not settings_file.exists()


async def test_address_of_nothing_leads_people_back_and_tells_programs_by_status(
    load: Load,
) -> None:
    async with page_of(load) as http:
        person = await http.get("/nothing", headers=HTML)
        program = await http.get("/nothing")

    assert (person.status_code, program.status_code) == (404, 404)
    assert "There is no page at this address." in person.text
    assert program.text == "Not Found"
