import asyncio
import functools
import json
import secrets
import socket
import time
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NamedTuple, Self
from uuid import UUID

import httpx2
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import (
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    construct_redirect_uri,
)
from mcp.server.auth.routes import build_metadata, create_auth_routes
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from webrag.app import IngestReport
from webrag.corpus.models import (
    AcquiredPage,
    CollectionSize,
    CorpusStatus,
    PageListing,
    PageName,
    PageStatus,
    PageText,
)
from webrag.corpus.writer import ForgetReport
from webrag.crawling.report import CrawlOptions, CrawlProgress, SiteReport
from webrag.errors import InputError, PageGoneError, WebRAGError
from webrag.mcp_server.http_server import http_app
from webrag.mcp_server.server import assemble_server
from webrag.orchestration.models import ProgressCallback
from webrag.presentation.brief.models import EvidenceBlock
from webrag.question import Question
from webrag.retrieval.citation_checks import Citation, CitationCheck, Finding
from webrag.retrieval.reading import PageExcerpt, ReadingPlace, excerpt_at
from webrag.settings import load_settings


class ScriptedMemory:
    """A research memory that does what a test tells it and records how it was used.

    It stands for `webrag.app.WebRAG`, so that failures, delays and cancellations of the server
    can be tested at will; the real one is used in test_stdio.py.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.briefs: list[tuple[int | None, str]] = []
        self.seen: list[list[Any]] = []
        self.error: Exception | None = None
        self.delay_s = 0.0
        self.cancelled = asyncio.Event()
        self.is_open = False
        self.page_delay_s = 0.0
        self.chunks: list[Any] = []
        self.blocks: list[EvidenceBlock] = []
        self.finished = 0
        self.urls_fetched: tuple[str, ...] = ()
        self.echoes = False
        self.page: PageText | None = None
        self.stored: tuple[PageStatus, ...] = ()
        self.degraded: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self.is_open = False

    async def _work(self, name: str, on_progress: ProgressCallback | None, **given: Any) -> Any:
        self.calls.append((name, given))
        if on_progress is not None:
            await on_progress("retrieve", "Searching 3 documents...")
            await on_progress("expand", "Expanding to linked pages...", 1, 5)
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.error is not None:
            raise self.error
        self.finished += 1
        return SimpleNamespace(
            chunks=self.chunks,
            query=given["question"].text if "question" in given else None,
            urls_fetched=self.urls_fetched,
            next_links=(),
            parts=(),
            as_of=None,
            seed_urls=(),
            query_analysis=SimpleNamespace(sub_queries=()),
            wordings={},
            also_searched={},
            mode="chunk",
            corpus_stats=SimpleNamespace(total_documents=1),
            total_iterations=0,
            total_urls_ingested=0,
            final_decision=SimpleNamespace(reason="Expansion was not asked for."),
            timing=SimpleNamespace(total_ms=1.0),
            confidence=0.5,
            confidence_band="medium",
            partial=False,
            degraded=(),
            warnings=(),
        )

    async def evidence_for(self, question: Question, *, on_progress: ProgressCallback) -> Any:
        name = "search" if question.is_search else "answer"
        return await self._work(name, on_progress, question=question)

    async def read(self, url: str | None, **options: Any) -> PageExcerpt:
        await self._work("read", None, url=url, **options)
        page = self.page or PageText(
            UUID(int=1),
            str(url),
            "Title",
            "# Title\n\nText.",
            datetime(2026, 1, 1, tzinfo=UTC),
            None,
        )
        return excerpt_at(
            page,
            ReadingPlace(options["offset"], options["heading"], options["quote"]),
            max_tokens=options["max_tokens"],
            count_tokens=self.count_tokens,
        )

    async def ingest(
        self,
        urls: list[str],
        *,
        refresh: bool = False,
        version: str | None = None,
        on_page: Any = None,
        on_found: Callable[[int], Any] = lambda _total: None,
    ) -> Any:
        on_found(len(urls))
        named = {} if version is None else {"version": version}
        await self._work("ingest", None, urls=urls, refresh=refresh, **named)
        outcomes: dict[str, AcquiredPage | WebRAGError] = {}
        for url in urls:
            await asyncio.sleep(self.page_delay_s)
            outcomes[url] = _outcome(url)
            on_page(url, outcomes[url])
        return IngestReport(
            pages=tuple(each for each in outcomes.values() if isinstance(each, AcquiredPage)),
            failed={u: str(e) for u, e in outcomes.items() if isinstance(e, WebRAGError)},
            degraded=self.degraded,
        )

    async def ingest_site(self, url: str, options: CrawlOptions, *, on_progress: Any) -> SiteReport:
        on_progress(CrawlProgress(done=3, queued=9, failed=0, pages_per_second=1.0))
        await self._work("ingest_site", None, url=url, options=options)
        return SiteReport(start_url=url, pages={"indexed": 3}, ended="limit", queued=9)

    async def collections(self) -> list[CollectionSize]:
        return [CollectionSize(name=name, documents=0) for name in ("manuals", "webrag")]

    async def sites(self) -> list[Any]:
        return []

    async def years(self) -> dict[int, int]:
        return {}

    async def status(self, source_url: str | None = None, *, include_urls: bool = True) -> Any:
        await self._work("status", None, source_url=source_url, include_urls=include_urls)
        if source_url == "ftp://x":
            raise InputError("The URL scheme is ftp; only http and https can be read.")
        return CorpusStatus(
            collection="webrag",
            documents=len(self.stored),
            gone=0,
            chunks=0,
            tokens=0,
            links=0,
            embedding_model=None,
            embedding_dimensions=None,
            database=f"checked {datetime(2026, 1, 1, tzinfo=UTC):%Y}",
            pages=self.stored,
        )

    def brief(
        self,
        result: Any,
        *,
        include_guide: bool = False,
        nonce: str | None = None,
        max_tokens: int | None = None,
        detail: str = "brief",
        seen: Any = (),
    ) -> str:
        self.briefs.append((max_tokens, detail))
        self.seen.append(list(seen))
        echo = f" {result.query}" if self.echoes else ""
        return f"brief of {len(result.chunks)} guide={include_guide} nonce={nonce}{echo}"

    def evidence(self, _result: Any, **_options: Any) -> list[EvidenceBlock]:
        return self.blocks

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def list_pages(self, *, limit: int) -> PageListing:
        return PageListing(pages=self.stored[:limit], total=len(self.stored))

    async def page_names(self, contains: str = "", *, limit: int = 100) -> list[PageName]:
        await self._work("page_names", None, contains=contains, limit=limit)
        names = [PageName(UUID(int=n), f"https://a.test/{n}", f"Page {n}") for n in range(1, 201)]
        return [each for each in names if contains.lower() in f"{each.url} {each.title}".lower()][
            :limit
        ]

    async def page_text(self, document_id: UUID) -> PageText | None:
        found = self.page
        return found if found is not None and found.document_id == document_id else None

    async def forget(self, urls: list[str], *, confirm: bool | None = None) -> ForgetReport:
        assert confirm or len(urls) <= 20
        await self._work("forget", None, urls=urls)
        return ForgetReport(removed=tuple(urls))

    async def verify(self, citations: list[Citation], **options: Any) -> list[CitationCheck]:
        on_checked = options.pop("on_checked")
        await self._work("verify", None, citations=citations, live=options["live"])
        absent, unchecked = Finding(state="absent"), Finding(state="unchecked")
        checks = [
            CitationCheck(citation=each, url=each.url or "", stored=absent, live=unchecked)
            for each in citations
        ]
        for done, check in enumerate(checks, 1):
            on_checked(check, done, len(checks))
        return checks


def _outcome(url: str) -> AcquiredPage | WebRAGError:
    if "gone" in url:
        return PageGoneError("404: no such page", url=url, status=404)
    return AcquiredPage(
        url=url,
        requested_url=url,
        page_id=1,
        title="Page",
        outcome="indexed",
        depth=0,
        chunk_count=4,
        token_count=800,
    )


Load = Callable[[], AbstractAsyncContextManager[Any]]


@pytest.fixture
def memory() -> ScriptedMemory:
    return ScriptedMemory()


@pytest.fixture
def load(memory: ScriptedMemory) -> Load:
    return lambda: memory


@pytest.fixture(autouse=True)
def _often_looking_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers end when they are told to, for which Uvicorn looks ten times a second."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)

    own = SimpleNamespace(**vars(asyncio) | {"sleep": sleep})
    monkeypatch.setattr("uvicorn.server.asyncio", own)


@asynccontextmanager
async def running(app: Any, sock: socket.socket) -> AsyncIterator[None]:
    """An application served on a socket that listens already."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", lifespan="on"))
    task = asyncio.create_task(server._serve([sock]))  # `serve` would take over signals
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


@pytest.fixture
def serving_mcp() -> Callable[..., AbstractAsyncContextManager[str]]:
    """Serves MCP for settings: `async with serving_mcp(load, **settings) as base`."""

    @asynccontextmanager
    async def serve(load: Any, **settings: Any) -> AsyncIterator[str]:
        sock = socket.create_server(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{sock.getsockname()[1]}"
        chosen = load_settings(
            mcp_transport="streamable-http", **({"mcp_public_url": base} | settings)
        )
        async with running(http_app(assemble_server(chosen, load=load), chosen), sock):
            yield base

    return serve


@pytest.fixture
def connecting() -> Callable[..., AbstractAsyncContextManager[Client]]:
    """Connects a client: `async with connecting(base, token=..., auth=...) as client`."""

    @asynccontextmanager
    async def connect(
        base: str, token: str | None = None, auth: Any = None, **options: Any
    ) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, auth=auth, timeout=30) as http:
            transport = streamable_http_client(f"{base}/mcp", http_client=http)
            async with Client(transport, **options) as client:
                yield client

    return connect


class SigningKey(NamedTuple):
    """A private key and the name that tokens call it by."""

    kid: str
    private: Any
    algorithm: str

    def public(self) -> dict[str, Any]:
        kind = jwt.get_algorithm_by_name(self.algorithm)
        found: dict[str, Any] = json.loads(kind.to_jwk(self.private.public_key()))
        return found | {"kid": self.kid, "use": "sig"}


@functools.cache
def signing_key(kid: str, algorithm: str = "RS256") -> SigningKey:
    if algorithm.startswith("ES"):
        return SigningKey(kid, ec.generate_private_key(ec.SECP256R1()), algorithm)
    if algorithm == "EdDSA":
        return SigningKey(kid, ed25519.Ed25519PrivateKey.generate(), algorithm)
    size = 1024 if kid == "short" else 2048
    return SigningKey(kid, rsa.generate_private_key(65537, size), algorithm)


@pytest.fixture
def make_key() -> Callable[..., SigningKey]:
    """Makes keys; the same one for the same name."""
    return signing_key


class AuthorizationServer(OAuthAuthorizationServerProvider[AuthorizationCode, Any, Any]):
    """An OAuth authorization server as the SDK builds one; tokens are JWTs of the test's making.

    Attributes:
        keys: Those it publishes.
        is_down: Answers 500 to everything.
        asked: Paths of the requests it got.
        granted: Scopes of the tokens that clients were given, in order.
    """

    def __init__(self, base: str) -> None:
        self.base = self.issuer = base
        self.keys = [signing_key("first")]
        self.is_down = False
        self.asked: list[str] = []
        self.granted: list[list[str]] = []
        self.audience = "http://127.0.0.1/mcp"
        self.answers: dict[str, Response] = {}
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}

    def token(
        self, key: SigningKey | None = None, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token that is right but for what is given; None takes a claim out."""
        signing = key or self.keys[-1]
        now = int(time.time())
        payload = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": "user-1",
            "client_id": "client-1",
            "iat": now,
            "exp": now + 600,
            "scope": "webrag:read webrag:write webrag:forget",
        } | claims
        payload = {name: value for name, value in payload.items() if value is not None}
        headers = {"kid": signing.kid, "typ": "at+jwt"} | (header or {})
        headers = {name: value for name, value in headers.items() if value is not None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jwt.InsecureKeyLengthWarning)
            return jwt.encode(payload, signing.private, signing.algorithm, headers=headers)

    def app(self) -> Any:
        options = ClientRegistrationOptions(
            enabled=True, valid_scopes=["webrag:read", "webrag:write", "webrag:forget"]
        )
        issuer = AnyHttpUrl(self.base)
        metadata = build_metadata(issuer, None, options, RevocationOptions())
        described = metadata.model_dump(mode="json", exclude_none=True)
        described["jwks_uri"] = f"{self.base}/jwks"

        async def about(_request: Request) -> Response:
            return JSONResponse(described | {"issuer": self.issuer})

        async def jwks(_request: Request) -> Response:
            return JSONResponse({"keys": [key.public() for key in self.keys]})

        routes = [
            Route("/.well-known/oauth-authorization-server", about),
            Route("/jwks", jwks),
            *create_auth_routes(self, issuer, client_registration_options=options),
        ]
        inner = Starlette(routes=routes)

        async def outer(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                self.asked.append(scope["path"])
                own = self.answers.get(scope["path"])
                if own is not None or self.is_down:
                    await (own or Response(status_code=500))(scope, receive, send)
                    return
            await inner(scope, receive, send)

        return outer

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        # Clients register with the scopes they need first; the user decides about each.
        every = "webrag:read webrag:write webrag:forget"
        self._clients[client_info.client_id] = client_info.model_copy(update={"scope": every})

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = secrets.token_hex()
        self._codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        scopes = authorization_code.scopes
        self.granted.append(scopes)
        scope = " ".join(scopes)
        token = self.token(aud=authorization_code.resource, scope=scope)
        return OAuthToken(access_token=token, expires_in=600, scope=scope)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> None:
        return None

    async def load_access_token(self, token: str) -> None:
        return None


@pytest.fixture
async def issuer() -> AsyncIterator[AuthorizationServer]:
    """A running authorization server."""
    sock = socket.create_server(("127.0.0.1", 0))
    server = AuthorizationServer(f"http://127.0.0.1:{sock.getsockname()[1]}")
    async with running(server.app(), sock):
        yield server
