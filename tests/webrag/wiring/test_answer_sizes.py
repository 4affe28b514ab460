"""An answer of a service that does not end, or that unpacks without end, ends in one error."""

import gzip
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest
from llama_index.postprocessor.webrag import RerankError
from llama_index.postprocessor.webrag.service_calls import AnswerTooLargeError, limited_client

from tests.loopback import QuietHandler
from webrag.answering.language_model import ask, stream
from webrag.errors import ProviderError, WebRAGError
from webrag.wiring.served_language_model import ServedLanguageModel

from .provider_faults import PROVIDERS, faulty_server

ENDLESS_BYTES = 300_000_000
PIECE = b"x" * 1_000_000
BOMB = gzip.compress(b"0" * 40_000_000, 1)
KINDS = [httpx.Client, httpx.AsyncClient, openai.DefaultHttpxClient, openai.DefaultAsyncHttpxClient]


class Endless:
    """A body of 300 MB, of which it counts what somebody takes."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked = 0
        self.sent = 0

    def __call__(self, handler: QuietHandler) -> None:
        self.asked += 1
        handler.send_response(self.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(ENDLESS_BYTES))
        handler.end_headers()
        for _ in range(ENDLESS_BYTES // len(PIECE)):
            handler.wfile.write(PIECE)
            self.sent += len(PIECE)


def bomb(handler: QuietHandler) -> None:
    handler.send(200, BOMB, {"Content-Type": "application/json", "Content-Encoding": "gzip"})


async def body_of(kind: Any, url: str, most_bytes: int) -> bytes:
    client = limited_client(kind, None, most_bytes=most_bytes)
    if isinstance(client, httpx.AsyncClient):
        async with client:
            return (await client.get(url)).content
    with client:
        return bytes(client.get(url).content)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_endless_answer_ends_in_one_error_and_is_not_read_to_its_end(provider: str) -> None:
    endless = Endless()

    with faulty_server(endless) as url, pytest.raises((WebRAGError, RerankError)):
        await PROVIDERS[provider](url, 60.0)

    # Beside the limit, what the connection holds.
    assert endless.sent < 50_000_000
    assert endless.asked == 1, "the same would come again"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("provider", ["firecrawl", "embedding", "language model"])
async def test_answer_that_unpacks_to_more_than_is_read_is_named(provider: str) -> None:
    with (
        faulty_server(bomb) as url,
        pytest.raises(WebRAGError, match=r"answered with more than \d+ MB"),
    ):
        await PROVIDERS[provider](url, 60.0)


async def test_reply_without_end_that_comes_piece_by_piece_is_named() -> None:
    endless = Endless()
    with faulty_server(endless) as url:
        model: Any = ServedLanguageModel(
            model="m", api_base=f"{url}/v1", api_key="none", is_chat_model=True
        )
        with pytest.raises(ProviderError, match="more than 4 MB"):
            async for _ in stream(model, [("user", "why?")]):
                pass
        await model._get_aclient().close()

    assert endless.sent < 20_000_000


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_client_reads_up_to_the_limit(kind: Any) -> None:
    def exact(handler: QuietHandler) -> None:
        handler.send(200, b"x" * 1000)

    with faulty_server(exact) as url:
        assert len(await body_of(kind, url, 1000)) == 1000
        with pytest.raises(AnswerTooLargeError):
            await body_of(kind, url, 999)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [b"", b"a", b"word " * 100_000, b"0" * 131_072])
async def test_packed_answer_is_read_whole(kind: Any, text: bytes) -> None:
    def packed(handler: QuietHandler) -> None:
        handler.send(200, gzip.compress(text), {"Content-Encoding": "gzip"})

    with faulty_server(packed) as url:
        assert await body_of(kind, url, 1_000_000) == text


@pytest.mark.parametrize(
    ("encoding", "body"), [("br", b"abc"), ("zstd", b"abc"), ("gzip", b"abc"), ("gzip, gzip", b"")]
)
async def test_packing_that_cannot_be_limited_is_refused(encoding: str, body: bytes) -> None:
    def packed(handler: QuietHandler) -> None:
        handler.send(200, body, {"Content-Encoding": encoding})

    with faulty_server(packed) as url, pytest.raises(httpx.DecodingError):
        await body_of(httpx.AsyncClient, url, 1_000_000)


def failing(times: int, status: int, then: Callable[[QuietHandler], None]) -> Any:
    asked: list[int] = []

    def answer(handler: QuietHandler) -> None:
        asked.append(1)
        if len(asked) <= times:
            handler.send(status, b"{}")
        else:
            then(handler)

    return answer, asked


REPLY = (
    b'{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,'
    b' "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}]}'
)
PIECES = (
    b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices":'
    b' [{"index": 0, "delta": {"content": "yes"}, "finish_reason": null}]}\n\ndata: [DONE]\n\n'
)


async def said_by(url: str, *, streaming: bool) -> str:
    model: Any = ServedLanguageModel(
        model="m", api_base=f"{url}/v1", api_key="none", is_chat_model=True
    )
    try:
        if streaming:
            return "".join([piece async for piece in stream(model, [("user", "why?")])])
        return await ask(model, [("user", "why?")])
    finally:
        await model._get_aclient().close()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_language_model_is_asked_again_after_a_passing_failure(
    status: int, streaming: bool
) -> None:
    kind = {"Content-Type": "text/event-stream" if streaming else "application/json"}
    body = PIECES if streaming else REPLY
    answer, asked = failing(1, status, lambda handler: handler.send(200, body, kind))

    with faulty_server(answer) as url:
        said = await said_by(url, streaming=streaming)

    assert (said, len(asked)) == ("yes", 2)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("status", "times"), [(500, 3), (401, 1), (404, 1)])
async def test_language_model_is_asked_three_times_at_most(
    status: int, times: int, streaming: bool
) -> None:
    answer, asked = failing(100, status, bomb)

    with faulty_server(answer) as url, pytest.raises(ProviderError):
        await said_by(url, streaming=streaming)

    assert len(asked) == times
