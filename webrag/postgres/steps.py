"""Database work written once, for synchronous and asynchronous connections alike.

A piece of work is a generator: it yields statements, gets their rows back and returns a result.
It knows neither kind of connection; the two functions here run it on one.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, sql

__all__ = [
    "Begin",
    "Copy",
    "Execute",
    "Rows",
    "Steps",
    "alone",
    "begin_snapshot",
    "run_steps",
    "run_steps_sync",
]

T = TypeVar("T")

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Execute:
    """A statement; its rows, if it has any, are sent back."""

    statement: sql.Composed | sql.SQL
    values: Sequence[Any] | Mapping[str, Any] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """Rows to load in binary form; an empty list is sent back.

    Attributes:
        columns: Column names and their types, in the order of a row's values.
    """

    table: sql.Composed
    columns: Mapping[str, str]
    rows: Iterable[Sequence[Any]]

    @property
    def statement(self) -> sql.Composed:
        """The COPY command."""
        names = sql.SQL(", ").join(map(sql.Identifier, self.columns))
        return sql.SQL("copy {} ({}) from stdin (format binary)").format(self.table, names)


@dataclass(frozen=True, slots=True)
class Begin:
    """Begins a transaction on a connection that is in none; an empty list is sent back.

    Attributes:
        statements: Without values, sent in one round trip.
    """

    statements: sql.Composed


Steps = Generator[Begin | Copy | Execute, Rows, T]


def begin_snapshot(settings: Mapping[str, str | int] | None = None) -> Begin:
    """Let all following statements see one state of the database and write nothing.

    Args:
        settings: Server settings for this transaction alone, by name.
    """
    begin = sql.SQL("begin isolation level repeatable read read only")
    local = [
        sql.SQL("set local {} = {}").format(sql.Identifier(*name.split(".")), sql.Literal(value))
        for name, value in (settings or {}).items()
    ]
    return Begin(sql.SQL("; ").join([begin, *local]))


def alone(step: Execute) -> Steps[Rows]:
    """The work of one statement: its rows."""
    return (yield step)


async def run_steps(connection: AsyncConnection[Any], steps: Steps[T]) -> T:
    """Do the work on an asynchronous connection, within its current transaction."""
    async with connection.cursor() as cursor:
        try:
            step = next(steps)
            while True:
                step = steps.send(await _perform(cursor, step))
        except StopIteration as stop:
            result: T = stop.value
            return result


def run_steps_sync(connection: Connection[Any], steps: Steps[T]) -> T:
    """Do the work on a synchronous connection, within its current transaction."""
    with connection.cursor() as cursor:
        try:
            step = next(steps)
            while True:
                step = steps.send(_perform_sync(cursor, step))
        except StopIteration as stop:
            result: T = stop.value
            return result


async def _perform(cursor: AsyncCursor[Any], step: Begin | Copy | Execute) -> Rows:
    if isinstance(step, Begin):
        await cursor.execute(step.statements, prepare=False)
        return []
    if isinstance(step, Execute):
        await cursor.execute(step.statement, step.values)
        return await cursor.fetchall() if cursor.description else []
    async with cursor.copy(step.statement) as copy:
        copy.set_types(list(step.columns.values()))
        for block in _blocks(copy.formatter, step.rows):
            await copy.write(block)
    return []


def _perform_sync(cursor: Cursor[Any], step: Begin | Copy | Execute) -> Rows:
    if isinstance(step, Begin):
        cursor.execute(step.statements, prepare=False)
        return []
    if isinstance(step, Execute):
        cursor.execute(step.statement, step.values)
        return cursor.fetchall() if cursor.description else []
    with cursor.copy(step.statement) as copy:
        copy.set_types(list(step.columns.values()))
        for row in step.rows:
            copy.write_row(row)
    return []


def _blocks(formatter: Any, rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Rows in the driver's form, whenever it has gathered enough of them."""
    for row in rows:
        if block := formatter.write_row(row):
            yield block
