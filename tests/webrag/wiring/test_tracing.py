import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.loopback import QuietHandler, serving
from webrag.answering.manager import in_span
from webrag.errors import ConfigurationError
from webrag.settings import load_settings
from webrag.wiring.components import start_tracing
from webrag.wiring.open_telemetry import listening_spans


class Collector(list[Any]):
    """Bodies that a LangSmith server received; `url` is its address."""

    url = ""


@pytest.fixture
def collector() -> Iterator[Collector]:
    received = Collector()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            batches = {
                "use_multipart_endpoint": False, "size_limit": 100, "size_limit_bytes": 1_000_000,
                "scale_up_nthreads_limit": 1, "scale_up_qsize_trigger": 1_000,
                "scale_down_nempty_trigger": 4,
            }  # fmt: skip
            self.send(200, json.dumps({"version": "0.1", "batch_ingest_config": batches}).encode())

        def do_POST(self) -> None:
            received.append(self.read_body())
            self.send(200, b"{}")

        do_PATCH = do_POST

    with serving(Handler) as base_url:
        received.url = base_url
        yield received


async def two_steps() -> str:
    async def inner() -> str:
        return "page text"

    async def outer() -> str:
        return await in_span("retrieve", inner, {"query": "port?"})

    return await in_span("answer", outer, {"query": "port?"})


async def test_steps_become_nested_open_telemetry_spans_without_contents() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    with listening_spans(provider):
        await two_steps()
    await two_steps()

    inner, outer = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("webrag.retrieve", "webrag.answer")
    assert inner.parent is not None
    assert outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert "page text" not in inner.to_json()
    provider.shutdown()


async def test_step_that_fails_is_a_span_with_an_error() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def failing() -> None:
        raise ValueError("a secret")

    with listening_spans(provider), pytest.raises(ValueError, match="a secret"):
        await in_span("plan", failing)

    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok
    assert "a secret" not in span.to_json()
    provider.shutdown()


async def test_steps_are_sent_to_langsmith_without_page_text(collector: Collector) -> None:
    settings = load_settings(
        tracing="langsmith", langsmith_api_key="ls-key", langsmith_endpoint=collector.url
    )

    async with AsyncExitStack() as stack:
        start_tracing(settings, stack)
        assert await two_steps() == "page text"

    sent = b"".join(collector).decode("utf-8", errors="replace")
    assert "webrag.answer" in sent
    assert "webrag.retrieve" in sent
    assert "port?" in sent
    assert "page text" not in sent


async def test_steps_are_sent_to_an_open_telemetry_collector(collector: Collector) -> None:
    settings = load_settings(tracing="opentelemetry", otel_exporter_otlp_endpoint=collector.url)

    async with AsyncExitStack() as stack:
        start_tracing(settings, stack)
        await two_steps()

    assert b"webrag.retrieve" in b"".join(collector)


async def test_langsmith_without_a_key_is_refused() -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(ConfigurationError, match="LANGSMITH_API_KEY"):
            start_tracing(load_settings(tracing="both"), stack)


async def test_nothing_is_imported_while_tracing_is_off() -> None:
    code = (
        "import sys, asyncio; from contextlib import AsyncExitStack;"
        "import webrag.wiring.components; from webrag.wiring.components import start_tracing;"
        "from webrag.settings import load_settings;"
        "start_tracing(load_settings(), AsyncExitStack());"
        "print([m for m in ('langsmith', 'opentelemetry.sdk') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
