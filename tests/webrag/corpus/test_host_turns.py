"""Several processes at one host, each with connections of its own."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.corpus_fixtures import Server
from tests.webrag.ingestion.http.test_fetcher_manners import LoopbackDialer
from webrag.corpus.host_turns import HostTurns
from webrag.corpus.schema import drop_collection, ensure_schema
from webrag.errors import FetchError
from webrag.ingestion.fetch_context import patiently
from webrag.ingestion.http.answers import RobotsAnswer
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.models import FetchConfig
from webrag.postgres.database import Database

PAGE = "<html><body><p>Hello there.</p></body></html>"
HTML = {"Content-Type": "text/html; charset=utf-8"}
Make = Callable[..., HttpFetcher]


Open = Callable[..., Awaitable[Database]]


@pytest.fixture
async def open_collection(server: Server) -> AsyncIterator[Open]:
    """Opens collections of one database, which no other test uses: `await open_collection()`."""
    async with AsyncExitStack() as stack:

        async def opened(name: str = "first", user: str = "postgres") -> Database:
            config = server.database(user).config.model_copy(update={"collection": name})
            database = Database(config)
            stack.push_async_callback(database.close)
            await ensure_schema(database, embedding_model="m", embedding_dimensions=3)
            return database

        yield opened


@pytest.fixture
async def databases(open_collection: Open) -> list[Database]:
    """The same collection, as four processes open it."""
    return [await open_collection() for _ in range(4)]


@pytest.fixture
async def fetchers(databases: list[Database]) -> AsyncIterator[Callable[..., list[HttpFetcher]]]:
    """A fetcher for each process; a site on loopback is the public host `docs.test` to them."""
    made: list[HttpFetcher] = []

    async def resolver(_host: str, _port: int) -> list[str]:
        return ["93.184.215.14"]

    def make(site: str, **options: Any) -> list[HttpFetcher]:
        config = FetchConfig(**{"host_delay_s": 0.0, "host_concurrency": 1, **options})
        for database in databases:
            shared, dialer = HostTurns(database), LoopbackDialer(site)
            made.append(HttpFetcher(config, resolver=resolver, dialer=dialer, shared=shared))
        return made

    yield make
    for fetcher in made:
        await fetcher.aclose()


class Visits:
    """What a host sees: when each request began, and how many there were at once."""

    def __init__(self, takes_s: float = 0.02) -> None:
        self.takes_s = takes_s
        self.begun: list[float] = []
        self.at_once = self.most_at_once = 0
        self.mutex = threading.Lock()

    def __call__(self, _request: Any) -> Any:
        with self.mutex:
            self.begun.append(time.monotonic())
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.takes_s)
        with self.mutex:
            self.at_once -= 1
        return 200, HTML, PAGE


async def test_four_processes_ask_one_host_for_one_page_at_a_time(
    fetchers: Make, static_site: Any
) -> None:
    visits = Visits()
    site = static_site({"/a": visits})

    await asyncio.gather(
        *(each.fetch("http://docs.test/a") for each in fetchers(site) for _ in range(4))
    )

    assert (len(visits.begun), visits.most_at_once) == (16, 1)


async def test_four_processes_keep_one_delay_together(fetchers: Make, static_site: Any) -> None:
    visits = Visits(takes_s=0.0)
    site = static_site({"/a": visits})
    made = fetchers(site, host_delay_s=0.3, host_concurrency=4)

    await asyncio.gather(*(each.fetch("http://docs.test/a") for each in made))

    # What the host sees may come late, never early but by the way there.
    first, last = min(visits.begun), max(visits.begun)
    assert last - first >= 0.9 * 3 * 0.3


async def test_four_processes_fetch_the_robots_txt_once(fetchers: Make, static_site: Any) -> None:
    site = static_site({"/robots.txt": "User-agent: *\nDisallow: /b\n", "/a": PAGE})

    await asyncio.gather(*(each.fetch("http://docs.test/a") for each in fetchers(site)))

    assert [request.path for request in site.requests].count("/robots.txt") == 1


async def is_held(database: Database) -> bool:
    """Whether some host may not be asked for a while, as it has said."""

    async def work(connection: Any) -> bool:
        cursor = await connection.execute(
            'select from "webrag$hosts".host_turns'
            " where next_at > clock_timestamp() + interval '1 s'"
        )
        return await cursor.fetchone() is not None

    return await database.run(work)


async def test_pause_that_a_host_asks_one_process_for_is_kept_by_all(
    fetchers: Make, databases: list[Database], static_site: Any
) -> None:
    asked: list[float] = []

    def busy(_request: Any) -> Any:
        asked.append(time.monotonic())
        return (429, {"Retry-After": "2"}, "") if len(asked) == 1 else (200, HTML, PAGE)

    site = static_site({"/a": busy})
    made = fetchers(site, host_concurrency=4)
    first = asyncio.create_task(made[0].fetch("http://docs.test/a"))
    while not asked or not await is_held(databases[0]):
        await asyncio.sleep(0.01)

    await asyncio.gather(first, *(each.fetch("http://docs.test/a") for each in made[1:]))

    assert min(asked[1:]) - asked[0] >= 0.9 * 2


async def test_turn_of_a_process_that_died_ends_by_itself(databases: list[Database]) -> None:
    died, other = HostTurns(databases[0]), HostTurns(databases[1])
    turn = {"concurrency": 1, "delay_s": 0.0, "is_patient": False}
    started = time.monotonic()
    await died.take("docs.test", lease_s=1.0, **turn)

    await other.take("docs.test", lease_s=1.0, **turn)

    assert 0.9 <= time.monotonic() - started < 10


async def test_turns_hold_for_all_collections_of_a_database(open_collection: Open) -> None:
    one, other = [HostTurns(await open_collection(name)) for name in ("first", "second")]
    turn = {"concurrency": 1, "delay_s": 0.0, "is_patient": False}
    started = time.monotonic()
    await one.take("docs.test", lease_s=1.0, **turn)

    await other.take("docs.test", lease_s=1.0, **turn)

    assert time.monotonic() - started >= 0.9


async def test_user_who_may_make_no_table_for_all_keeps_turns_in_the_collection(
    open_collection: Open, server: Server
) -> None:
    owner = await open_collection()
    server.execute(
        f"grant usage on schema first to {server.role}",
        f"grant select, insert, update, delete on all tables in schema first to {server.role}",
        dbname=server.name,
    )
    guest = await open_collection(user=server.role)

    await HostTurns(guest).take("docs.test", concurrency=1, delay_s=0, lease_s=9, is_patient=False)

    assert await held(owner, "first") == ["docs.test"]


async def test_last_collection_takes_the_names_of_hosts_along(open_collection: Open) -> None:
    first, second = await open_collection("first"), await open_collection("second")
    turns = HostTurns(first)
    turn = {"concurrency": 1, "delay_s": 0.0, "is_patient": False, "lease_s": 9.0}
    await turns.take("docs.test", **turn)
    hosts = []

    for database in (first, second):
        await drop_collection(database)
        hosts.append(await held(database))

    assert hosts == [["docs.test"], []]


async def held(database: Database, schema: str = "webrag$hosts") -> list[str]:
    """Hosts that are remembered."""

    async def work(connection: Any) -> list[str]:
        cursor = await connection.execute(f'select host from "{schema}".host_turns order by host')
        return [host for (host,) in await cursor.fetchall()]

    return await database.run(work)


async def origins(database: Database) -> list[str]:
    """Sites whose robots.txt is remembered."""

    async def work(connection: Any) -> list[str]:
        cursor = await connection.execute("select origin from first.robots_files order by 1")
        return [origin for (origin,) in await cursor.fetchall()]

    return await database.run(work)


async def age(database: Database, table: str, column: str, name: str) -> None:
    """Make the rows of `old.test` two days older."""
    statement = (
        f"update {table} set {column} = {column} - interval '2 days' where {name} like $$%old%$$"
    )
    await database.run(lambda connection: connection.execute(statement))


async def test_hosts_and_robots_txt_that_nobody_needs_any_more_are_forgotten(
    databases: list[Database],
) -> None:
    async def answered() -> RobotsAnswer:
        return RobotsAnswer("User-agent: *")

    before, after = HostTurns(databases[0]), HostTurns(databases[1])
    turn = {"concurrency": 1, "delay_s": 0.0, "is_patient": False, "lease_s": 9.0}
    for name in ("old", "new"):
        await before.end(f"{name}.test", await before.take(f"{name}.test", **turn))
        await before.robots(f"https://{name}.test", answered)
    await age(databases[0], '"webrag$hosts".host_turns', "next_at", "host")
    await age(databases[0], "first.robots_files", "fetched_at", "origin")

    await after.take("other.test", **turn)

    assert await held(databases[0]) == ["new.test", "other.test"]
    assert await origins(databases[0]) == ["https://new.test"]


async def test_question_comes_before_the_crawls_of_other_processes(
    fetchers: Make, static_site: Any
) -> None:
    order: list[str] = []

    def note(request: Any) -> Any:
        order.append(request.path)
        time.sleep(0.1)
        return 200, HTML, PAGE

    site = static_site({"/crawl": note, "/question": note})
    *crawls, question = fetchers(site)

    async def crawl(fetcher: HttpFetcher) -> None:
        with patiently():
            for _ in range(6):
                await fetcher.fetch("http://docs.test/crawl")

    crawling = [asyncio.create_task(crawl(each)) for each in crawls]
    while len(order) < 2:
        await asyncio.sleep(0.01)
    before = len(order)
    await question.fetch("http://docs.test/question")
    place = order.index("/question")
    await asyncio.gather(*crawling)

    assert len(order) == 19
    assert place - before <= 3


async def test_robots_txt_that_one_process_could_not_ask_for_is_asked_for_by_the_next(
    databases: list[Database],
) -> None:
    turns = HostTurns(databases[0])

    async def refused() -> RobotsAnswer:
        raise FetchError("refused", url="https://docs.test/robots.txt")

    async def answered() -> RobotsAnswer:
        return RobotsAnswer("User-agent: *\n\0Disallow: /b")

    with pytest.raises(FetchError):
        await turns.robots("https://docs.test", refused)

    assert "Disallow" in (await turns.robots("https://docs.test", answered)).text
    assert "Disallow" in (await turns.robots("https://docs.test", refused)).text
