import asyncio
import json
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from llama_index.postprocessor.webrag import (
    RerankCircuitOpenError,
    RerankError,
    RerankRefusedError,
    RerankResponseError,
    RerankTimeoutError,
    RerankUnavailableError,
)
from llama_index.postprocessor.webrag.rerank_service import (
    Call,
    RerankService,
)
from llama_index.postprocessor.webrag.service_calls import CircuitBreaker

from .conftest import KEY, RerankServer

BODY = json.dumps({"model": "m", "query": "q", "documents": ["7"]}).encode()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def call(server: RerankServer, *, seconds: float = 5.0, **changes: Any) -> Call:
    values = {
        "url": server.url + "/v1/rerank",
        "key": KEY,
        "body": BODY,
        "deadline": time.monotonic() + seconds,
        "backoff_s": 0.01,
    }
    return Call(**{**values, **changes})


def as_it_is(answer: Any) -> Any:
    return answer


async def failure(server: RerankServer, **changes: Any) -> RerankError:
    with pytest.raises(RerankError) as caught:
        await RerankService("Service").ask(call(server, **changes), as_it_is)
    return caught.value


async def test_answer_is_handed_to_the_reader(rerank_server: RerankServer) -> None:
    answer = await RerankService("Service").ask(call(rerank_server), as_it_is)

    assert answer == {"results": [{"index": 0, "relevance_score": 0.07}]}


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 501, 502, 503, 504, 599])
async def test_passing_failure_is_tried_twice_more(rerank_server: Any, status: int) -> None:
    rerank_server.fail(status, status)

    assert await RerankService("Service").ask(call(rerank_server), as_it_is)
    assert len(rerank_server.asked) == 3


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 501, 502, 503, 504])
async def test_third_failure_is_final(rerank_server: Any, status: int) -> None:
    rerank_server.fail(*[status] * 3)

    error = await failure(rerank_server)

    assert type(error) is RerankUnavailableError
    assert (error.provider, error.status, error.attempts) == ("Service", status, 3)
    assert f"HTTP {status}" in str(error)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 498, 499])
async def test_refusal_is_not_repeated(rerank_server: Any, status: int) -> None:
    rerank_server.fail(status)

    error = await failure(rerank_server)

    assert type(error) is RerankRefusedError
    assert (error.status, len(rerank_server.asked)) == (status, 1)


@pytest.mark.parametrize("status", [201, 204, 301, 302, 304, 307])
async def test_status_without_a_ranking_is_not_an_answer(rerank_server: Any, status: int) -> None:
    elsewhere = {"Location": rerank_server.url + "/v1/rerank"}
    rerank_server.faults.append((status, elsewhere, b""))

    error = await failure(rerank_server)

    assert type(error) is RerankResponseError
    assert len(rerank_server.asked) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "an empty body"),
        (b"  \n", "an empty body"),
        (b"<html>Service</html>", "not JSON"),
        (b'{"results": [', "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'"' + b"x" * 5_000_000 + b'"', "not JSON"),
    ],
    ids=["empty", "blank", "page", "cut", "binary", "nested", "huge"],
)
async def test_body_that_is_not_json_is_named(rerank_server: Any, body: bytes, said: str) -> None:
    rerank_server.answer(body)

    error = await failure(rerank_server)

    assert type(error) is RerankResponseError
    assert said in str(error)


async def test_body_that_cannot_be_unpacked_is_named(rerank_server: RerankServer) -> None:
    rerank_server.faults.append((200, {"Content-Encoding": "gzip"}, b"not gzip at all"))

    assert type(await failure(rerank_server)) is RerankResponseError


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"results": [')


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close without a word."""


def speak_nonsense(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"I am not an HTTP server.\r\n\r\n")


@pytest.mark.parametrize("fault", [cut_short, hang_up, speak_nonsense])
async def test_broken_connection_is_tried_again(rerank_server: Any, fault: Any) -> None:
    rerank_server.faults.append(fault)

    assert await RerankService("Service").ask(call(rerank_server), as_it_is)


@pytest.mark.parametrize("fault", [cut_short, hang_up, speak_nonsense])
async def test_connection_that_always_breaks_is_unavailable(rerank_server: Any, fault: Any) -> None:
    rerank_server.faults += [fault] * 3

    error = await failure(rerank_server)

    assert type(error) is RerankUnavailableError
    assert (error.status, error.attempts) == (None, 3)


async def test_server_that_is_not_there_is_unavailable(rerank_server: RerankServer) -> None:
    error = await failure(rerank_server, url="http://127.0.0.1:1/rerank")

    assert type(error) is RerankUnavailableError
    assert str(error).startswith("Service could not be reached (")


async def trickle_seconds(server: RerankServer, fault: Any) -> float:
    server.faults += [fault] * 3  # 4.5 s in all, if nothing ended it
    began = time.monotonic()

    error = await failure(server, seconds=0.2)

    assert type(error) is RerankTimeoutError
    return time.monotonic() - began


def say_nothing(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.5)


def trickle(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("fault", [say_nothing, trickle])
async def test_deadline_covers_the_whole_call(rerank_server: Any, fault: Any) -> None:
    assert await trickle_seconds(rerank_server, fault) < 3


async def test_deadline_covers_all_attempts_together(rerank_server: RerankServer) -> None:
    rerank_server.fail(503, 503)
    rerank_server.faults.append(say_nothing)

    error = await failure(rerank_server, seconds=0.3)

    assert type(error) is RerankTimeoutError


async def test_retry_after_that_fits_is_waited_for(rerank_server: RerankServer) -> None:
    rerank_server.fail(429, headers={"Retry-After": "1"})
    began = time.monotonic()

    await RerankService("Service").ask(call(rerank_server), as_it_is)

    assert 1.0 <= time.monotonic() - began < 4


@pytest.mark.parametrize("asked", ["60", "9" * 9, "far"], ids=["minute", "ages", "date"])
async def test_retry_after_beyond_the_deadline_fails_at_once(
    rerank_server: Any, asked: str
) -> None:
    if asked == "far":
        asked = formatdate(time.time() + 3600, usegmt=True)
    rerank_server.fail(429, headers={"Retry-After": asked})
    began = time.monotonic()

    error = await failure(rerank_server, seconds=30)

    assert (error.status, len(rerank_server.asked)) == (429, 1)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("asked", ["", "soon", "-5", "0", "Wed, 99 Foo 2026 00:00:00 GMT"])
async def test_unreadable_retry_after_means_an_ordinary_pause(
    rerank_server: Any, asked: str
) -> None:
    rerank_server.fail(429, headers={"Retry-After": asked})

    assert await RerankService("Service").ask(call(rerank_server), as_it_is)


@pytest.mark.parametrize(
    "body",
    [
        b'{"message": "model xyz not found"}',
        b'{"detail": "model xyz not found"}',
        b'{"error": {"message": "model xyz not found"}}',
        b'{"detail": [{"loc": ["body"], "msg": "model xyz not found", "input": "private"}]}',
        b'{"message": "model\\n xyz\\u0000 not found."}',
    ],
    ids=["message", "detail", "nested", "validation", "control"],
)
async def test_what_the_service_says_is_passed_on(rerank_server: Any, body: bytes) -> None:
    rerank_server.faults.append((404, {}, body))

    error = await failure(rerank_server)

    assert str(error) == ("Service knows no such address or model (HTTP 404): model xyz not found.")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"[1]", b'{"message": 7}', b"null"])
async def test_service_that_says_nothing_readable_is_left_at_the_status(
    rerank_server: Any, body: bytes
) -> None:
    rerank_server.faults.append((400, {}, body))

    assert str(await failure(rerank_server)) == "Service refused the request (HTTP 400)."


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429, 498, 500])
async def test_no_error_repeats_the_key(rerank_server: Any, status: int, caplog: Any) -> None:
    caplog.set_level("DEBUG")
    said = json.dumps({"message": f"Incorrect key: {KEY}; {KEY}!"}).encode()
    rerank_server.faults += [(status, {}, said)] * 3

    error = await failure(rerank_server)

    assert KEY not in str(error) + repr(error) + caplog.text


@pytest.mark.parametrize("status", [401, 403, 498])
async def test_words_about_a_refused_key_are_left_out(rerank_server: Any, status: int) -> None:
    rerank_server.faults.append((status, {}, b'{"message": "Incorrect key: key-012***"}'))

    assert str(await failure(rerank_server)) == f"Service refused the key (HTTP {status})."


def test_call_shows_neither_key_nor_texts() -> None:
    shown = repr(Call(url="u", key=KEY, body=b"private", deadline=0.0, backoff_s=0.0))

    assert KEY not in shown
    assert "private" not in shown


def reject(answer: Any) -> Any:
    raise ValueError("no list of results")


async def test_answer_the_reader_rejects_is_an_error_that_says_why(
    rerank_server: RerankServer,
) -> None:
    with pytest.raises(RerankResponseError, match=r"^Service answered with no list of results\.$"):
        await RerankService("Service").ask(call(rerank_server), reject)

    assert len(rerank_server.asked) == 1


async def test_after_five_failed_calls_nothing_is_sent_for_a_while(
    rerank_server: RerankServer,
) -> None:
    clock = Clock()
    service = RerankService("Service", CircuitBreaker(clock=clock))
    rerank_server.fail(*[401] * 5)
    for _ in range(5):
        with pytest.raises(RerankRefusedError):
            await service.ask(call(rerank_server), as_it_is)

    with pytest.raises(RerankCircuitOpenError, match="not asked again for 30 s"):
        await service.ask(call(rerank_server), as_it_is)
    assert len(rerank_server.asked) == 5

    clock.now += 30
    assert await service.ask(call(rerank_server), as_it_is)


async def test_success_forgets_failures(rerank_server: RerankServer) -> None:
    service = RerankService("Service")
    for _ in range(2):
        rerank_server.fail(*[401] * 4)
        for _ in range(4):
            with pytest.raises(RerankRefusedError):
                await service.ask(call(rerank_server), as_it_is)
        assert await service.ask(call(rerank_server), as_it_is)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_faulty_requests_do_not_stop_later_ones(rerank_server: Any, status: int) -> None:
    service = RerankService("Service")
    rerank_server.fail(*[status] * 6)
    for _ in range(6):
        with pytest.raises(RerankRefusedError):
            await service.ask(call(rerank_server), as_it_is)

    assert await service.ask(call(rerank_server), as_it_is)


async def test_cancelling_the_caller_ends_the_call(rerank_server: RerankServer) -> None:
    rerank_server.faults.append(say_nothing)
    service = RerankService("Service")
    task = asyncio.create_task(service.ask(call(rerank_server), as_it_is))
    await asyncio.sleep(0.1)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await service.ask(call(rerank_server), as_it_is)


async def test_kept_connection_is_used_again(rerank_server: RerankServer) -> None:
    service = RerankService("Service")
    await service.keep_connection()
    for _ in range(3):
        await service.ask(call(rerank_server), as_it_is)
    await service.aclose()

    assert await service.ask(call(rerank_server), as_it_is)
    assert len({asked.client for asked in rerank_server.asked[:3]}) == 1
    assert len(rerank_server.asked) == 4


async def test_kept_connection_that_the_service_closed_is_replaced(
    rerank_server: RerankServer,
) -> None:
    service = RerankService("Service")
    await service.keep_connection()
    await service.ask(call(rerank_server), as_it_is)
    rerank_server.faults.append(hang_up)

    assert await service.ask(call(rerank_server), as_it_is)
    await service.aclose()
