"""The embeddings interface of OpenAI, spoken by a server on loopback that can misbehave."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.loopback import QuietHandler, serving
from webrag.embedding.embedder import Embedder, EmbeddingLimits
from webrag.embedding.served import ServedEmbedding, read_vectors
from webrag.errors import ProviderError

KEY = "sk-canary-0123456789"
TEXTS = ["one", "three", "fifteen"]


class Answer(NamedTuple):
    """One scripted answer; None as body is a correct one."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012
    delay_s: float = 0.0


class FakeService:
    """Answers from a script, and correctly when it is used up.

    Attributes:
        requests: Decoded bodies, oldest first.
        keys: Authorization headers.
        times: When each request came.
    """

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.times: list[float] = []
        self.url = ""
        self.mutex = threading.Lock()

    @property
    def texts(self) -> list[str]:
        return [text for request in self.requests for text in request["input"]]


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0]


def listed(items: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "m", "data": items, "usage": usage}


def items_for(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"object": "embedding", "index": place, "embedding": vector(text)}
        for place, text in enumerate(request["input"])
    ]


def shuffled(request: dict[str, Any]) -> Any:
    return listed(items_for(request)[::-1])


def in_base64(request: dict[str, Any]) -> Any:
    items = items_for(request)
    for item in items:
        packed = np.array(item["embedding"], "<f4").tobytes()
        item["embedding"] = base64.b64encode(packed).decode()
    return listed(items)


def wrong_count(request: dict[str, Any]) -> Any:
    return listed(items_for(request)[1:])


def wrong_size(request: dict[str, Any]) -> Any:
    return listed([item | {"embedding": [1.0]} for item in items_for(request)])


def not_finite(request: dict[str, Any]) -> Any:
    return listed([item | {"embedding": [float("nan"), 1.0]} for item in items_for(request)])


def unnumbered(request: dict[str, Any]) -> Any:
    return listed([item | {"index": 0} for item in items_for(request)])


@pytest.fixture
def service() -> Iterator[FakeService]:
    fake = FakeService()

    class Handler(QuietHandler):
        timeout = 5  # a client that was cancelled while it connected asks for nothing

        def do_POST(self) -> None:
            request = json.loads(self.read_body())
            with fake.mutex:
                fake.requests.append(request)
                fake.keys.append(self.headers["Authorization"])
                fake.times.append(time.monotonic())
                answer = fake.script.pop(0) if fake.script else Answer()
            time.sleep(answer.delay_s)
            body = answer.body
            if answer.status == 200 and (body is None or callable(body)):
                body = (body or (lambda asked: listed(items_for(asked))))(request)
            data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
            self.send(answer.status, data, {"Content-Type": "application/json", **answer.headers})

    with serving(Handler) as base_url:
        fake.url = f"{base_url}/v1"
        yield fake


def model_of(service: FakeService, **changes: Any) -> ServedEmbedding:
    settings = {"api_key": KEY, "api_base": service.url, "backoff_s": 0.002}
    return ServedEmbedding("m", **settings | changes)


async def embed(service: FakeService, texts: list[str] = TEXTS, **changes: Any) -> Any:
    return (await Embedder(model_of(service, **changes), 2).embed_documents(texts)).tolist()


async def failure(service: FakeService, **changes: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await embed(service, **changes)
    assert KEY not in f"{raised.value} {raised.value.hint}"
    assert "\n" not in str(raised.value)
    return raised.value


async def test_texts_are_sent_as_they_are(service: FakeService) -> None:
    await embed(service, ["two\nlines"])

    assert service.requests == [{"input": ["two\nlines"], "model": "m", "encoding_format": "float"}]
    assert service.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("body", [None, shuffled, in_base64])
async def test_vectors_belong_to_their_texts(
    body: Callable[[Any], Any] | None, service: FakeService
) -> None:
    service.script = [Answer(body=body)]

    assert await embed(service) == [vector(text) for text in TEXTS]


async def test_short_form_and_size_are_asked_for(service: FakeService) -> None:
    service.script = [Answer(body=in_base64)]

    await embed(service, as_base64=True, dimensions=2)

    assert service.requests[0]["encoding_format"] == "base64"
    assert service.requests[0]["dimensions"] == 2


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 529])
async def test_passing_failure_is_asked_again(status: int, service: FakeService) -> None:
    service.script = [Answer(status), Answer(status)]

    assert await embed(service) == [vector(text) for text in TEXTS]
    assert len(service.requests) == 3


async def test_lasting_failure_takes_four_requests_and_no_more(service: FakeService) -> None:
    service.script = [Answer(500)] * 20

    error = await failure(service)

    assert len(service.requests) == 4
    assert "The embedding model m at 127.0.0.1:" in str(error)
    assert "failed (HTTP 500)" in str(error)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(lambda: {"Retry-After": "1"}, id="seconds"),
        pytest.param(lambda: {"retry-after-ms": "900"}, id="milliseconds"),
        pytest.param(lambda: {"Retry-After": formatdate(time.time() + 2, usegmt=True)}, id="date"),
    ],
)
async def test_pause_is_as_long_as_the_service_asks(
    headers: Callable[[], dict[str, str]], service: FakeService
) -> None:
    service.script = [Answer(429, headers=headers())]

    await embed(service)

    assert 0.85 < service.times[1] - service.times[0] < 2.5


async def test_pause_beyond_the_deadline_is_not_waited_for(service: FakeService) -> None:
    service.script = [Answer(429, headers={"Retry-After": "120"})]
    before = time.monotonic()

    error = await failure(service)

    assert time.monotonic() - before < 5
    assert error.status == 429
    assert len(service.requests) == 1


async def test_service_that_forbids_another_request_is_obeyed(service: FakeService) -> None:
    service.script = [Answer(500, headers={"x-should-retry": "false"})]

    await failure(service)

    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        pytest.param(
            401,
            {"error": {"message": f"Incorrect API key provided: {KEY[:6]}***"}},
            r"refused the key \(HTTP 401\)\.$",
            id="unauthorised",
        ),
        pytest.param(403, {}, "refused the key", id="forbidden"),
        pytest.param(404, {"error": {"message": "no m"}}, "knows no such .*: no m", id="model"),
        pytest.param(
            400,
            {"error": {"message": f"bad\ninput {KEY}"}},
            r"refused the request \(HTTP 400\): bad input \*\*\*",
            id="bad-request",
        ),
        pytest.param(413, b"<html>too big", r"too large \(HTTP 413\)\.$", id="too-large"),
        pytest.param(
            429, {"error": {"code": "insufficient_quota"}}, "no quota left", id="no-quota"
        ),
    ],
)
async def test_refusal_is_one_sentence_and_final(
    status: int, body: Any, message: str, service: FakeService
) -> None:
    service.script = [Answer(status, body)]

    error = await failure(service)

    assert error.status == status
    assert len(service.requests) == 1
    with pytest.raises(ProviderError, match=message):
        raise error


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"data": [', "something that is not JSON", id="cut-off"),
        pytest.param(b"<html>", "something that is not JSON", id="html"),
        pytest.param(b"", "something that is not JSON", id="empty"),
        pytest.param(b"[" * 100_000, "something that is not JSON", id="deep"),
        pytest.param(b'{"error": "busy"}', "no list of vectors", id="no-data"),
        pytest.param(b'{"data": 7}', "no list of vectors", id="data-is-a-number"),
        pytest.param(b'{"data": [{"index": 0, "embedding": null}]}', "no list", id="null"),
        pytest.param(b'{"data": [{"index": 0, "embedding": "a"}]}', "not JSON", id="bad-base64"),
        pytest.param(wrong_count, "answered with 2 vectors for 3 texts", id="count"),
        pytest.param(unnumbered, "not numbered like the texts", id="index"),
        pytest.param(wrong_size, "vectors of 1 dimensions, the corpus has 2", id="dimensions"),
        pytest.param(not_finite, "values that are not finite", id="nan"),
    ],
)
async def test_unusable_answer_is_refused(body: Any, message: str, service: FakeService) -> None:
    service.script = [Answer(body=body)]

    assert message in str(await failure(service))
    assert len(service.requests) == 1


async def test_silent_service_is_given_up_and_asked_again(service: FakeService) -> None:
    service.script = [Answer(delay_s=1.0)]

    assert await embed(service, timeout=0.5) == [vector(text) for text in TEXTS]


async def test_call_has_a_deadline_over_all_attempts(service: FakeService) -> None:
    service.script = [Answer(delay_s=0.3)] * 9
    limits = EmbeddingLimits(timeout_s=0.15)
    embedder = Embedder(model_of(service, timeout=0.1), 2, limits=limits)

    with pytest.raises(ProviderError, match=r"did not answer within 0\.15 s"):
        await embedder.embed_documents(TEXTS)


async def test_service_that_is_not_there_is_named() -> None:
    model = ServedEmbedding("m", api_key=KEY, api_base="http://127.0.0.1:9/v1", backoff_s=0.001)

    with pytest.raises(ProviderError, match=r"m at 127\.0\.0\.1:9 could not be reached"):
        await Embedder(model, 2).embed_query("question")


async def test_password_in_the_address_is_not_repeated(service: FakeService) -> None:
    service.script = [Answer(400)]
    url = service.url.replace("//", "//user:hunter2@")

    assert "hunter2" not in str(await failure(service, api_base=url))


async def test_question_is_one_text(service: FakeService) -> None:
    found = await Embedder(model_of(service), 2).embed_query("seven77")

    assert found.tolist() == [7.0, 1.0]
    assert service.texts == ["seven77"]


async def test_batches_are_limited_by_texts_and_tokens(service: FakeService) -> None:
    limits = EmbeddingLimits(texts=3, tokens=10)
    embedder = Embedder(model_of(service, embed_batch_size=3), 2, limits=limits, count_tokens=len)

    vectors = await embedder.embed_documents(["a", "bb", "ccc", "d", "eeeeeeeeee", "f"])

    sizes = sorted(len(request["input"]) for request in service.requests)
    assert vectors[:, 0].tolist() == [1, 2, 3, 1, 10, 1]
    assert sizes == [1, 1, 1, 3]


def test_synchronous_callers_get_the_same_service(service: FakeService) -> None:
    service.script = [Answer(500), Answer(body=shuffled)]

    assert model_of(service).get_text_embedding_batch(TEXTS) == [vector(text) for text in TEXTS]
    assert len(service.requests) == 2


def test_each_event_loop_gets_its_own_connections(service: FakeService) -> None:
    model = model_of(service)

    for _ in range(2):
        assert asyncio.run(model.aget_text_embedding_batch(["one"])) == [vector("one")]

    assert len(service.requests) == 2


async def test_connections_end_with_the_block(service: FakeService) -> None:
    async with model_of(service) as model:
        await model.aget_text_embedding("one")
        model.get_text_embedding("one")
        clients = (model._get_aclient(), model._get_client())

    assert [client.is_closed() for client in clients] == [True, True]
    assert await model.aget_text_embedding("one") == vector("one")


def test_synchronous_callers_get_the_same_errors(service: FakeService) -> None:
    service.script = [Answer(401)]

    with pytest.raises(ProviderError, match="refused the key"):
        model_of(service).get_query_embedding("question")


def test_numbers_without_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="1 vectors for 0 texts"):
        read_vectors(b'{"data": [{"index": 0, "embedding": [1]}]}', 0)
