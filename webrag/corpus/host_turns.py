"""Keeps all processes of a corpus polite to a host together."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final

import psycopg
from psycopg import sql

from webrag.corpus.schema import HOSTS_SCHEMA, LOCK_SEED
from webrag.ingestion.characters import storable
from webrag.ingestion.http.answers import FAILURE_KEPT_S, KEPT_S, RobotsAnswer
from webrag.postgres.database import Connection, Database

# How long crawls keep away from a host that a question wants; it asks again sooner than that.
_WANTED_S: Final = 2.0
_LEAST_WAIT_S: Final = 0.05
_MOST_WAIT_S: Final = 1.0
_ASKING_S: Final = 15.0
# Longer than any turn, any pause and any robots.txt is good for.
_STALE_S: Final = 86_400
_FORGETS_EVERY_S: Final = 3_600

_KEPT: Final = "(case when r.failure is null then %s else %s end) * interval '1 s'"

_BEGIN: Final = """
with quickly as (select set_config('synchronous_commit', 'off', true)),
  mine as (select jsonb_build_object(%(token)s::text, clock_timestamp()
                                     + %(lease_s)s * interval '1 s') as held from quickly)
insert into {host_turns} as h (host, next_at, holders)
select %(host)s, clock_timestamp() + %(delay_s)s * interval '1 s', held from mine
on conflict (host) do update set
  next_at = excluded.next_at,
  holders = excluded.holders || coalesce(
    (select jsonb_object_agg(key, value) from jsonb_each_text(h.holders)
     where value::timestamptz > clock_timestamp()), '{{}}'),
  wanted_until = case when %(is_patient)s then h.wanted_until end
where h.next_at <= clock_timestamp()
  and (select count(*) from jsonb_each_text(h.holders)
       where value::timestamptz > clock_timestamp()) < %(concurrency)s
  and (not %(is_patient)s or h.wanted_until is null or h.wanted_until < clock_timestamp())
returning true
"""

_WAIT: Final = """
update {host_turns} set wanted_until = case when %(is_patient)s then wanted_until
  else clock_timestamp() + %(wanted_s)s * interval '1 s' end
where host = %(host)s
returning extract(epoch from next_at - clock_timestamp())::float8
"""

_FORGET_HOSTS: Final = """
delete from {host_turns} where host in (
  select host from {host_turns} where next_at < clock_timestamp() - %s * interval '1 s'
  for update skip locked)
"""

_FORGET_ROBOTS: Final = """
delete from {robots_files} where origin in (
  select origin from {robots_files}
  where greatest(fetched_at, asking_until) < clock_timestamp() - %s * interval '1 s'
  for update skip locked)
"""

_MAKE_SCHEMA: Final = "create schema if not exists {schema}"
_MAKE_HOSTS: Final = (
    "create table if not exists {schema}.host_turns (like {host_turns} including all)"
)

# Whether the user may use the table of all collections; no row where there is none.
_MAY_USE: Final = """
select bool_and(has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, wanted))
from pg_class c join pg_namespace n on n.oid = c.relnamespace,
  unnest(array['select', 'insert', 'update', 'delete']) wanted
where n.nspname = %s and c.relname = 'host_turns' group by c.oid
"""


class HostTurns:
    """Turns at hosts, pauses that hosts ask for and their robots.txt, in the database.

    Turns and pauses hold for all collections where the user may have a table beside them; else, and
    for robots.txt always, for one collection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._forgets_at = 0.0
        self._turns: sql.Identifier | None = None

    async def take(
        self, host: str, *, concurrency: int, delay_s: float, lease_s: float, is_patient: bool
    ) -> str:
        """Wait for a turn at a host, and give what `end` wants; patient callers let others go.

        At most `concurrency` turns of all processes go on at once, and begin `delay_s` apart at
        least. A turn ends after `lease_s` although nobody ended it.
        """
        token = uuid.uuid4().hex
        values = {
            "host": host,
            "token": token,
            "concurrency": concurrency,
            "delay_s": delay_s,
            "lease_s": lease_s,
            "is_patient": is_patient,
            "wanted_s": _WANTED_S,
        }

        async def work(connection: Connection) -> float | None:
            if await connection.fetch(_BEGIN, values, host_turns=turns):
                return None
            waits = await connection.fetch(_WAIT, values, host_turns=turns)
            return float(waits[0][0]) if waits else 0.0

        turns = await self._find_turns()
        await self._forget_stale()
        # Not in one transaction, nor with a lock: a turn is as long as a site is slow.
        while (wait_s := await self._database.run(work, autocommit=True)) is not None:  # noqa: ASYNC110 - others end it
            await asyncio.sleep(min(max(wait_s, _LEAST_WAIT_S), _MOST_WAIT_S))
        return token

    async def end(self, host: str, token: str) -> None:
        """End a turn."""
        await self._execute(
            "with quickly as (select set_config('synchronous_commit', 'off', true))"
            " update {host_turns} set holders = holders - %s::text from quickly where host = %s",
            (token, host),
        )

    async def hold(self, host: str, seconds: float) -> None:
        """Let nobody begin a turn at a host for a while."""
        await self._execute(
            "insert into {host_turns} as h (host, next_at)"
            " values (%s, clock_timestamp() + %s * interval '1 s')"
            " on conflict (host) do update set next_at = greatest(h.next_at, excluded.next_at)",
            (host, seconds),
        )

    async def robots(self, origin: str, ask: Callable[[], Awaitable[RobotsAnswer]]) -> RobotsAnswer:
        """Give a site's robots.txt, for which one process asks while the others wait."""
        while (known := await self._known_robots(origin)) is None:
            if not await self._may_ask(origin):
                await asyncio.sleep(_LEAST_WAIT_S)
                continue
            free = "update {robots_files} set asking_until = null where origin = %s"
            try:
                answer = await ask()
            except BaseException:
                await asyncio.shield(self._execute(free, (origin,)))
                raise
            await self._execute(
                "update {robots_files} set fetched_at = now(), body = %s, failure = %s,"
                " asking_until = null where origin = %s",
                (storable(answer.text), answer.failure, origin),
            )
            return answer
        return known

    async def _find_turns(self) -> sql.Identifier:
        if self._turns is None:
            schema = await self._database.run(self._usable_hosts)
            self._turns = sql.Identifier(schema, "host_turns")
        return self._turns

    async def _usable_hosts(self, connection: Connection) -> str:
        if await self._may_use(connection) is None:
            await connection.take_lock(HOSTS_SCHEMA, LOCK_SEED)
        if await self._may_use(connection) is None:
            try:
                async with connection.transaction():
                    for text in (_MAKE_SCHEMA, _MAKE_HOSTS):
                        await connection.change(text, schema=sql.Identifier(HOSTS_SCHEMA))
            except psycopg.errors.InsufficientPrivilege:
                return connection.collection
        return HOSTS_SCHEMA if await self._may_use(connection) else connection.collection

    async def _may_use(self, connection: Connection) -> bool | None:
        rows = await connection.fetch(_MAY_USE, (HOSTS_SCHEMA,))
        return bool(rows[0][0]) if rows else None

    async def _forget_stale(self) -> None:
        now = time.monotonic()
        if now < self._forgets_at:
            return
        self._forgets_at = now + _FORGETS_EVERY_S
        for statement in (_FORGET_HOSTS, _FORGET_ROBOTS):
            await self._execute(statement, (_STALE_S,))

    async def _known_robots(self, origin: str) -> RobotsAnswer | None:
        statement = (
            "select body, failure from {robots_files} r where origin = %s and fetched_at > now() - "
            + _KEPT
        )
        rows = await self._database.fetch(statement, (origin, KEPT_S, FAILURE_KEPT_S))
        return RobotsAnswer(rows[0][0] or "", rows[0][1]) if rows else None

    async def _may_ask(self, origin: str) -> bool:
        return await self._execute(
            "insert into {robots_files} as r (origin, asking_until)"
            " values (%s, now() + %s * interval '1 s')"
            " on conflict (origin) do update set asking_until = excluded.asking_until"
            " where (r.asking_until is null or r.asking_until < now())"
            # Another one may have got it since this one looked.
            " and (r.fetched_at is null or r.fetched_at <= now() - " + _KEPT + ")",
            (origin, _ASKING_S, KEPT_S, FAILURE_KEPT_S),
        )

    async def _execute(self, statement: str, values: tuple[Any, ...]) -> bool:
        turns = await self._find_turns()
        changed = await self._database.run(
            lambda connection: connection.change(statement, values, host_turns=turns),
            autocommit=True,
        )
        return changed > 0
