"""Chooses where pages come from; it makes no request."""

import asyncio
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any, cast

from webrag.concurrency import in_background
from webrag.errors import ConfigurationError, how_to_install
from webrag.settings.variables import has_display

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llama_index.core.readers.base import BaseReader

    from webrag.ingestion.browser import BrowserRenderer
    from webrag.ingestion.http.fetcher import HttpFetcher, SharedManners
    from webrag.ingestion.logins.session import Logins
    from webrag.ingestion.models import FetchConfig, PageSource, SiteMapper
    from webrag.settings import Settings

LOGINS_FOLDER = "logins"
"""Below `WEBRAG_DATA_DIR`."""


class _Later:
    """Stands for the built-in fetcher, which is made when a method of it is first awaited.

    Its HTTP client takes a tenth of what every command starts with, which most need for nothing,
    and the keyring of its logins may ask the user to open it, who should be asked once.
    """

    name = "builtin"

    def __init__(self, make: "Callable[[], HttpFetcher]") -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._fetcher: HttpFetcher | None = None

    def __getattr__(self, method: str) -> "Callable[..., Awaitable[Any]]":
        if method.startswith("_"):
            raise AttributeError(method)

        async def call(*arguments: Any, **options: Any) -> Any:
            async with self._making:
                if self._fetcher is None:
                    self._fetcher = await in_background(self._make)
            return await getattr(self._fetcher, method)(*arguments, **options)

        return call

    async def aclose(self) -> None:
        if self._fetcher is not None:
            await self._fetcher.aclose()


def builtin_source(
    config: "FetchConfig",
    shared: "Callable[[], SharedManners]",
    load_logins: "Callable[[], Logins]",
) -> "HttpFetcher":
    """Give the built-in fetcher, imported when it is first asked for something."""

    def make() -> "HttpFetcher":
        from webrag.ingestion.http.fetcher import HttpFetcher

        return HttpFetcher(config, shared=shared(), logins=load_logins())

    return cast("HttpFetcher", _Later(make))


def choose_logins(settings: "Settings", *, is_own_user: bool) -> "Logins":
    """Read the logins that pages are asked for with; all of them for their own user only."""
    from webrag.ingestion.logins.session import Logins

    logins = list(settings.header_logins)
    folder = settings.data_dir / LOGINS_FOLDER
    # Without any, what would decrypt them is not imported.
    if folder.is_dir():
        from webrag.ingestion.logins.store import LoginStore

        logins = [*LoginStore(folder).load(), *logins]
    allowed = frozenset(settings.allow_logins)
    return Logins(login for login in logins if is_own_user or login.host in allowed)


@dataclass(frozen=True)
class PageSourceChoice:
    """The source of pages, and what names more pages of a site, which is closed with it.

    Pages of a source that the program gave, its own, need not be on the network.
    """

    source: "PageSource"
    mapper: "SiteMapper | None" = None
    is_own: bool = False


def choose_page_source(
    settings: "Settings", builtin: "HttpFetcher", own: "PageSource | BaseReader | None" = None
) -> PageSourceChoice:
    """Choose where pages come from: the program's own source or LlamaIndex reader, else Firecrawl.

    Where Firecrawl cannot or is not set up, it is the built-in fetcher.
    """
    if own is not None:
        from llama_index.core.readers.base import BaseReader

        from webrag.ingestion.documents import ReaderSource
        from webrag.ingestion.models import SiteMapper

        source: PageSource = (
            ReaderSource(own, allowed_hosts=settings.allow_hosts)
            if isinstance(own, BaseReader)
            else own
        )
        mapper = source if isinstance(source, SiteMapper) else None
        return PageSourceChoice(source, mapper, is_own=True)
    config = settings.firecrawl_config()
    if config is None:
        return PageSourceChoice(builtin)
    from webrag.ingestion.firecrawl.source import FirecrawlSource
    from webrag.ingestion.service import FallbackSource

    firecrawl = FirecrawlSource(config)
    return PageSourceChoice(
        FallbackSource(firecrawl, builtin, is_private=builtin.has_login), firecrawl
    )


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def choose_renderer(settings: "Settings", builtin: "HttpFetcher") -> "BrowserRenderer | None":
    """Choose what draws the pages whose text scripts write; None where nothing can, or shall."""
    if settings.browser == "never":
        return None
    browser = find_browser(settings.browser_path)
    missing = _missing(settings.browser_path, browser)
    if browser is None or missing:
        if settings.browser == "auto" and settings.browser_path is None:
            return None
        raise ConfigurationError(
            f"Pages cannot be drawn in a browser: {missing}.",
            hint=f"{how_to_install('browser')} Put Chromium on the PATH, or name the program in"
            " load_settings(browser_path=...), or set WEBRAG_BROWSER=never.",
        )
    from webrag.ingestion.browser import BrowserRenderer

    return BrowserRenderer(builtin, browser)


def find_browser_for_login(settings: "Settings", *, has_endpoint: bool) -> Path | None:
    """Find the browser that a user can sign in with; none is looked for where one is running."""
    browser = None if has_endpoint else find_browser(settings.browser_path)
    if not find_spec("playwright"):
        missing = "playwright is not installed"
    elif has_endpoint:
        missing = ""
    else:
        missing = _missing(settings.browser_path, browser)
        missing = missing or ("" if has_display() else "there is no display")
    if not missing:
        return browser
    raise ConfigurationError(
        f"No window can be opened to sign in: {missing}.",
        hint="A window needs a display, the extra `browser` and Chromium or Chrome."
        f" {how_to_install('browser')} Without them: `--cookies FILE` takes a cookies.txt that your"
        " own browser wrote,"
        " `--browser URL` a Chromium that runs with --remote-debugging-port, and the setting"
        " WEBRAG_LOGIN_HEADERS a header.",
    )


def _missing(named: Path | None, browser: Path | None) -> str:
    if not find_spec("playwright"):
        return "playwright is not installed"
    if browser is not None:
        return ""
    return f"there is no program {named}" if named else "no Chromium or Chrome is on the PATH"


def find_browser(named: Path | None) -> Path | None:
    """Find the program that is named, or else the first Chromium or Chrome on the `PATH`."""
    names = _BROWSERS if named is None else (str(named),)
    return next((Path(found) for name in names if (found := which(name))), None)
