"""A page behind a login, from the request with it to what leaves the corpus."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.tls_hosts import TlsHosts, tls_hosts
from webrag import WebRAG
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.logins.session import Cookie, Login, Logins
from webrag.ingestion.models import FetchConfig
from webrag.postgres.database import Database
from webrag.presentation.reports import format_excerpt, format_status
from webrag.settings import Settings

SECRET = "s3cret-session-0123456789"
PRIVATE = "https://wiki.example/handbook"
PUBLIC = "https://other.example/about"
LOGIN = Login("wiki.example", (Cookie("session", SECRET, "wiki.example"),))
TEXT = "The kiln of the workshop is fired at 1240 degrees on every second Friday of the month. "


def page(title: str) -> str:
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{TEXT * 4}</p></body></html>"  # noqa: E501


@pytest.fixture
def hosts() -> Iterator[TlsHosts]:
    with tls_hosts() as served:
        served.replies = {
            PRIVATE: lambda asked: (
                (200, {}, page("Handbook"))
                if asked.headers["Cookie"] == f"session={SECRET}"
                else (302, {"Location": "/login?next=/handbook"}, "")
            ),
            PUBLIC: (200, {}, page("About us")),
        }
        yield served


def reading(hosts: TlsHosts, *logins: Login) -> HttpFetcher:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    config = FetchConfig(allowed_hosts=("wiki.example", "other.example"))
    return HttpFetcher(config, resolver=resolve, dialer=hosts.dialer, logins=Logins(logins))


@pytest.fixture
def settings(database: Database) -> Settings:
    config = database.config
    return Settings(data_dir=config.data_dir, collection=config.collection)


@pytest.fixture
async def stored(hosts: TlsHosts, settings: Settings) -> AsyncIterator[WebRAG]:
    """A corpus of one page read with a login and one read without."""
    async with WebRAG(settings, page_source=reading(hosts, LOGIN)) as rag:
        report = await rag.ingest([PRIVATE, PUBLIC])
        assert not report.failed
        yield rag


async def test_page_behind_a_login_is_marked_and_stays_here(
    stored: WebRAG, hosts: TlsHosts, settings: Settings, tmp_path: Path
) -> None:
    listed = await stored.status(include_urls=True)
    assert {each.url: each.with_login for each in listed.pages} == {PRIVATE: True, PUBLIC: False}
    shown = format_status(listed)
    assert f"Handbook — {PRIVATE}" in shown
    assert shown.count("with your login") == 1

    excerpt = await stored.read(PRIVATE)
    text, _ = format_excerpt(excerpt, token_budget=4_000, count_tokens=stored.count_tokens)
    assert "UTC with your login" in text

    result = await stored.answer(PRIVATE, "At how many degrees is the kiln fired?")
    assert "with your login" in stored.brief(result, detail="full")
    assert SECRET not in result.model_dump_json()

    without = await stored.export_corpus(tmp_path / "shared.jsonl")
    assert (without.documents, without.private) == (1, 1)
    assert "wiki.example" not in (tmp_path / "shared.jsonl").read_text()

    everything = await stored.export_corpus(tmp_path / "mine.jsonl", with_logins=True)
    assert (everything.documents, everything.private) == (2, 0)
    exported = (tmp_path / "mine.jsonl").read_text()
    assert '"with_login":true' in exported
    assert SECRET not in exported

    # Brought back, it is as private as it was.
    await stored.forget([PRIVATE])
    await stored.import_corpus(tmp_path / "mine.jsonl")
    again = await stored.status(PRIVATE, include_urls=True)
    assert [each.with_login for each in again.pages] == [True]


async def test_expired_login_keeps_the_stored_page_and_names_the_command(
    stored: WebRAG, hosts: TlsHosts
) -> None:
    hosts.replies[PRIVATE] = (401, {}, "")

    report = await stored.ingest(PRIVATE, refresh=True)

    (reason,) = report.failed.values()
    assert "does not accept the stored login" in reason
    status = await stored.status(PRIVATE, include_urls=True)
    assert [(each.outcome, each.with_login) for each in status.pages] == [("failed", True)]
    assert "Renew it with `webrag login wiki.example`." in format_status(status)


async def test_page_that_became_public_loses_its_mark(
    stored: WebRAG, hosts: TlsHosts, settings: Settings
) -> None:
    hosts.replies[PRIVATE] = (200, {}, page("Handbook"))

    async with WebRAG(settings, page_source=reading(hosts)) as rag:
        await rag.ingest(PRIVATE, refresh=True)
        status = await rag.status(PRIVATE, include_urls=True)

    assert [each.with_login for each in status.pages] == [False]
