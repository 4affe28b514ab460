"""The page as a part of the HTTP server: the same token, names and permissions as for tools."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from webrag.mcp_server.assembly import assemble_server
from webrag.mcp_server.http_server import http_app
from webrag.settings import load_settings

Load = Callable[[], Any]
HTML = {"accept": "text/html"}
WRITER = "writer-" * 6


@asynccontextmanager
async def page_of(load: Load, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    chosen = load_settings(mcp_transport="streamable-http", **settings)
    app = http_app(assemble_server(chosen, load=load), chosen)
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
