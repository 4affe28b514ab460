"""Empty collections that outlive their test and serve later ones under another name.

To make the thirty tables of one takes Postgres longer than most tests do; to rename their schema
takes it a millisecond. Each was made by the product, and one whose tables a test has changed in
any way but by rows is dropped.
"""

import uuid
from collections import defaultdict
from typing import Any, LiteralString

from psycopg import sql

from webrag.app import WebRAG
from webrag.corpus import schema
from webrag.postgres.database import Connection, Database

# All that tables have besides rows: names, columns, defaults, rights, options, indexes,
# constraints, statistics.
_SHAPE: LiteralString = """
select md5(string_agg(one::text, '' order by one::text)) from (
    select (c.relname, c.relkind, c.relowner, c.relacl, c.reloptions, c.relhastriggers,
            n.nspowner, n.nspacl, i.indisvalid, i.indisunique,
            case c.relkind when 'r' then c.reltuples end,
            case c.relkind when 'i' then replace(pg_get_indexdef(c.oid), n.nspname, '') end,
            array(select replace(pg_get_expr(d.adbin, d.adrelid), n.nspname, '')
                  from pg_attrdef d where d.adrelid = c.oid order by d.adnum),
            array(select (a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attstorage,
                          a.attacl, a.attisdropped)::text
                  from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 order by a.attnum),
            array(select (k.conname, k.convalidated,
                          replace(pg_get_constraintdef(k.oid), n.nspname, ''))::text
                  from pg_constraint k where k.conrelid = c.oid order by k.conname)) as one
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join pg_index i on i.indexrelid = c.oid
    where n.nspname = %s
    union all
    select (nspname, 0) from pg_namespace where nspname = %s
) as known
"""
_FILLED: LiteralString = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %s and c.relkind = 'r' and pg_relation_size(c.oid) > 0
"""

_BEGIN_SEQUENCES: LiteralString = """
select setval(format('%%I.%%I', schemaname, sequencename)::regclass, start_value, false)
from pg_sequences where schemaname = %s and last_value is not null
"""

_create_tables = schema.create_tables
_Kind = tuple[Any, ...]


class KeptCollections:
    """Collections that no test has at the moment, by server, user and dimensions."""

    def __init__(self) -> None:
        self._waiting: defaultdict[_Kind, list[str]] = defaultdict(list)
        self._shapes: dict[_Kind, str] = {}
        self._kinds: dict[str, _Kind] = {}

    async def create(self, connection: Connection, embedding: tuple[str, int]) -> None:
        """Stands for the product's `create_tables`, which makes what is not there to be had."""
        name, kind = connection.collection, _kind(connection, embedding[1])
        known = await connection.fetch("select 1 from pg_namespace where nspname = %s", (name,))
        if known or not self._waiting[kind]:
            await _create_tables(connection, embedding)
            if kind not in self._shapes:
                self._shapes[kind] = await _shape(connection, name)
        else:
            await _rename(connection, self._waiting[kind].pop(), name)
            await schema.record_meta(connection, embedding)
        self._kinds[name] = kind

    async def take_back_from(self, rag: WebRAG) -> None:
        """As `take_back`, of a WebRAG that is closed with it."""
        await rag.open()
        await self.take_back(rag._open_parts.database)
        await rag.close()

    async def take_back(self, database: Database) -> None:
        """Empty the collection of a test for another, or drop it."""
        kind = self._kinds.pop(database.config.collection, None)
        kept = f"kept_{uuid.uuid4().hex[:16]}"

        async def empty(connection: Connection) -> bool:
            name = connection.collection
            await schema.lock_tables(connection, name)
            if kind is None or await _shape(connection, name) != self._shapes[kind]:
                return False
            filled = [
                sql.Identifier(name, row[0]) for row in await connection.fetch(_FILLED, (name,))
            ]
            if filled:
                tables = sql.SQL(", ").join(filled)
                await connection.execute(
                    sql.SQL("truncate {} restart identity cascade").format(tables)
                )
            await connection.execute(_BEGIN_SEQUENCES, (name,))
            await _rename(connection, name, kept)
            return True

        if kind is not None and await database.run(empty):
            self._waiting[kind].append(kept)
        else:
            await schema.drop_collection(database)


def _kind(connection: Connection, dimensions: int) -> _Kind:
    info = connection.info
    return info.host, info.port, info.dbname, info.user, dimensions


async def _shape(connection: Connection, name: str) -> str:
    rows = await connection.fetch(_SHAPE, (name, schema.queue_schema(name)))
    return str(rows[0][0])


async def _rename(connection: Connection, old: str, new: str) -> None:
    statement = sql.SQL("alter schema {} rename to {}")
    await connection.execute(statement.format(sql.Identifier(old), sql.Identifier(new)))
