from collections.abc import AsyncIterator

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from webrag.errors import AccessDeniedError, WebRAGError
from webrag.web.rendering import Templates
from webrag.web.sign_in import SignIn

HTML = {"accept": "text/html"}
REFUSALS = {
    "stranger": AccessDeniedError("The token says nothing about whose collection to use."),
    "unchecked": WebRAGError("The token could not be checked; try again in a moment."),
}


async def accepts(token: str) -> bool:
    if token in REFUSALS:
        raise REFUSALS[token]
    return token == "secret"


async def guarded(request: Request) -> Response:
    is_known = request.headers.get("authorization") == "Bearer secret"
    return PlainTextResponse("inside" if is_known else "no", status_code=200 if is_known else 401)


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(routes=[Route("/{path:path}", guarded, methods=["GET", "POST"])])
    templates = Templates(collection="webrag")
    around = SignIn(app, templates, accepts=accepts, api_path="/mcp")
    transport = httpx2.ASGITransport(app=around)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as opened:
        yield opened


async def test_person_without_a_token_is_led_to_the_form(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/corpus", headers=HTML)
    form = await client.get(answer.headers["location"], headers=HTML)

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert 'type="password"' in form.text


async def test_token_opens_the_page_and_never_reaches_the_browser(
    client: httpx2.AsyncClient,
) -> None:
    signed = await client.post("/sign-in", data={"token": "secret"})
    inside = await client.get("/", headers=HTML)

    cookie = signed.headers["set-cookie"]
    assert "secret" not in cookie
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert inside.text == "inside"


async def test_wrong_token_is_told_so(client: httpx2.AsyncClient) -> None:
    answer = await client.post("/sign-in", data={"token": "guess"})
    form = await client.get(answer.headers["location"], headers=HTML)

    assert "This token is not accepted" in form.text


@pytest.mark.parametrize(("token", "status"), [("stranger", 403), ("unchecked", 503)])
async def test_token_that_nobody_lets_in_signs_nobody_in_and_says_why(
    client: httpx2.AsyncClient, token: str, status: int
) -> None:
    answer = await client.post("/sign-in", data={"token": token})

    assert answer.status_code == status
    assert str(REFUSALS[token]) in answer.text
    assert "set-cookie" not in answer.headers


async def test_session_that_is_over_is_led_to_the_form_without_reproach(
    client: httpx2.AsyncClient,
) -> None:
    client.cookies.set("webrag-session", "of-the-server-before")
    answer = await client.get("/corpus", headers=HTML)
    form = await client.get(answer.headers["location"], headers=HTML)

    assert "not accepted" not in form.text


async def test_wrong_tokens_sign_nobody_out(client: httpx2.AsyncClient) -> None:
    await client.post("/sign-in", data={"token": "secret"})
    for guess in range(1_001):
        await client.post("/sign-in", data={"token": str(guess)})

    assert (await client.get("/", headers=HTML)).text == "inside"


async def test_programs_get_the_status_and_their_path_no_cookie_opens(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/sign-in", data={"token": "secret"})

    assert (await client.post("/mcp")).status_code == 401


async def test_other_site_cannot_sign_anybody_in(client: httpx2.AsyncClient) -> None:
    headers = {"sec-fetch-site": "cross-site"}
    answer = await client.post("/sign-in", data={"token": "secret"}, headers=headers)

    assert "set-cookie" not in answer.headers
