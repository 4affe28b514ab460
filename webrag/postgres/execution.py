"""Statements on a connection: one, several in one round trip, and many rows loaded at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, TypeVar

from psycopg import AsyncConnection, sql
from psycopg.rows import class_row

T = TypeVar("T")

Rows = list[tuple[Any, ...]]

Query = LiteralString | bytes | sql.SQL | sql.Composed

Values = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and its values, to be run alone or together with others.

    Attributes:
        binary: The rows travel in binary form, which is faster for numbers and bytes.
    """

    text: bytes | sql.Composed | sql.SQL
    values: Values = ()
    binary: bool = False

    async def fetch(self, connection: AsyncConnection[Any]) -> Rows:
        """Run the statement alone and give its rows, none where it has none."""
        return await fetch(connection, self.text, self.values, binary=self.binary)


async def fetch(
    connection: AsyncConnection[Any],
    text: Query,
    values: Values = (),
    *,
    binary: bool = False,
) -> Rows:
    """Run a statement and give its rows, none where it has none.

    Args:
        connection: Within its current transaction.
        text: With placeholders.
        values: Of the placeholders.
        binary: The rows travel in binary form.
    """
    cursor = await connection.execute(text, values, binary=binary)
    return await cursor.fetchall() if cursor.description else []


async def fetch_as(
    connection: AsyncConnection[Any], kind: type[T], text: Query, values: Values = ()
) -> list[T]:
    """Run a statement and give its rows as objects whose fields are its columns."""
    async with connection.cursor(row_factory=class_row(kind)) as cursor:
        await cursor.execute(text, values)
        return await cursor.fetchall()


async def fetch_together(connection: AsyncConnection[Any], *statements: Statement) -> list[Rows]:
    """Run statements in one round trip and give the rows of each.

    None may need what another one returns.
    """
    async with connection.pipeline():
        sent = [
            await connection.execute(each.text, each.values, binary=each.binary)
            for each in statements
        ]
    return [await each.fetchall() if each.description else [] for each in sent]


async def copy_rows(
    connection: AsyncConnection[Any],
    table: sql.Composed,
    columns: Mapping[str, str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Load rows in binary form.

    Args:
        connection: Within its current transaction.
        table: Where the rows go.
        columns: Column names and their types, in the order of a row's values.
        rows: Read while they are sent.
    """
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(table, names)
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(list(columns.values()))
        for block in _blocks(copy.formatter, rows):
            await copy.write(block)


def _blocks(formatter: Any, rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Give rows in the driver's form, whenever it has gathered enough of them."""
    for row in rows:
        if block := formatter.write_row(row):
            yield block


async def begin_snapshot(
    connection: AsyncConnection[Any], settings: Mapping[str, str | int] | None = None
) -> None:
    """Let all following statements see one state of the database and write nothing.

    Args:
        connection: In autocommit mode and in no transaction.
        settings: Server settings for this transaction alone, by name.
    """
    begin = sql.SQL("begin isolation level repeatable read read only")
    local = [
        sql.SQL("set local {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value))
        for name, value in (settings or {}).items()
    ]
    await connection.execute(sql.SQL("; ").join([begin, *local]), prepare=False)
