"""Chooses who is told of the steps of an answer; nothing is imported for it while it is off."""

from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError
from webrag.extras import how_to_install

if TYPE_CHECKING:
    from webrag.answering.manager import Tracer
    from webrag.settings import Settings
    from webrag.wiring.langsmith_tracing import LangSmithTracer


def choose_tracer(settings: "Settings", stack: AsyncExitStack) -> "Tracer | None":
    """Set up what `WEBRAG_TRACING` names; the stack flushes and undoes it.

    Returns:
        None when tracing is off.

    Raises:
        ConfigurationError: A package of `webrag[tracing]` or a key is missing.
    """
    if settings.tracing == "off":
        return None
    from webrag.answering.manager import Tracer

    if settings.tracing in ("opentelemetry", "both"):
        _open_telemetry(settings, stack)
    if settings.tracing in ("langsmith", "both"):
        return Tracer(_langsmith(settings, stack))
    return Tracer()


def _open_telemetry(settings: "Settings", stack: AsyncExitStack) -> None:
    _need("opentelemetry.sdk", settings)
    from webrag.wiring.open_telemetry import collector_provider, listening_spans

    endpoint = settings.otel_exporter_otlp_endpoint
    if endpoint is not None:
        _need("opentelemetry.exporter.otlp.proto.http", settings)
    provider = None
    if endpoint is not None:
        provider = stack.enter_context(collector_provider(endpoint, settings.service_proxy))
    stack.enter_context(listening_spans(provider))


def _langsmith(settings: "Settings", stack: AsyncExitStack) -> "LangSmithTracer":
    _need("langsmith", settings)
    from webrag.wiring.langsmith_tracing import LangSmithTracer

    if settings.langsmith_api_key is None:
        raise ConfigurationError(
            f"WEBRAG_TRACING={settings.tracing} needs a key for LangSmith: set LANGSMITH_API_KEY."
        )
    tracer = LangSmithTracer(
        endpoint=settings.langsmith_endpoint,
        api_key=settings.langsmith_api_key.get_secret_value(),
        project=settings.langsmith_project,
        proxy=settings.service_proxy,
    )
    stack.push_async_callback(tracer.aclose)
    return tracer


def _need(package: str, settings: "Settings") -> None:
    try:
        found = find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ConfigurationError(
            f"WEBRAG_TRACING={settings.tracing} needs the package {package.replace('.', '-')}.",
            hint=how_to_install("tracing"),
        )
