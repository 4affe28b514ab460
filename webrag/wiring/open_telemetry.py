"""Turns LlamaIndex's instrumentation into OpenTelemetry spans; imported only when asked for."""

import asyncio
import inspect
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, Final

from llama_index.postprocessor.webrag.service_calls import session_proxies
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider as SdkProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider
from pydantic import PrivateAttr
from requests import Session  # noqa: TID251 - the exporter takes no other client
from typing_extensions import override

_STEP: Final = "traced_step"
_FLUSH_S: Final = 5
_SUMMARY: Final = (
    "confidence", "final_reason", "method", "gave_up", "coherence", "score", "state"
)  # fmt: skip


class _SpanHandler(BaseSpanHandler[BaseSpan]):
    """Opens a span for each of LlamaIndex's: names, times and kinds of errors.

    Without a provider they go to the program's own. With inputs, steps of an answer also tell
    questions and addresses, counts and scores of what came of it; page text stays here.
    """

    _tracer: trace.Tracer = PrivateAttr()
    _spans: dict[str, Span] = PrivateAttr(default_factory=dict)
    _with_inputs: bool = PrivateAttr()

    def __init__(self, provider: TracerProvider | None, *, with_inputs: bool) -> None:
        super().__init__()
        self._tracer = trace.get_tracer("webrag", tracer_provider=provider)
        self._spans = {}
        self._with_inputs = with_inputs

    @classmethod
    @override
    def class_name(cls) -> str:
        return "WebRAGOpenTelemetry"

    @override
    def new_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> BaseSpan | None:
        parent = self._spans.get(parent_span_id or "")
        context = trace.set_span_in_context(parent) if parent else None
        span = self._tracer.start_span(_name(id_, bound_args), context=context)
        self._spans[id_] = span
        if self._with_inputs and (inputs := bound_args.arguments.get("inputs")):
            span.set_attribute("input.value", json.dumps(inputs))
        return BaseSpan(id_=id_, parent_id=parent_span_id)

    @override
    def prepare_to_exit_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> BaseSpan | None:
        if self._with_inputs and "step" in bound_args.arguments and id_ in self._spans:
            self._spans[id_].set_attribute("output.value", json.dumps(_summary(result)))
        return self._ended(id_)

    @override
    def prepare_to_drop_span(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> BaseSpan | None:
        if id_ in self._spans:
            # The type only: messages can hold what a page or a server said.
            kind = type(err).__name__ if err else None
            self._spans[id_].set_status(Status(StatusCode.ERROR, kind))
        return self._ended(id_)

    def _ended(self, id_: str) -> BaseSpan | None:
        if (span := self._spans.pop(id_, None)) is not None:
            span.end()
        return self.open_spans.get(id_)


@contextmanager
def listening_spans(
    provider: TracerProvider | None = None, *, with_inputs: bool = False
) -> Iterator[None]:
    """Make spans of LlamaIndex's instrumentation while the block runs, as `_SpanHandler` says."""
    handler = _SpanHandler(provider, with_inputs=with_inputs)
    root_dispatcher.add_span_handler(handler)
    try:
        yield
    finally:
        root_dispatcher.span_handlers.remove(handler)


def export_spans(
    endpoint: str,
    stack: AsyncExitStack,
    *,
    proxy: str | None = None,
    headers: dict[str, str] | None = None,
) -> TracerProvider:
    """A tracer provider that sends to a collector over HTTP; the stack flushes it."""
    provider = SdkProvider(resource=Resource.create({SERVICE_NAME: "webrag"}))
    session = Session()
    session.trust_env, session.proxies = session_proxies(proxy)
    exporter = OTLPSpanExporter(
        endpoint=f"{endpoint}/v1/traces", headers=headers, session=session, timeout=_FLUSH_S
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    stack.push_async_callback(lambda: asyncio.to_thread(provider.shutdown))
    return provider


def _summary(result: Any) -> dict[str, Any]:
    parts = result if isinstance(result, tuple) else (result,)
    return {
        name: value
        for part in parts
        for name in _SUMMARY
        if isinstance(value := getattr(part, name, None), str | int | float | bool)
    }


def _name(id_: str, bound_args: inspect.BoundArguments) -> str:
    name = id_.rsplit("-", 5)[0]  # the rest is a UUID
    step = bound_args.arguments.get("step")
    return f"webrag.{step}" if name == _STEP and step else name
