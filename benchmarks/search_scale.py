"""Search over made-up text at scale: exactness, time, disk and cost of writing.

Usage: python benchmarks/search_scale.py [--sizes 20000 200000 1000000] [--live 100000] [--keep]

Chunks have 60 to 160 terms, 20 chunks a page: one half drawn from 200,000 terms by Zipf's law, the
other from 150 of them that are the page's subject, which makes about 85 different terms a chunk and
850 a page. Questions are 3 to 8 different terms of one chunk.

Pages are packed, loaded, searched and scored by the product's own functions, 96 pages a
transaction. Those beyond the first `--live` chunks are copied inside Postgres, every term exchanged
for one about as common, and the indexes are built at the end. The reference is BM25 computed by its
definition from the terms themselves, which never were in the database. Sizes up to `--references`
also compare what one would write instead: tsvector with GIN and ts_rank, and a row per posting
summed in SQL. All take turns, question by question.

Chunks have vectors of 256 dimensions around one of 2,000 centres, four in a parent; questions are
near one of them. The whole plan of a search (both legs, fusion, parents; no embedding, no
reranking) takes turns with its own statements sent alone, with the words alone, read and scored,
and with the vectors alone. Three rounds over all questions; of each question the least counts, as
other work on the machine only ever adds.

With `--whole` nothing is made: whole searches of the collection that the settings name, up to the
result with its quotations, take turns with all of their statements sent alone, for questions of
`questions/documentation.jsonl` without and with three wordings. Times are of the clock, and of this
process's own work.

Each size has a collection of its own (`scale_N`), which is dropped at the end, or used again by the
next run with `--keep`. A million chunks take 12 GB, and twenty minutes to make.
"""

import argparse
import asyncio
import json
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg import AsyncCursor, sql
from psycopg.pq import Format

from webrag.app import WebRAG
from webrag.concurrency import run_blocking
from webrag.corpus.schema import list_collections
from webrag.corpus.tables import index_statements
from webrag.corpus.writer import copy_postings, forget_page
from webrag.lexical.bm25 import CorpusTotals, WordScores, score_words
from webrag.lexical.postings import pack_postings, unpack_rows
from webrag.postgres.database import Connection, Database, table
from webrag.retrieval.chunk_search import Found, SearchText, search_chunks, totals_of
from webrag.retrieval.models import RetrievalConfig
from webrag.retrieval.statements import Queries, Statement, fetch_together
from webrag.settings import load_settings

T = TypeVar("T")


PAGE, BATCH, VOCABULARY, SUBJECT = 20, 96, 200_000, 150
SHORTEST, LONGEST = 60, 160
DOCUMENTS = """
insert into {documents} (id, document_id, url, requested_url, site, fetched_at, depth, markdown,
    html, content_hash, status, source, token_count, child_count, term_count)
overriding system value
select id, gen_random_uuid(), 'https://made-up.test/' || id, '', 'made-up.test', now(), 0, '',
       '', id, 200, 'builtin', terms, %s, terms
from unnest(%s::int[], %s::int[]) pages(id, terms)
"""
COPIES = (
    """
insert into {documents} (id, document_id, url, requested_url, site, fetched_at, depth, markdown,
    html, content_hash, status, source, token_count, child_count, term_count)
overriding system value
select id + %(shift)s, gen_random_uuid(), url || '/' || %(copy)s, '', site, now(), 0, '', '',
       id + %(shift)s, 200, 'builtin', token_count, child_count, term_count
from {documents} where id between %(first)s and %(last)s
""",
    """
insert into {postings}
select 'w' || lpad((substr(term, 2)::int # %(copy)s)::text, 6, '0'), document + %(shift)s,
       segment, packed
from {postings} where document between %(first)s and %(last)s
""",
)
CHILDREN = (
    """
create temp table noise as
select n, array_agg(random_normal() * 0.02)::halfvec(256) as v
from generate_series(0, 767) n cross join generate_series(1, 256) group by n
""",
    """
create temp table centres as
select n, array_agg(random_normal() * 0.06)::halfvec(256) as v
from generate_series(0, 1999) n cross join generate_series(1, 256) group by n
""",
    """
insert into {parents}
select md5('p' || d.id || '/' || k)::uuid, d.id, k, 'Heading', array['Heading'],
       repeat(md5(d.id::text), 90), null, 0, 3000, k * 800, k * 800 + 800,
       false, false, false, false, false, false, '[]'
from {documents} d cross join generate_series(0, 4) k
""",
    """
insert into {data_children} (text, metadata_, node_id, embedding, document, parent_id, ordinal,
    char_start, char_end, text_hash)
select repeat(md5(d.id::text), 25), '{{"heading_path": ["Heading"]}}', d.id || '/' || k,
       c.v + a.v + b.v, d.id, md5('p' || d.id || '/' || k / 4)::uuid, k, k * 800, k * 800 + 800,
       decode(md5(d.id || '/' || k), 'hex')
from {documents} d cross join generate_series(0, 19) k
join centres c on c.n = (d.id * 7919) % 2000
join noise a on a.n = hashint4(d.id * 20 + k) & 511
join noise b on b.n = 512 + (hashint4(d.id * 31 + k) & 255)
""",
    "drop table noise, centres",
)
ROWS_QUERY = """
with counted as (
    select term, ln(1 + (%(n)s - count(*) + 0.5) / (count(*) + 0.5)) as idf
    from {rows} where term = any(%(terms)s) group by term
)
select child, sum(idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / %(average)s))) as score
from {rows} join counted using (term) where term = any(%(terms)s)
group by child order by score desc limit 60
"""
RANK_QUERY = """
select child from {texts}, to_tsquery('simple', %(query)s) query
where words @@ query order by ts_rank(words, query) desc limit 60
"""


def row(name: str, values: Sequence[float]) -> None:
    median, slow = np.percentile(values, [50, 95])
    print(f"  {name:<30}{median:8.1f}{slow:8.1f}", flush=True)


class Corpus:
    """Terms of chunks as numbers, one row a chunk, filled up with -1."""

    def __init__(self, children: int, live: int) -> None:
        random = np.random.default_rng(11)
        self.live = live = min(children, live)
        weights = 1 / (np.arange(VOCABULARY) + 2.7) ** 1.05
        edges = np.cumsum(weights / weights.sum())
        self.lengths = random.integers(SHORTEST, LONGEST + 1, children)
        self.terms = np.empty((children, LONGEST), np.int32)
        for start in range(0, live, 10_000):
            part = self.terms[start : min(start + 10_000, live)]
            pages = np.arange(len(part)) // PAGE
            subjects = _draw(random, edges, (pages[-1] + 1, SUBJECT))
            places = random.integers(0, SUBJECT, part.shape)
            is_general = random.random(part.shape) < 0.5
            general = _draw(random, edges, part.shape)
            part[:] = np.where(is_general, general, subjects[pages[:, None], places])
        for start in range(live, children, live):
            size = min(live, children - start)
            self.terms[start : start + size] = self.terms[:size] ^ (start // live)
            self.lengths[start : start + size] = self.lengths[:size]
        self.terms[np.arange(LONGEST) >= self.lengths[:, None]] = -1
        self.alive = np.ones(children, bool)

    def page(self, number: int) -> list[list[str]]:
        rows = slice((number - 1) * PAGE, number * PAGE)
        return [
            [word(term) for term in terms[:length]]
            for terms, length in zip(
                self.terms[rows].tolist(), self.lengths[rows].tolist(), strict=True
            )
        ]

    def questions(self, count: int, seed: int) -> list[list[int]]:
        random = np.random.default_rng(seed)
        found = []
        for child in random.choice(len(self.terms), count, replace=False):
            terms = np.unique(self.terms[child, : self.lengths[child]])
            found.append(random.choice(terms, random.integers(3, 9), replace=False).tolist())
        return found

    def scores(self, question: Sequence[int]) -> np.ndarray:
        """BM25 of every chunk, by its definition."""
        lengths = self.lengths[self.alive].astype(float)
        scores = np.zeros(len(self.terms))
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        for term in question:
            places = np.flatnonzero(self.terms.ravel() == term) // LONGEST
            tf = np.bincount(places, minlength=len(self.terms))[self.alive]
            n = int((tf > 0).sum())
            idf = math.log(1 + (len(lengths) - n + 0.5) / (n + 0.5))
            scores[self.alive] += idf * tf * 2.2 / (tf + norm)
        return scores


def _draw(random: np.random.Generator, edges: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return np.searchsorted(edges, random.random(shape)).clip(max=VOCABULARY - 1)


def word(term: int) -> str:
    return f"w{term:06d}"


def recall(reference: np.ndarray, found: Sequence[int], limit: int) -> float:
    """Share of the best that was found; equal scores are equally good."""
    best = np.sort(reference[reference > 0])[::-1][:limit]
    if not len(best):
        return 1.0
    got = [reference[child] for child in found[:limit]]
    return float(sum(score >= best[-1] - 1e-6 for score in got)) / len(best)


def send(connection: psycopg.Connection[Any], batch: Sequence[Statement]) -> list[Any]:
    """The rows of statements that travel together."""
    with connection.pipeline():
        sent = [connection.execute(e.text, e.values, binary=e.binary) for e in batch]
    return [each.fetchall() if each.description else [] for each in sent]


async def recorded(work: Awaitable[object]) -> list[list[Statement]]:
    """All statements of a piece of work, in the batches they form, but for those that begin."""
    batches: list[list[Statement]] = []
    execute, pipeline = AsyncCursor.execute, None

    async def note(cursor: Any, text: Any, values: Any = None, **options: Any) -> Any:
        nonlocal pipeline
        if "begin isolation" not in repr(text):
            if pipeline is None or cursor.connection._pipeline is not pipeline:
                batches.append([])
            pipeline = cursor.connection._pipeline
            batches[-1].append(Statement(text, values, cursor.format == Format.BINARY))
        return await execute(cursor, text, values, **options)

    with patch.object(AsyncCursor, "execute", note):
        await work
    return batches


async def measure_whole(count: int) -> None:
    """Times of whole searches of a collection that is there, and of their statements alone."""
    folder = Path(__file__).parent / "questions"
    lines = (folder / "documentation.jsonl").read_text("utf-8").splitlines()[:count]
    questions = list(map(json.loads, lines))
    others = map(json.loads, (folder / "documentation_wordings.jsonl").open(encoding="utf-8"))
    wordings = {each["id"]: each["phrasings"][:3] for each in others}
    async with WebRAG() as rag, rag.components().corpus._database.connection() as pooled:
        with psycopg.connect(**place_of(pooled), autocommit=True) as connection:
            register_vector(connection)
            for name, asked in (("alone", {}), ("three wordings", wordings)):
                times = []
                for each in questions:
                    given = asked.get(each["id"], ())
                    batches = await recorded(rag.search(each["query"], wordings=given))
                    taken = []
                    for _ in range(3):
                        started, own = time.perf_counter(), time.process_time()
                        await rag.search(each["query"], wordings=given)
                        own, middle = time.process_time() - own, time.perf_counter()
                        with connection.transaction():
                            for batch in batches:
                                send(connection, batch)
                        taken.append((middle - started, time.perf_counter() - middle, own))
                    times.append(np.min(taken, axis=0) * 1000)
                print(f"  {name:<30}{'p50':>8}{'p95':>8}  ms")
                for label, column in zip(WHOLE, zip(*times, strict=True), strict=True):
                    row(label, column)


WHOLE = ("whole search", "its statements alone", "work of this process")


def place_of(connection: Connection) -> dict[str, Any]:
    """Where a connection leads, for another one."""
    names = ("host", "port", "user", "dbname", "password")
    return {name: getattr(connection.info, name) for name in names}


class Lab:
    def __init__(
        self, connection: psycopg.Connection[Any], database: Database, corpus: Corpus
    ) -> None:
        self.database = database
        self.corpus = corpus
        self.loaded = 0
        self.collection = database.config.collection
        names = ["documents", "parents", "data_children", "postings", "rows", "texts"]
        self.names = {name: table(self.collection, name) for name in names}
        self.connection = connection
        self.run("set statement_timeout = 0")
        self.queries = Queries(self.collection)

    def run(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(sql.SQL(text).format(**self.names), values or None)
        return cursor.fetchall() if cursor.description else []

    def load(self, pages: Sequence[int], ids: Sequence[int] = ()) -> tuple[float, float]:
        """Store pages as one batch, under their own numbers; seconds of packing and of writing."""
        ids = ids or pages
        texts = [self.corpus.page(number) for number in pages]
        started = time.perf_counter()
        packed = [(number, pack_postings(terms)) for number, terms in zip(ids, texts, strict=True)]
        packing = time.perf_counter() - started
        lengths = [int(self.corpus.lengths[(n - 1) * PAGE : n * PAGE].sum()) for n in pages]
        started = time.perf_counter()

        async def write(connection: Connection) -> None:
            await connection.lift_timeouts()
            documents = sql.SQL(DOCUMENTS).format(**self.names)
            await connection.execute(documents, [PAGE, list(ids), lengths])
            await copy_postings(connection, packed)

        run_blocking(self.database.run(write))
        return packing, time.perf_counter() - started

    def grow(self, children: int) -> None:
        live = min(children, self.corpus.live)
        if self.loaded < live:
            pages = range(self.loaded // PAGE + 1, live // PAGE + 1)
            times = [self.load(pages[at : at + BATCH]) for at in range(0, len(pages), BATCH)]
            thousands = (live - self.loaded) / 1000
            packing, writing = (sum(column) / thousands for column in zip(*times, strict=True))
            print(
                f"  load, per 1,000: {packing:.2f} s packing, {writing:.2f} s writing", flush=True
            )
        if children > live:
            self.drop_indexes()
            for start in range(max(self.loaded, live), children, live):
                self.copy_pages(start, min(live, children - start))
            self.build_indexes()
        self.loaded = children
        self.run("vacuum analyze {postings}")
        self.run("vacuum analyze {documents}")

    def copy_pages(self, start: int, children: int) -> None:
        values = {"copy": start // self.corpus.live, "shift": start // PAGE}
        values |= {"first": 1, "last": children // PAGE}
        for statement in COPIES:
            self.connection.execute(sql.SQL(statement).format(**self.names), values)

    def drop_indexes(self) -> None:
        self.run("alter table {postings} drop constraint postings_pkey")
        index = table(self.collection, "postings_document")
        self.connection.execute(sql.SQL("drop index {}").format(index))

    def build_indexes(self) -> None:
        self.run("set maintenance_work_mem = '512MB'")
        started = time.perf_counter()
        self.run(
            "alter table {postings} add primary key (term, document, segment) include (packed)"
        )
        self.run("create index postings_document on {postings} (document)")
        print(f"  indexes built in {time.perf_counter() - started:.0f} s", flush=True)

    def fill(self) -> None:
        """Give the pages parents and chunks with vectors; the indexes are built at the end."""
        indexes = index_statements(self.collection, 256)
        own = {name: text for name, text in indexes.items() if name.startswith("data_children")}
        for name in own:
            index = table(self.collection, name)
            self.connection.execute(sql.SQL("drop index {}").format(index))
        for text in CHILDREN:
            self.run(text)
        self.run("set maintenance_work_mem = '2500MB'")
        started = time.perf_counter()
        for statement in own.values():
            self.connection.execute(statement)
        print(f"  vectors indexed in {time.perf_counter() - started:.0f} s", flush=True)
        for name in ("data_children", "parents"):
            self.run(f"vacuum analyze {{{name}}}")

    def disk(self, name: str) -> str:
        kb, index = self.run(
            "select pg_table_size(n) / 1e3, pg_indexes_size(n) / 1e3"
            " from (select %s::regclass as n) t",
            self.names[name].as_string(),
        )[0]
        each = float(kb + index) / self.loaded
        return f"{kb / 1000:.0f} + {index / 1000:.0f} MB, {each:.1f} kB a chunk"

    def totals(self) -> CorpusTotals:
        return totals_of(*self.send([self.queries.totals()]))

    def packed(self, question: Sequence[int], _: CorpusTotals | None = None) -> list[int]:
        """What the product does for the lexical leg, chunks and pages scored."""
        terms = [word(term) for term in question]
        scores = self.words(terms).children
        return [((key >> 16) - 1) * PAGE + (key & 0xFFFF) for key in scores.best(60).tolist()]

    def words(self, terms: Sequence[str]) -> WordScores:
        """The lexical leg as a search reads and scores it."""
        batch = (self.queries.totals(), self.queries.postings(terms))
        totals, rows = self.read(lambda each: fetch_together(each, *batch))
        return score_words(terms, unpack_rows(rows), totals_of(totals))

    def read(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """What the product reads in a transaction, from a program without an event loop."""
        return run_blocking(self.database.run(work, snapshot=True))

    def send(self, batch: Sequence[Statement]) -> list[list[tuple[Any, ...]]]:
        """The rows of statements that travel together."""
        return send(self.connection, batch)

    def vector(self, random: np.random.Generator) -> list[float]:
        page = int(random.integers(1, self.loaded // PAGE))
        row = self.run("select embedding from {data_children} where document >= %s limit 1", page)
        near = np.array(row[0][0].to_list()) + random.normal(0, 0.03, 256)
        return [float(value) for value in near]

    def search(self, count: int) -> None:
        """Times of a whole search, of its statements alone, and of its legs."""
        random = np.random.default_rng(5)
        asked = [
            ([word(term) for term in question], self.vector(random))
            for question in self.corpus.questions(count, 4)
        ]
        least: dict[str, dict[int, float]] = defaultdict(dict)

        def clock(name: str, place: int, work: Callable[[], object]) -> None:
            started = time.perf_counter()
            work()
            took = (time.perf_counter() - started) * 1000
            least[name][place] = min(took, least[name].get(place, math.inf))

        for _ in range(3):
            for place, (terms, vector) in enumerate(asked):
                for name, work in self.ways(terms, vector).items():
                    clock(name, place, work)
        print(f"  {'':<30}{'p50':>8}{'p95':>8}  ms")
        for name, values in least.items():
            row(name, list(values.values()))

    def ways(self, terms: list[str], vector: list[float]) -> dict[str, Callable[[], object]]:
        """What is measured of one question."""

        async def search(connection: Connection) -> Found:
            variants = [SearchText("", tuple(terms), vector)]
            config = RetrievalConfig(context_budget=8_000)
            return await search_chunks(connection, self.queries, config, variants)

        batches = run_blocking(recorded(self.database.run(search, snapshot=True)))
        return {
            "whole search": lambda: self.read(search),
            "its statements alone": lambda: [self.send(batch) for batch in batches],
            "words": lambda: self.words(terms),
            "vectors": lambda: self.send([self.queries.nearest_in_graph(vector, 80)]),
        }

    def make_references(self) -> None:
        corpus, count = self.corpus, self.loaded
        self.run("create table {rows} (term int, child int, tf smallint, length smallint)")
        started = time.perf_counter()
        copying = sql.SQL("copy {rows} from stdin (format binary)").format(**self.names)
        with self.connection.cursor().copy(copying) as copy:
            copy.set_types(["int4", "int4", "int2", "int2"])
            for child, length in enumerate(corpus.lengths[:count].tolist()):
                terms, counts = np.unique(corpus.terms[child, :length], return_counts=True)
                for term, tf in zip(terms.tolist(), counts.tolist(), strict=True):
                    copy.write_row((term, child, tf, length))
        self.run("create index on {rows} (term) include (child, tf, length)")
        print(f"  rows per posting: made in {time.perf_counter() - started:.0f} s", flush=True)
        self.run("create table {texts} (child int, words tsvector)")
        self.run("create temp table raw (child int, text text)")
        started = time.perf_counter()
        with self.connection.cursor().copy("copy raw from stdin") as copy:
            for child in range(count):
                words = map(word, corpus.terms[child, : corpus.lengths[child]].tolist())
                copy.write_row((child, " ".join(words)))
        self.run("insert into {texts} select child, to_tsvector('simple', text) from raw")
        self.run("create index on {texts} using gin (words)")
        self.run("drop table raw")
        print(f"  tsvector: made in {time.perf_counter() - started:.0f} s", flush=True)
        for name in ("rows", "texts"):
            self.run(f"vacuum analyze {{{name}}}")
            print(f"  {name:<29}{self.disk(name)}")

    def by_rows(self, question: Sequence[int], totals: CorpusTotals) -> list[int]:
        values = {
            "n": totals.children,
            "average": totals.terms / totals.children,
            "terms": list(question),
        }
        query = sql.SQL(ROWS_QUERY).format(**self.names)
        return [child for child, _ in self.connection.execute(query, values).fetchall()]

    def by_rank(self, question: Sequence[int], _: CorpusTotals) -> list[int]:
        query = sql.SQL(RANK_QUERY).format(**self.names)
        values = {"query": " | ".join(map(word, question))}
        return [child for (child,) in self.connection.execute(query, values).fetchall()]

    def compare(self, count: int, *, with_references: bool) -> None:
        ways: dict[str, Callable[[Sequence[int], CorpusTotals], list[int]]] = {
            "packed postings, numpy": self.packed
        }
        if with_references:
            ways |= {"a row per posting, SQL": self.by_rows, "tsvector, ts_rank": self.by_rank}
        totals = self.totals()
        print(f"  {'':<30}{'p50':>8}{'p95':>8}  ms")
        for seed in (1, 2):  # the first warms caches
            times, exact = defaultdict(list), defaultdict(list)
            for question in self.corpus.questions(count, seed):
                reference = self.corpus.scores(question) if seed == 2 else None
                for name, search in ways.items():
                    started = time.perf_counter()
                    found = search(question, totals)
                    times[name].append((time.perf_counter() - started) * 1000)
                    if reference is not None:
                        exact[name].append([recall(reference, found, k) for k in (60, 10)])
        for name, values in times.items():
            row(name, values)
            at_60, at_10 = np.mean(exact[name], axis=0)
            print(f"  {'':<30}recall@60 {at_60:.3f}, @10 {at_10:.3f}", flush=True)

    async def forget_pages(self, database: Database, urls: Sequence[str]) -> None:
        """Delete pages one by one, check that results are exact without them, store them anew."""
        times = []
        for url in urls:
            started = time.perf_counter()
            await forget_page(database, url)
            times.append((time.perf_counter() - started) * 1000)
        row(f"forget a page of {PAGE} chunks", times)
        self.note_alive()
        exact = [
            recall(self.corpus.scores(question), self.packed(question), 60)
            for question in self.corpus.questions(10, 3)
        ]
        print(f"  {'':<30}recall@60 {np.mean(exact):.3f} without {len(urls)} pages")
        (last,) = self.run("select max(id) from {documents}")[0]
        added = [self.load([page], [last + page])[1] * 1000 for page in range(1, 31)]
        row("add a page's words", added)
        self.run("delete from {documents} where id > %s", last)

    def note_alive(self) -> None:
        """Leave out what an earlier run has deleted."""
        stored = np.array([number for (number,) in self.run("select id from {documents}")])
        self.corpus.alive[:] = np.isin(np.arange(len(self.corpus.alive)) // PAGE + 1, stored)


async def run(chosen: argparse.Namespace) -> None:
    for size in chosen.sizes:
        corpus = Corpus(size, chosen.live)
        settings = load_settings().model_copy(update={"collection": f"scale_{size}"})
        database = Database(settings.database_config())
        is_there = settings.collection in await list_collections(database)
        async with WebRAG(settings) as rag:
            await rag.status()
            try:
                await measure(database, corpus, chosen, is_there=is_there)
            finally:
                await database.close()
                if not chosen.keep:
                    await rag.drop_collection()


_FEW_PAGES = "select url from {documents} order by hashint4(id) limit 30"


async def measure(
    database: Database, corpus: Corpus, chosen: argparse.Namespace, *, is_there: bool
) -> None:
    size = len(corpus.terms)
    print(f"{size:,} chunks", flush=True)
    async with database.connection() as pooled:
        place = place_of(pooled)
    with psycopg.connect(**place, autocommit=True) as connection:
        register_vector(connection)
        lab = Lab(connection, database, corpus)
        lab.loaded = size if is_there else 0
        if not is_there:
            lab.grow(size)
            lab.fill()
        lab.note_alive()
        for name in ("postings", "data_children"):
            print(f"  {name:<29}{lab.disk(name)}", flush=True)
        lab.search(chosen.questions)
        with_references = size <= chosen.references
        if with_references:
            lab.make_references()
        lab.compare(min(chosen.questions, chosen.checked), with_references=with_references)
        await lab.forget_pages(database, [url for (url,) in lab.run(_FEW_PAGES)])
        if with_references:
            lab.run("drop table {rows}, {texts}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    options.add_argument("--live", type=int, default=100_000)
    options.add_argument("--references", type=int, default=0)
    options.add_argument("--questions", type=int, default=60)
    options.add_argument("--checked", type=int, default=20, help="compared with the reference")
    options.add_argument("--keep", action="store_true")
    options.add_argument("--whole", action="store_true")
    chosen = options.parse_args()
    asyncio.run(measure_whole(chosen.questions) if chosen.whole else run(chosen))


if __name__ == "__main__":
    main()
