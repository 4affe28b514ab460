"""Database work written once, for synchronous and asynchronous connections alike.

A piece of work is a generator: it yields statements, gets their rows back and returns a result.
It knows neither kind of connection; the two functions here run it on one.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, sql

from webrag.concurrency import in_background

T = TypeVar("T")

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Execute:
    """A statement; its rows, if it has any, are sent back.

    Attributes:
        binary: The rows travel in binary form, which is faster for numbers and bytes.
    """

    statement: bytes | sql.Composed | sql.SQL
    values: Sequence[Any] | Mapping[str, Any] = ()
    binary: bool = False


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


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that travel in one round trip; their rows are sent back as `together` reads them.

    None may need what another one returns.
    """

    statements: Sequence[Execute]


@dataclass(frozen=True, slots=True)
class Compute:
    """Work of the processor between statements; its result is sent back as `computed` reads it.

    On an asynchronous connection it is done beside the event loop. The transaction waits for it
    with all that it has locked.
    """

    work: Callable[[], Any]


Step = Begin | Compute | Copy | Execute | Together

Steps = Generator[Step, Rows, T]


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


def together(*statements: Execute) -> Steps[list[Rows]]:
    """The work of several statements in one round trip: the rows of each."""
    answers = yield Together(statements)
    return [rows for (rows,) in answers]


def computed(work: Callable[[], T]) -> Steps[T]:
    """The result of a slow function, computed beside the event loop."""
    ((result,),) = yield Compute(work)
    return cast("T", result)


async def run_steps(connection: AsyncConnection[Any], steps: Steps[T]) -> T:
    """Do the work on an asynchronous connection, within its current transaction."""
    async with connection.cursor() as cursor:
        try:
            step = next(steps)
            while True:
                step = steps.send(await _perform(connection, cursor, step))
        except StopIteration as stop:
            result: T = stop.value
            return result


def run_steps_sync(connection: Connection[Any], steps: Steps[T]) -> T:
    """Do the work on a synchronous connection, within its current transaction."""
    with connection.cursor() as cursor:
        try:
            step = next(steps)
            while True:
                step = steps.send(_perform_sync(connection, cursor, step))
        except StopIteration as stop:
            result: T = stop.value
            return result


async def _perform(connection: AsyncConnection[Any], cursor: AsyncCursor[Any], step: Step) -> Rows:
    if isinstance(step, Begin):
        await cursor.execute(step.statements, prepare=False)
        return []
    if isinstance(step, Execute):
        await cursor.execute(step.statement, step.values, binary=step.binary)
        return await cursor.fetchall() if cursor.description else []
    if isinstance(step, Together):
        async with connection.pipeline():
            sent = [
                await connection.execute(each.statement, each.values, binary=each.binary)
                for each in step.statements
            ]
        return [(await each.fetchall() if each.description else [],) for each in sent]
    if isinstance(step, Compute):
        return [(await in_background(step.work),)]
    async with cursor.copy(step.statement) as copy:
        copy.set_types(list(step.columns.values()))
        for block in _blocks(copy.formatter, step.rows):
            await copy.write(block)
    return []


def _perform_sync(connection: Connection[Any], cursor: Cursor[Any], step: Step) -> Rows:
    if isinstance(step, Begin):
        cursor.execute(step.statements, prepare=False)
        return []
    if isinstance(step, Execute):
        cursor.execute(step.statement, step.values, binary=step.binary)
        return cursor.fetchall() if cursor.description else []
    if isinstance(step, Together):
        with connection.pipeline():
            sent = [
                connection.execute(each.statement, each.values, binary=each.binary)
                for each in step.statements
            ]
        return [(each.fetchall() if each.description else [],) for each in sent]
    if isinstance(step, Compute):
        return [(step.work(),)]
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
