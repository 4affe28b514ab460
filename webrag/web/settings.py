"""The settings that people change: shown to everybody, changed by who sits at the machine."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from webrag.checked_model import allowed_text
from webrag.errors import AccessDeniedError, InputError, WebRAGError
from webrag.settings.model import COMBINATIONS, Settings, changed_settings, is_fixed
from webrag.web.site import Site, status_of
from webrag.wiring.language_models import (
    LANGUAGE_MODEL,
    WITHOUT,
    find_servers,
    tried,
    uses_language_model,
)

_LABELS: Final = {
    "models": "Models that search",
    "allow_hosts": "Hosts of yours, with private addresses, that may be read",
    "recrawl_after": "Seconds until a stored page is checked again",
    "agent_rerank_recency_boost": "What a new page gains over one three years old",
    "orchestration_timeout": "Seconds for a question",
    "max_expansion_depth": "Rounds of link following",
    "max_pages_per_run": "Pages fetched for a question",
}
_INSIDE: Final = "allow_hosts"
_OTHER: Final = "other"


class Field(NamedTuple):
    """A setting as the form shows it; `fixed` says what gives it and wins over the form."""

    name: str
    label: str
    value: str
    allowed: str
    fixed: str
    choices: tuple[str, ...] = ()


def shown_fields(settings: Settings, typed: Mapping[str, str]) -> list[Field]:
    """The settings of the form as they are, or as they were typed."""
    known = Settings.model_fields
    return [
        Field(
            name,
            label,
            typed.get(name, _text(name, settings.shown(name))),
            allowed_text(known[name]),
            settings.origin(name) if is_fixed(settings, name) else "",
            tuple(COMBINATIONS) if name == "models" else (),
        )
        for name, label in _LABELS.items()
    ]


def _text(name: str, value: Any) -> str:
    if value is None:
        return "never" if name == "recrawl_after" else ""
    if isinstance(value, list | tuple):
        return ", ".join(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class _SettingsHandlers:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        seconds = request.query_params.get("saved")
        is_saved = seconds is not None and self._site.renew is not None
        said = "Saved, and in use from now on." if is_saved else ""
        said += f" The model answers, in {seconds[:8]} s." if is_saved and seconds else ""
        return await self._shown(request, said=said)

    async def choose_model(self, request: Request) -> Response:
        form = await self._form(request)
        server = str(form.get("server") or "")
        server = str(form.get("address") or "").strip() if server == _OTHER else server
        model = str(form.get("model") or "").strip()
        try:
            if not server:
                raise InputError("No server is chosen: choose one, or give its address.")
            settings = self._site.settings()
            if fixed := _fixed(settings):
                raise InputError(f"{', '.join(fixed)} wins over what is chosen here.")
            key = str(form.get("key") or "").strip() or _kept_key(settings, server)
            values, seconds = await tried(settings, server, model, key)
            return await self._saved(values, seconds)
        except WebRAGError as error:
            return await self._shown(request, error=error, server=server, model=model)

    async def change(self, request: Request) -> Response:
        form = await self._form(request)
        shown = shown_fields(self._site.settings(), {})
        typed = {each.name: str(form.get(each.name, each.value)).strip() for each in shown}
        values = {
            each.name: typed[each.name] or None
            for each in shown
            if not each.fixed and typed[each.name] != each.value
        }
        try:
            return await self._saved(values)
        except WebRAGError as error:
            return await self._shown(request, error=error, typed=typed)

    async def _form(self, request: Request) -> Any:
        form = await self._site.checked_form(request)
        if self._site.renew is None:
            raise AccessDeniedError("This server lets nobody change its settings here.")
        return form

    async def _saved(self, values: Mapping[str, str | None], seconds: float = 0.0) -> Response:
        assert self._site.renew is not None, "the form was refused"
        if values:
            with changed_settings(self._site.settings(), values) as settings:
                await self._site.renew(settings)
        took = f"{seconds:.1f}" if seconds else ""
        return RedirectResponse(f"/settings?saved={took}", status_code=303)

    async def _shown(
        self,
        request: Request,
        *,
        said: str = "",
        error: WebRAGError | None = None,
        server: str = "",
        model: str = "",
        typed: Mapping[str, str] = MappingProxyType({}),
    ) -> Response:
        site, settings = self._site, self._site.settings()
        self._site.check(request, "status")
        may_change, fixed = site.renew is not None, _fixed(settings)
        found = await find_servers() if may_change and not fixed else []
        uses_model = uses_language_model(settings)
        used = settings.orchestration_llm_base_url if uses_model else "none"
        used_model = settings.orchestration_llm_model if uses_model else ""
        server, model = server or used, model or used_model
        return site.page(
            request,
            "settings.html",
            status_code=200 if error is None else status_of(error),
            said=said,
            error=error,
            may_change=may_change,
            without=WITHOUT,
            found=found,
            uses_model=uses_model,
            used=used,
            used_model=used_model,
            server=server,
            model=model,
            has_key=_kept_key(settings, server) is not None,
            fixed=fixed,
            # Which hosts are inside is nothing that others need to know.
            fields=[e for e in shown_fields(settings, typed) if may_change or e.name != _INSIDE],
            file=settings.file if may_change else None,
        )


def _fixed(settings: Settings) -> list[str]:
    """The variables and arguments that give the language model and win over the form."""
    return [settings.origin(name) for name in LANGUAGE_MODEL if is_fixed(settings, name)]


def _kept_key(settings: Settings, server: str) -> str | None:
    key = settings.orchestration_llm_api_key
    is_same = server.rstrip("/") == settings.orchestration_llm_base_url
    return key.get_secret_value() if key is not None and is_same else None


def settings_routes(site: Site) -> list[Route]:
    """Route where settings are seen and changed."""
    handlers = _SettingsHandlers(site)
    return [
        Route("/settings", handlers.show, methods=["GET"]),
        Route("/settings", handlers.change, methods=["POST"]),
        Route("/settings/model", handlers.choose_model, methods=["POST"]),
    ]
