"""Examines a collection without changing it: server, tables, indexes, rows, offsets."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from psycopg import sql

from webrag.corpus.maintenance.reembedding import unfinished_model
from webrag.corpus.rows import indexed_text
from webrag.corpus.schema import CorpusMeta, read_meta, table_names
from webrag.corpus.tables import SCHEMA_VERSION, TABLES, VECTOR_INDEX, index_statements
from webrag.errors import ConfigurationError, StorageError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import content_hash
from webrag.lexical.postings import pack_texts
from webrag.postgres.database import Connection, Database

_PAGES_AT_ONCE = 16
_IDS = "select id from {documents} order by random() limit %s"
_DOCUMENTS = "select id, url, markdown, content_hash from {documents} where id = any(%s)"
_PARENTS = "select document, char_start, char_end, text from {parents} where document = any(%s)"

_CHILDREN = """
select document, char_start, char_end, text, ordinal, node_id, metadata_
from {data_children} where document = any(%s) order by document, ordinal
"""

_POSTINGS = "select document, term, segment, packed from {postings} where document = any(%s)"


async def _page_checks(
    connection: Connection, sample: int | None, on_progress: Callable[[int, int], None] | None
) -> "list[Check]":
    """Verify pages taken at random, or all; memory does not grow with their number."""
    read = connection.fetch
    ids = [page_id for (page_id,) in await read(_IDS, (sample,))]
    ((total,),) = await read("select count(*) from {documents}")
    faults: dict[str, list[str]] = {"offsets": [], "texts": [], "words": []}
    dated: list[str] = []
    done = 0
    for start in range(0, len(ids), _PAGES_AT_ONCE):
        batch = ids[start : start + _PAGES_AT_ONCE]
        parents, children = await read(_PARENTS, (batch,)), await read(_CHILDREN, (batch,))
        postings = await read(_POSTINGS, (batch,))
        for page_id, url, markdown, recorded in await read(_DOCUMENTS, (batch,)):
            own = [row for row in children if row[0] == page_id]
            chunks = [row for row in parents if row[0] == page_id] + own
            if any(markdown[row[1] : row[2]] != row[3] for row in chunks):
                faults["offsets"].append(url)
            if content_hash(markdown) != recorded:
                faults["texts"].append(url)
            stored = {row[1:3]: bytes(row[3]) for row in postings if row[0] == page_id}
            if (terms := _terms(own)) != stored:
                alike = len(terms.items() & stored.items())
                is_dated = alike >= _DATED_SHARE * max(len(terms), len(stored))
                (dated if is_dated else faults["words"]).append(url)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(ids))
    found = []
    for name, urls in faults.items():
        shown = ", ".join(urls[:3] + ["..."] * (len(urls) > 3))
        some = f" ({shown})" if urls else ""
        scope = f"{done:,} of {total:,} pages verified, {len(urls):,} with faults{some}."
        found.append(_judged(name, scope, urls))
    if dated:
        shown = f"A few words of {len(dated):,} pages, such as {dated[0]}, are not stored as this"
        shown += " WebRAG tells them: an earlier one wrote them, or they are damaged."
        found.append(_check("warn", "dated words", shown, _FETCH_AGAIN))
    return found


def _terms(children: Sequence[tuple[Any, ...]]) -> dict[tuple[str, int], bytes]:
    """Packed postings that the chunks of a page ought to have, by term and segment."""
    texts = [""] * (children[-1][4] + 1 if children else 0)
    for _, _, _, text, ordinal, node_id, metadata in children:
        texts[ordinal] = indexed_text(node_id, text, metadata)
    return {(row.term, row.segment): row.packed for row in pack_texts(texts)[0]}


_Level = Literal["ok", "warn", "fail"]
_REINDEX = "Run `webrag reindex --force`."
_FETCH_AGAIN = "Run `webrag forget` and `webrag ingest` with such URLs to have them told anew."
# Of a page's words; chosen. Rules that changed tell few of them otherwise.
_DATED_SHARE = 0.8
_REFRESH = "Run `webrag ingest --refresh` with the URLs named."


class Check(FrozenModel):
    """A finding: `ok`, `warn` (works, but somebody should know) or `fail` (wrong or slow)."""

    name: str
    level: _Level
    found: str
    remedy: str | None = None


class CorpusCheck(FrozenModel):
    """Everything that was examined, in order."""

    checks: tuple[Check, ...]

    @property
    def is_sound(self) -> bool:
        """Nothing failed."""
        return all(check.level != "fail" for check in self.checks)


def _check(level: _Level, name: str, found: str, remedy: str | None = None) -> Check:
    return Check(name=name, level=level, found=found, remedy=remedy)


_LOADING = _check(
    "warn",
    "indexes",
    "A large load is under way or was interrupted: there is no vector index yet, and searches"
    " compare with every chunk.",
    "None needed: the load, or the next command that opens the collection, builds it.",
)


def _schema_check(meta: CorpusMeta) -> Check:
    model, dimensions = meta.embedding
    found = f"Schema version {meta.version}; vectors of {model} ({dimensions})."
    if not meta.is_current:
        remedy = f"None needed: the next command that uses it makes version {SCHEMA_VERSION} whole."
        return _check("warn", "schema", found, remedy)
    return _check("ok", "schema", found)


async def _row_checks(connection: Connection, embedding: tuple[str, int]) -> list[Check]:
    (row,) = await connection.fetch_as(dict, _ROWS)
    counted = "{documents:,} pages, {parents:,} sections, {children:,} passages.".format(**row)
    embedded = f"{row['children'] - row['unembedded']:,} of {row['children']:,} passages."
    orphans = f"{row['orphans']:,} passages without section, {row['childless']:,} sections without"
    orphans += f" passage, {row['pageless']:,} rows without page."
    return [
        _check("ok", "rows", counted),
        _judged("vectors", embedded, row["unembedded"], _REINDEX),
        _judged(
            "vector size",
            f"{row['dimensions']} dimensions; {embedding[1]} are recorded.",
            row["dimensions"] != embedding[1],
            _REINDEX,
        ),
        _judged("stray rows", orphans, row["orphans"] + row["childless"] + row["pageless"]),
        _judged("counts", f"{row['miscounted']:,} pages differ.", row["miscounted"], _REFRESH),
        _judged("word index", f"{row['wordless']:,} pages without entries.", row["wordless"]),
    ]


def _judged(name: str, found: str, is_bad: Any, remedy: str = _REFRESH) -> Check:
    return _check("fail", name, found, remedy) if is_bad else _check("ok", name, found)


def _model_check(
    embedding: tuple[str, int], wanted: tuple[str, int] | None, unfinished: tuple[str, int] | None
) -> Check:
    remedy = "Run `webrag reindex` with the model that is to be used."
    if unfinished is not None:
        found = f"A reindexing to {unfinished[0]} was interrupted, or is under way."
        return _check("warn", "model", found, remedy)
    if wanted is not None and wanted != embedding:
        found = f"The settings ask for {wanted[0]} ({wanted[1]} dimensions)."
        return _check("fail", "model", found, remedy)
    return _check("ok", "model", "The settings fit the collection.")


_VERSIONS = """
select current_setting('server_version') as postgres,
       (select extversion from pg_extension where extname = 'vector') as pgvector,
       (select default_version from pg_available_extensions where name = 'vector') as offered
"""

_INDEXES = """
select c.relname as name, i.indisvalid and i.indisready as valid
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
join pg_namespace n on n.oid = t.relnamespace
where n.nspname = %s and t.relname = any(%s)
"""

_ROWS = """
select (select count(*) from {documents}) as documents,
       (select count(*) from {parents}) as parents,
       (select count(*) from {data_children}) as children,
       (select count(*) from {data_children} where embedding is null) as unembedded,
       (select count(*) from {data_children} c
        where not exists (select from {parents} p where p.id = c.parent_id)) as orphans,
       (select count(*) from {parents} p
        where not exists (select from {data_children} c where c.parent_id = p.id)) as childless,
       (select count(*) from {documents} d where child_count <>
        (select count(*) from {data_children} c where c.document = d.id)) as miscounted,
       (select count(*) from {documents} d where term_count > 0
        and not exists (select from {postings} p where p.document = d.id)) as wordless,
       (select count(*) from {data_children} c
        where not exists (select from {documents} d where d.id = c.document))
       + (select count(*) from {parents} p
          where not exists (select from {documents} d where d.id = p.document))
       + (select count(*) from {postings} p
          where not exists (select from {documents} d where d.id = p.document))
       + (select count(*) from {link_candidates} l
          where not exists (select from {documents} d where d.id = l.source_document)) as pageless,
       (select atttypmod from pg_attribute
        where attrelid = '{data_children}'::regclass and attname = 'embedding') as dimensions
"""


async def check_corpus(
    database: Database,
    *,
    wanted: tuple[str, int] | None = None,
    sample: int | None = 100,
    on_progress: Callable[[int, int], None] | None = None,
) -> CorpusCheck:
    """Examine the collection; what stands in the way of the examination is a finding too.

    The model that the settings ask for is `wanted`, None when they leave it to the corpus. Of a
    `sample` of pages, None for all, every offset and posting is verified.
    """
    collection = database.config.collection

    async def examine(connection: Connection) -> list[Check]:
        await connection.lift_timeouts()
        meta = await read_meta(connection)
        found = [await _server(connection, database)]
        if meta is None:
            absent = f"The collection {collection} does not exist yet."
            remedy = "Run `webrag ingest URL`, or name another with --collection."
            return [*found, _check("warn", "collection", absent, remedy)]
        found.append(_schema_check(meta))
        missing = sorted(set(TABLES) - await table_names(connection, collection))
        if missing:
            remedy = "Restore a backup, or `webrag corpus drop` it and fetch its pages again."
            return [*found, _check("fail", "tables", f"Missing: {', '.join(missing)}.", remedy)]
        found += await _indexes(connection, meta)
        found += await _row_checks(connection, meta.embedding)
        found += await _page_checks(connection, sample, on_progress)
        unfinished = await unfinished_model(connection)
        return [*found, _model_check(meta.embedding, wanted, unfinished)]

    try:
        await database.open()
        checks = await database.run(examine, snapshot=True)
    except (ConfigurationError, StorageError) as error:
        checks = [_check("fail", "database", str(error), error.hint)]
    return CorpusCheck(checks=tuple(checks))


async def _server(connection: Connection, database: Database) -> Check:
    (row,) = await connection.fetch_as(dict, sql.SQL(_VERSIONS))
    found = f"{database.description}, pgvector {row['pgvector']}."
    if row["offered"] is not None and row["offered"] != row["pgvector"]:
        remedy = f"Run `alter extension vector update` for version {row['offered']}."
        return _check("warn", "server", found, remedy)
    return _check("ok", "server", found)


async def _indexes(connection: Connection, meta: CorpusMeta) -> list[Check]:
    valid: dict[str, bool] = dict(
        await connection.fetch(_INDEXES, (connection.collection, list(TABLES)))
    )
    expected = index_statements(connection.collection, meta.embedding[1], meta.version)
    faults = [
        (f"{name} is missing", " ".join(statement.as_string(connection).split()))
        for name, statement in expected.items()
        if name not in valid and not (meta.is_loading and name == VECTOR_INDEX)
    ]
    faults += [
        (f"{name} is not valid", f'reindex index "{connection.collection}"."{name}"')
        for name, is_valid in valid.items()
        if not is_valid
    ]
    checks = [
        _check("fail", "indexes", f"The index {fault}.", f"Run in the database: {statement}")
        for fault, statement in faults
    ]
    if meta.is_loading:
        checks.append(_LOADING)
    return checks or [_check("ok", "indexes", f"All {len(valid)} exist and are valid.")]
