from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.readers.base import BaseReader

from webrag.concurrency import all_of
from webrag.ingestion.documents import ReaderSource
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.http.fetcher import HttpFetcher, SharedManners
from webrag.ingestion.logins.session import Cookie, Login, Logins
from webrag.ingestion.logins.store import LoginStore
from webrag.ingestion.models import FetchConfig
from webrag.ingestion.service import FallbackSource
from webrag.settings import Settings
from webrag.wiring.page_sources import (
    LOGINS_FOLDER,
    PageSourceChoice,
    builtin_source,
    choose_logins,
    choose_page_source,
)

BUILTIN = HttpFetcher(FetchConfig())


@pytest.fixture
def choose() -> Callable[..., PageSourceChoice]:
    def make(own: Any = None, **settings: Any) -> PageSourceChoice:
        return choose_page_source(Settings(**settings), BUILTIN, own)

    return make


def test_built_in_fetcher_serves_when_nothing_is_set(
    choose: Callable[..., PageSourceChoice],
) -> None:
    assert choose() == PageSourceChoice(BUILTIN, None)


@pytest.mark.parametrize(
    "settings", [{"firecrawl_api_key": "fc-1"}, {"firecrawl_api_url": "http://127.0.0.1:3002"}]
)
def test_key_or_server_of_ones_own_chooses_firecrawl_before_the_built_in_fetcher(
    choose: Callable[..., PageSourceChoice], settings: dict[str, str]
) -> None:
    choice = choose(**settings)

    assert isinstance(choice.source, FallbackSource)
    assert choice.source.name == "firecrawl, else builtin"
    assert isinstance(choice.mapper, FirecrawlSource)


def test_reader_becomes_a_page_source_that_maps_nothing(
    choose: Callable[..., PageSourceChoice],
) -> None:
    class MyReader(BaseReader):
        pass

    choice = choose(MyReader(), firecrawl_api_key="fc-1")

    assert isinstance(choice.source, ReaderSource)
    assert (choice.source.name, choice.mapper) == ("MyReader", None)


def test_page_source_given_is_taken_as_it_is_and_maps_when_it_can(
    choose: Callable[..., PageSourceChoice],
) -> None:
    own = FirecrawlSource(Settings(firecrawl_api_key="fc-1").firecrawl_config())  # type: ignore[arg-type]

    choice = choose(own)

    assert choice.source is own
    assert choice.mapper is own


def test_firecrawl_gets_what_the_settings_say() -> None:
    config = Settings(
        firecrawl_api_key="fc-1",
        recrawl_after=60,
        allow_hosts=["intranet.test"],
        fetching={"max_decoded_bytes": 2048},
    ).firecrawl_config()

    assert config is not None
    assert (config.max_age_s, config.max_chars) == (60, 2048)
    assert config.allowed_hosts == ("intranet.test",)
    assert config.is_cloud


@pytest.mark.parametrize(
    ("is_own_user", "allowed", "sent"),
    [
        pytest.param(True, (), True, id="the-user"),
        pytest.param(False, (), False, id="others"),
        pytest.param(False, ("wiki.example",), True, id="others-where-allowed"),
        pytest.param(False, ("other.example",), False, id="others-elsewhere"),
    ],
)
def test_stored_login_is_for_its_user_and_for_others_where_it_is_allowed(
    tmp_path: Path, is_own_user: bool, allowed: tuple[str, ...], sent: bool
) -> None:
    cookie = Cookie("session", "s3cret-session-0123456789", "wiki.example")
    LoginStore(tmp_path / LOGINS_FOLDER).save(Login("wiki.example", (cookie,)))

    logins = choose_logins(
        Settings(data_dir=tmp_path, allow_logins=allowed), is_own_user=is_own_user
    )

    assert bool(logins.headers_for("https://wiki.example/page")) == sent


async def test_logins_are_read_once_however_many_pages_are_asked_for_at_once(
    tmp_path: Path,
) -> None:
    LoginStore(tmp_path).save(
        Login("wiki.example", (Cookie("session", "s3cret-session-0123456789", "wiki.example"),))
    )
    read: list[int] = []

    def load() -> Logins:
        read.append(1)
        return Logins(LoginStore(tmp_path).load())

    class Alone(SharedManners):
        """Nobody to agree with, as no page is fetched."""

    source = builtin_source(FetchConfig(), Alone, load)
    urls = ["https://wiki.example/a", "https://wiki.example/b", "https://other.example/"]

    found = await all_of(source.has_login(url) for url in urls)

    assert (found, len(read)) == ([True, True, False], 1)
