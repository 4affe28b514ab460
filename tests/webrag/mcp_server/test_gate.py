"""Tokens of a real authorization server, shown to a real server by real requests."""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl
from starlette.responses import JSONResponse, RedirectResponse, Response

ACCEPT = {"Accept": "application/json, text/event-stream"}
AUDIENCE = "http://127.0.0.1/mcp"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
QUESTION = {"query": "What is it?"}
PAGE = {"url": "https://docs.example.org/"}

Serving = Callable[..., Any]


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def bearer(token: str | None) -> dict[str, str]:
    return ACCEPT | ({} if token is None else {"Authorization": f"Bearer {token}"})


async def answered(base: str, token: str | None, message: Any = INITIALIZE) -> httpx2.Response:
    async with httpx2.AsyncClient(base_url=base, timeout=30) as http:
        return await http.post("/mcp", json=message, headers=bearer(token))


def oauth(issuer: Any, **more: Any) -> dict[str, Any]:
    return {
        "mcp_oauth_issuer": issuer.issuer,
        "mcp_oauth_audience": [AUDIENCE],
        "mcp_stateless": True,
    } | more


def segment(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def none_algorithm(issuer: Any, spelling: str = "none") -> str:
    _, payload, _ = issuer.token().split(".")
    return f"{segment({'alg': spelling, 'kid': 'first'})}.{payload}."


def signed_with_public_key(issuer: Any) -> str:
    """The public key as the secret of HS256, which a server that goes by the header would take."""
    public = (
        issuer.keys[0]
        .private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _, payload, _ = issuer.token().split(".")
    signed = f"{segment({'alg': 'HS256', 'kid': 'first'})}.{payload}"
    return f"{signed}.{segment(hmac.new(public, signed.encode(), hashlib.sha256).digest())}"


def unsigned(issuer: Any) -> str:
    return str(issuer.token()).rpartition(".")[0] + "."


def altered(issuer: Any) -> str:
    header, _, signature = issuer.token(scope="webrag:read").split(".")
    return f"{header}.{issuer.token().split('.')[1]}.{signature}"


def embedded_key(issuer: Any, signing_key: Any) -> str:
    own = signing_key("own")
    header = {"kid": None, "jwk": own.public(), "jku": "http://127.0.0.1:1/keys"}
    return str(issuer.token(own, header))


NOW = int(time.time())
REFUSED: dict[str, Callable[[Any, Any], str]] = {
    "expired": lambda a, _: a.token(exp=NOW - 60),
    "without expiry": lambda a, _: a.token(exp=None),
    "expiry is no number": lambda a, _: a.token(exp="later"),
    "not yet valid": lambda a, _: a.token(nbf=NOW + 86_400),
    "issued in the future": lambda a, _: a.token(iat=NOW + 86_400),
    "another audience": lambda a, _: a.token(aud="https://other.example/mcp"),
    "several other audiences": lambda a, _: a.token(aud=["https://other.example/mcp", "x"]),
    "audience of the same beginning": lambda a, _: a.token(aud=f"{AUDIENCE}/x"),
    "without audience": lambda a, _: a.token(aud=None),
    "audience is an object": lambda a, _: jwt_with(a, aud={"a": AUDIENCE}),
    "another issuer": lambda a, _: a.token(iss="https://evil.example"),
    "issuer with a slash more": lambda a, _: a.token(iss=f"{a.issuer}/"),
    "without issuer": lambda a, _: a.token(iss=None),
    "nobody": lambda a, _: a.token(sub=None, client_id=None),
    "bound to a key": lambda a, _: a.token(cnf={"jkt": "x"}),
    "logout token": lambda a, _: a.token(header={"typ": "logout+jwt"}),
    "header parameters that are critical": lambda a, _: a.token(header={"crit": ["x"], "x": 1}),
    "unsigned": lambda a, _: unsigned(a),
    "none": lambda a, _: none_algorithm(a),
    "None": lambda a, _: none_algorithm(a, "None"),
    "no algorithm": lambda a, _: none_algorithm(a, ""),
    "HS256 with the public key": lambda a, _: signed_with_public_key(a),
    "other claims under a signature": lambda a, _: altered(a),
    "unknown key": lambda a, key: a.token(key("unknown")),
    "another key under a known name": lambda a, key: a.token(key("x"), header={"kid": "first"}),
    "another kind of key": lambda a, key: a.token(key("x", "ES256"), header={"kid": "first"}),
    "key in the header": embedded_key,
    "key too short": lambda a, key: (
        a.keys.insert(0, key("short")),
        a.token(key("short")),
    )[1],
    "garbled": lambda *_: "garbled",
    "three garbled parts": lambda *_: "a.b.c",
    "empty parts": lambda *_: "..",
    "nested": lambda *_: f"{segment(b'[' * 9000)}.e30.x",
    "header is no object": lambda *_: f"{segment([1])}.e30.x",
    "algorithm is a list": lambda *_: f"{segment({'alg': ['RS256']})}.e30.x",
    "too long": lambda a, _: a.token(more="x" * 20_000),
}


def jwt_with(issuer: Any, **claims: Any) -> str:
    """Claims that the library would not encode."""
    key = issuer.keys[0]
    payload = json.loads(base64.urlsafe_b64decode(issuer.token().split(".")[1] + "=="))
    return jwt.api_jws.encode(
        json.dumps(payload | claims).encode(), key.private, "RS256", {"kid": key.kid}
    )


@pytest.mark.parametrize("kind", REFUSED)
async def test_token_that_is_not_right_is_refused(
    serving_mcp: Serving, load: Any, issuer: Any, make_key: Any, kind: str
) -> None:
    token = REFUSED[kind](issuer, make_key)

    async with serving_mcp(load, **oauth(issuer)) as base:
        refused = await answered(base, token)
        right = await answered(base, issuer.token())

    assert (refused.status_code, right.status_code) == (401, 200)
    assert 'error="invalid_token"' in refused.headers["WWW-Authenticate"]


ACCEPTED: dict[str, Callable[[Any, Any], str]] = {
    "one of several audiences": lambda a, _: a.token(aud=["x", AUDIENCE]),
    "expired within the leeway": lambda a, _: a.token(exp=int(time.time()) - 5),
    "valid within the leeway": lambda a, _: a.token(nbf=int(time.time()) + 5),
    "type JWT": lambda a, _: a.token(header={"typ": "JWT"}),
    "without a type": lambda a, _: a.token(header={"typ": None}),
    "without a key id": lambda a, _: a.token(header={"kid": None}),
    "client without a subject": lambda a, _: a.token(sub=None),
    "scopes in scp": lambda a, _: a.token(scope=None, scp=["webrag:read"]),
    "PS256": lambda a, key: a.token(key("first")._replace(algorithm="PS256")),
    "ES256": lambda a, key: (a.keys.append(key("ec", "ES256")), a.token())[1],
    "EdDSA": lambda a, key: (a.keys.append(key("ed", "EdDSA")), a.token())[1],
}


@pytest.mark.parametrize("kind", ACCEPTED)
async def test_token_that_is_right_is_accepted(
    serving_mcp: Serving, load: Any, issuer: Any, make_key: Any, kind: str
) -> None:
    token = ACCEPTED[kind](issuer, make_key)

    async with serving_mcp(load, **oauth(issuer)) as base:
        assert (await answered(base, token)).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": "Basic c2VjcmV0"},
        {"Authorization": "Bearer"},
        {"Cookie": "access_token=x"},
    ],
)
async def test_request_without_a_token_is_told_where_to_get_one(
    serving_mcp: Serving, load: Any, issuer: Any, header: dict[str, str]
) -> None:
    async with (
        serving_mcp(load, **oauth(issuer)) as base,
        httpx2.AsyncClient(base_url=base) as http,
    ):
        answer = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT | header)

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == (
        'Bearer scope="webrag:read", '
        f'resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
    )


async def test_two_authorization_headers_are_refused(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    pair = [("Authorization", f"Bearer {issuer.token()}"), ("Authorization", "Bearer x")]
    async with (
        serving_mcp(load, **oauth(issuer)) as base,
        httpx2.AsyncClient(base_url=base) as http,
    ):
        answer = await http.post("/mcp", json=INITIALIZE, headers=[*ACCEPT.items(), *pair])

    assert answer.status_code == 401


async def test_token_in_the_query_is_not_looked_at(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    async with (
        serving_mcp(load, **oauth(issuer)) as base,
        httpx2.AsyncClient(base_url=base) as http,
    ):
        query = {"access_token": issuer.token()}
        answer = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT, params=query)

    assert answer.status_code == 401


async def test_nothing_but_health_and_metadata_is_open(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    paths = ("/mcp", "/mcp/", "/MCP", "//mcp", "/", "/docs", "/healthz/x")
    asked = list(product(("GET", "POST", "DELETE", "OPTIONS", "HEAD"), paths))
    async with serving_mcp(load, **oauth(issuer)) as base, httpx2.AsyncClient() as http:
        answers = [await http.request(m, base + path, headers=ACCEPT) for m, path in asked]

    statuses = zip(asked, (each.status_code for each in answers), strict=True)
    assert [(each, status) for each, status in statuses if status != 401] == []


async def test_metadata_names_the_server_its_issuer_and_its_scopes(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    async with serving_mcp(load, **oauth(issuer)) as base, httpx2.AsyncClient() as http:
        answer = await http.get(f"{base}/.well-known/oauth-protected-resource/mcp")

    assert answer.json() == {
        "resource": f"{base}/mcp",
        "authorization_servers": [issuer.issuer],
        "scopes_supported": ["webrag:read", "webrag:write"],
        "bearer_methods_supported": ["header"],
        "resource_name": "WebRAG",
    }


async def test_without_an_issuer_there_is_no_metadata(serving_mcp: Serving, load: Any) -> None:
    async with serving_mcp(load, mcp_auth_token="secret") as base, httpx2.AsyncClient() as http:
        answer = await http.get(f"{base}/.well-known/oauth-protected-resource/mcp")
        refused = await http.post(f"{base}/mcp", json=INITIALIZE, headers=ACCEPT)

    assert answer.status_code == 401
    assert "resource_metadata" not in refused.headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("scopes", "message", "needed"),
    [
        ("", INITIALIZE, "webrag:read"),
        ("openid profile", INITIALIZE, "webrag:read"),
        ("webrag:reader", INITIALIZE, "webrag:read"),
        ("webrag:write", INITIALIZE, "webrag:read"),
        ("webrag:read", call("answer", **PAGE, **QUESTION), "webrag:read webrag:write"),
        ("webrag:read", call("ingest", **PAGE), "webrag:read webrag:write"),
        ("webrag:read", [call("status"), call("ingest", **PAGE)], "webrag:read webrag:write"),
        ("webrag:read webrag:write", call("forget", **PAGE), "webrag:forget webrag:read"),
        ("webrag:write webrag:forget", call("search", **QUESTION), "webrag:read"),
        ("webrag:write", {"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, "webrag:read"),
        ("webrag:write", {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}, "webrag:read"),
        ("webrag:write", "no message", "webrag:read"),
    ],
)
async def test_call_beyond_the_scopes_is_told_which_it_needs(
    serving_mcp: Serving,
    load: Any,
    memory: Any,
    issuer: Any,
    scopes: str,
    message: Any,
    needed: str,
) -> None:
    async with serving_mcp(load, **oauth(issuer, mcp_enable_forget=True)) as base:
        answer = await answered(base, issuer.token(scope=scopes), message)

    challenge = answer.headers["WWW-Authenticate"]
    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in challenge
    assert re.search(r'scope="([^"]*)"', challenge.replace("insufficient_scope", ""))[1] == needed  # type: ignore[index]
    assert "/.well-known/oauth-protected-resource/mcp" in challenge
    assert memory.calls == []


@pytest.mark.parametrize(
    ("scopes", "tool", "arguments"),
    [
        ("webrag:read", "search", QUESTION),
        ("webrag:read", "status", {}),
        ("webrag:read", "verify", {"citations": [{"url": PAGE["url"], "quote": "a b c"}]}),
        ("webrag:read webrag:write", "answer", PAGE | QUESTION),
        ("webrag:read webrag:write", "ingest", PAGE),
        ("webrag:read webrag:forget", "forget", PAGE),
    ],
)
async def test_each_tool_is_open_with_its_scopes(
    serving_mcp: Serving,
    connecting: Any,
    load: Any,
    issuer: Any,
    scopes: str,
    tool: str,
    arguments: dict[str, Any],
) -> None:
    settings = oauth(issuer, mcp_enable_forget=True)
    token = issuer.token(scope=scopes)
    async with (
        serving_mcp(load, **settings) as base,
        connecting(base, token) as client,
    ):
        assert not (await client.call_tool(tool, arguments)).is_error


async def test_session_gives_each_request_the_scopes_of_its_own_token(
    serving_mcp: Serving, load: Any, memory: Any, issuer: Any
) -> None:
    """A session is opened with all scopes; a later token of the same user has fewer."""
    settings = oauth(issuer, mcp_stateless=False)
    async with serving_mcp(load, **settings) as base, httpx2.AsyncClient(base_url=base) as http:
        opened = await http.post("/mcp", json=INITIALIZE, headers=bearer(issuer.token()))
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
        fewer = bearer(issuer.token(scope="webrag:read")) | session
        refused = await http.post("/mcp", json=call("ingest", **PAGE), headers=fewer)
        other = bearer(issuer.token(sub="user-2")) | session
        stolen = await http.post("/mcp", json=call("status"), headers=other)

    assert (opened.status_code, refused.status_code, stolen.status_code) == (200, 403, 404)
    assert memory.calls == []


async def test_long_message_passes_the_gate_whole(
    serving_mcp: Serving, connecting: Any, load: Any, memory: Any, issuer: Any
) -> None:
    question = "What? " * 15_000
    async with (
        serving_mcp(load, **oauth(issuer)) as base,
        connecting(base, issuer.token()) as client,
    ):
        await client.call_tool("search", {"query": question})

    assert memory.calls[0][1]["question"].text.strip() == question.strip()


async def test_message_above_the_limit_is_refused_behind_the_gate(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    async with serving_mcp(load, **oauth(issuer)) as base:
        answer = await answered(base, issuer.token(), call("search", query="x" * 2_000_000))

    assert answer.status_code == 413


async def test_real_client_finds_the_issuer_and_asks_for_more_when_it_needs_more(
    serving_mcp: Serving, connecting: Any, load: Any, memory: Any, issuer: Any
) -> None:
    class Storage:
        tokens: Any = None
        client: Any = None

        async def get_tokens(self) -> Any:
            return self.tokens

        async def set_tokens(self, tokens: Any) -> None:
            self.tokens = tokens

        async def get_client_info(self) -> Any:
            return self.client

        async def set_client_info(self, client_info: Any) -> None:
            self.client = client_info

    seen: list[str] = []

    async def visit(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            seen.append((await browser.get(url)).headers["Location"])

    async def result() -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(seen[-1]).query)
        return AuthorizationCodeResult(code=query["code"][0], state=query["state"][0])

    settings = {"mcp_oauth_issuer": issuer.issuer}
    async with serving_mcp(load, **settings) as base:
        auth = OAuthClientProvider(
            f"{base}/mcp",
            OAuthClientMetadata(
                client_name="test", redirect_uris=[AnyUrl("http://127.0.0.1:1/back")]
            ),
            Storage(),
            visit,
            result,
        )
        async with connecting(base, auth=auth) as client:
            await client.call_tool("search", QUESTION)
            await client.call_tool("ingest", PAGE)

    assert [name for name, _ in memory.calls] == ["search", "ingest"]
    assert issuer.granted[0] == ["webrag:read"]
    assert set(issuer.granted[-1]) == {"webrag:read", "webrag:write"}


async def test_new_key_is_found_and_the_old_one_refused_from_then_on(
    serving_mcp: Serving, load: Any, issuer: Any, make_key: Any
) -> None:
    async with serving_mcp(load, **oauth(issuer)) as base:
        old = issuer.token()
        before = await answered(base, old)
        issuer.keys = [make_key("second")]
        new = await answered(base, issuer.token())
        after = await answered(base, old)

    assert [each.status_code for each in (before, new, after)] == [200, 200, 401]


async def test_keys_are_asked_for_once_however_many_names_are_made_up(
    serving_mcp: Serving, load: Any, issuer: Any, make_key: Any
) -> None:
    async with serving_mcp(load, **oauth(issuer)) as base:
        await answered(base, issuer.token())
        made_up = [issuer.token(header={"kid": f"made-up-{number}"}) for number in range(8)]
        refused = [(await answered(base, token)).status_code for token in made_up]

    assert refused == [401] * 8
    assert issuer.asked.count("/jwks") == 2


async def test_without_the_authorization_server_nobody_new_is_let_in(
    serving_mcp: Serving, load: Any, memory: Any, issuer: Any
) -> None:
    issuer.is_down = True
    async with serving_mcp(load, **oauth(issuer)) as base:
        answer = await answered(base, issuer.token(), call("status"))

    assert answer.status_code == 503
    assert "the authorization server did not answer" in answer.json()["error"]["message"]
    assert answer.headers["Retry-After"]
    assert memory.calls == []


async def test_keys_that_are_known_outlive_a_short_absence_of_their_server(
    serving_mcp: Serving, load: Any, issuer: Any, make_key: Any
) -> None:
    async with serving_mcp(load, **oauth(issuer)) as base:
        await answered(base, issuer.token())
        issuer.is_down = True
        known = await answered(base, issuer.token())
        unknown = await answered(base, issuer.token(make_key("unknown")))

    assert (known.status_code, unknown.status_code) == (200, 503)


METADATA = "/.well-known/oauth-authorization-server"
BROKEN: dict[str, tuple[str, Callable[[Any], Response]]] = {
    "redirect": ("/jwks", lambda a: RedirectResponse(f"{a.base}/elsewhere")),
    "no JSON": ("/jwks", lambda _: Response("<html>")),
    "nested JSON": ("/jwks", lambda _: Response("[" * 100_000)),
    "no object": ("/jwks", lambda _: JSONResponse([1])),
    "no keys": ("/jwks", lambda _: JSONResponse({"keys": "x"})),
    "endless": ("/jwks", lambda _: Response(b" " * 600_000)),
    "metadata of another issuer": (
        METADATA,
        lambda a: JSONResponse({"issuer": "https://evil.example", "jwks_uri": f"{a.base}/jwks"}),
    ),
    "metadata without keys": (METADATA, lambda a: JSONResponse({"issuer": a.issuer})),
    "keys in a file": (
        METADATA,
        lambda a: JSONResponse({"issuer": a.issuer, "jwks_uri": "file:///etc/passwd"}),
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_answers_of_the_authorization_server_that_are_not_right_let_nobody_in(
    serving_mcp: Serving, load: Any, issuer: Any, kind: str
) -> None:
    path, make = BROKEN[kind]
    issuer.answers[path] = make(issuer)
    async with serving_mcp(load, **oauth(issuer)) as base:
        answer = await answered(base, issuer.token())

    assert answer.status_code == 503
    assert "/elsewhere" not in issuer.asked


async def test_key_for_encryption_or_with_a_secret_signs_nothing(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    encrypting = issuer.keys[0].public() | {"use": "enc"}
    secret = {"kty": "oct", "kid": "first", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}
    issuer.answers["/jwks"] = JSONResponse({"keys": [encrypting, secret]})
    forged = jwt.encode({"iss": issuer.issuer}, "secretsecret" * 4, headers={"kid": "first"})
    async with serving_mcp(load, **oauth(issuer)) as base:
        answers = [await answered(base, token) for token in (issuer.token(), forged)]

    assert [each.status_code for each in answers] == [401, 401]


async def test_keys_can_be_named_in_the_settings(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    settings = oauth(issuer, mcp_oauth_jwks_url=f"{issuer.base}/jwks")
    async with serving_mcp(load, **settings) as base:
        answer = await answered(base, issuer.token())

    assert answer.status_code == 200
    assert issuer.asked == ["/jwks"]


async def test_issuer_is_compared_with_its_last_slash(
    serving_mcp: Serving, load: Any, issuer: Any
) -> None:
    issuer.issuer = f"{issuer.base}/"
    async with serving_mcp(load, **oauth(issuer)) as base:
        answer = await answered(base, issuer.token())
        other = await answered(base, issuer.token(iss=issuer.base))

    assert (answer.status_code, other.status_code) == (200, 401)


async def test_refusals_hold_nothing_of_the_token(
    serving_mcp: Serving, load: Any, issuer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="webrag")
    token = issuer.token(aud="https://other.example")
    async with serving_mcp(load, **oauth(issuer)) as base:
        answer = await answered(base, token)

    shown = caplog.text + answer.text + str(answer.headers)
    assert [part for part in token.split(".") if part in shown] == []
