"""A connection to a collection: its statements and loads."""

from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from typing import Any, TypeVar

from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow, class_row

from webrag.postgres.config import check_collection_name

T = TypeVar("T")

Rows = list[tuple[Any, ...]]

Query = str | bytes | sql.SQL | sql.Composed

Values = Sequence[Any] | Mapping[str, Any]


def table(collection: str, name: str) -> sql.Composed:
    """The quoted `schema.table` of a collection's table."""
    return sql.SQL("{}").format(sql.Identifier(check_collection_name(collection), name))


def compose(collection: str, text: str, /, **parts: sql.Composable) -> sql.Composed:
    """Put parts, and the collection's tables for all other names, into a statement's braces."""
    named = {name for _, name, _, _ in Formatter().parse(text) if name}
    tables = {name: table(collection, name) for name in named - parts.keys()}
    return sql.SQL(text).format(**tables, **parts)


class Connection(AsyncConnection[TupleRow]):
    """A connection to a collection, whose tables the statements below have in braces."""

    collection: str

    async def fetch(
        self, text: Query, values: Values = (), /, *, binary: bool = False, **parts: sql.Composable
    ) -> Rows:
        """Run a statement in the current transaction and give its rows, none where it has none.

        In `binary` form numbers and bytes travel faster. The `parts` are as for `compose`.
        """
        cursor = await self.execute(self._composed(text, parts), values, binary=binary)
        return await cursor.fetchall() if cursor.description else []

    async def fetch_as(
        self, kind: type[T], text: Query, values: Values = (), /, **parts: sql.Composable
    ) -> list[T]:
        """As `fetch`, with rows as objects whose fields are the columns."""
        async with self.cursor(row_factory=class_row(kind)) as cursor:
            await cursor.execute(self._composed(text, parts), values)
            return await cursor.fetchall()

    async def change(self, text: Query, values: Values = (), /, **parts: sql.Composable) -> int:
        """Run a statement in the current transaction and give the number of rows it changed."""
        return (await self.execute(self._composed(text, parts), values)).rowcount

    async def copy_rows(
        self, name: str, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Load rows, read while they are sent, in the order of the columns and their types."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        statement = sql.SQL("copy {} ({}) from stdin (format binary)")
        target = table(self.collection, name)
        async with self.cursor() as cursor, cursor.copy(statement.format(target, names)) as copy:
            copy.set_types(list(columns.values()))
            for row in rows:
                # The driver gives what it has gathered whenever that is enough.
                if block := copy.formatter.write_row(row):
                    await copy.write(block)

    async def begin_snapshot(self, settings: Mapping[str, str | int] | None = None) -> None:
        """Begin a transaction on one state of the database that writes nothing."""
        begin = sql.SQL("begin isolation level repeatable read read only")
        local = [
            sql.SQL("set local {} = {}").format(
                sql.Identifier(*name.split(".")), sql.Literal(value)
            )
            for name, value in (settings or {}).items()
        ]
        await self.execute(sql.SQL("; ").join([begin, *local]), prepare=False)

    async def lift_timeouts(self) -> None:
        """Let the rest of this transaction take as long as the corpus is large."""
        await self.set_locally(statement_timeout="0", lock_timeout="0")

    async def try_lock(self, name: str, seed: int) -> bool:
        """Take an advisory lock until the transaction ends, unless somebody else has it."""
        statement = "select pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
        return bool((await self.fetch(statement, (name, seed)))[0][0])

    async def set_locally(self, **settings: str) -> None:
        """Change settings of the server until the transaction ends."""
        await self.execute(
            "select set_config(name, value, true)"
            " from unnest(%s::text[], %s::text[]) as wanted (name, value)",
            (list(settings), list(settings.values())),
        )

    def _composed(self, text: Query, parts: Mapping[str, sql.Composable]) -> Any:
        return compose(self.collection, text, **parts) if isinstance(text, str) else text
