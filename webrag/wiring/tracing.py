"""Chooses who is told of the steps of an answer; nothing is imported for it while it is off."""

from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING

from webrag.errors import ConfigurationError
from webrag.extras import how_to_install

if TYPE_CHECKING:
    from webrag.settings import Settings

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def start_tracing(settings: "Settings", stack: AsyncExitStack) -> None:
    """Send spans where `WEBRAG_TRACING` says; the stack flushes and undoes it."""
    if settings.tracing == "off":
        return
    for package in _PACKAGES:
        if not _is_installed(package):
            raise ConfigurationError(
                f"WEBRAG_TRACING={settings.tracing} needs {package.replace('.', '-')}.",
                hint=how_to_install("tracing"),
            )
    from webrag.wiring.open_telemetry import export_spans, listening_spans

    if settings.tracing in ("opentelemetry", "both"):
        endpoint = settings.otel_exporter_otlp_endpoint
        # Without a collector they go to the tracer provider of the program.
        provider = endpoint and export_spans(endpoint, stack, proxy=settings.service_proxy)
        stack.enter_context(listening_spans(provider or None))
    if settings.tracing in ("langsmith", "both"):
        if settings.langsmith_api_key is None:
            raise ConfigurationError(
                f"WEBRAG_TRACING={settings.tracing} needs a key for LangSmith: set"
                " LANGSMITH_API_KEY."
            )
        provider = export_spans(
            f"{settings.langsmith_endpoint}/otel",
            stack,
            proxy=settings.service_proxy,
            headers={
                "x-api-key": settings.langsmith_api_key.get_secret_value(),
                "Langsmith-Project": settings.langsmith_project,
            },
        )
        stack.enter_context(listening_spans(provider, with_inputs=True))


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False
