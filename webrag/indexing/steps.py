"""Database work written once, for synchronous and asynchronous connections alike.

A piece of work is a generator: it yields statements, gets their rows back and returns a result.
It knows neither kind of connection; the two functions here run it on one.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, sql

__all__ = ["Copy", "Execute", "Rows", "Steps", "run_steps", "run_steps_sync"]

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


Steps = Generator[Execute | Copy, Rows, T]


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


async def _perform(cursor: AsyncCursor[Any], step: Execute | Copy) -> Rows:
    if isinstance(step, Execute):
        await cursor.execute(step.statement, step.values)
        return await cursor.fetchall() if cursor.description else []
    async with cursor.copy(step.statement) as copy:
        copy.set_types(list(step.columns.values()))
        for row in step.rows:
            await copy.write_row(row)
    return []


def _perform_sync(cursor: Cursor[Any], step: Execute | Copy) -> Rows:
    if isinstance(step, Execute):
        cursor.execute(step.statement, step.values)
        return cursor.fetchall() if cursor.description else []
    with cursor.copy(step.statement) as copy:
        copy.set_types(list(step.columns.values()))
        for row in step.rows:
            copy.write_row(row)
    return []
