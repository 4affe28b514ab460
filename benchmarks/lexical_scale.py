"""Lexical search over made-up text at scale: exactness, time, disk and cost of writing.

Usage: python benchmarks/lexical_scale.py [--sizes 100000 500000] [--live 100000]

Chunks have 60 to 160 terms, 20 chunks a page: one half drawn from 200,000 terms by Zipf's law, the
other from 150 of them that are the page's subject, which makes about 85 different terms a chunk and
850 a page. Questions are 3 to 8 different terms of one chunk.

Pages are packed, loaded, searched and scored by the product's own functions, 96 pages a
transaction. Those beyond the first `--live` chunks are copied inside Postgres, every term exchanged
for one about as common, and the indexes are built at the end. The reference is BM25 computed by its
definition from the terms themselves, which never were in the database. Sizes up to `--references`
also compare what one would write instead: tsvector with GIN and ts_rank, and a row per posting
summed in SQL. All take turns, question by question. Uses a collection of its own, which is dropped
at the end. 500,000 chunks take up to 6 GB.
"""

import argparse
import asyncio
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import psycopg
from psycopg import sql
from search_latency import row

from webrag.app import WebRAG
from webrag.corpus.schema import table
from webrag.corpus.writer import copy_postings
from webrag.lexical.bm25 import CorpusTotals, score_children, score_pages, term_postings
from webrag.lexical.postings import pack_postings
from webrag.postgres.database import Database
from webrag.postgres.steps import Execute, Steps, run_steps_sync
from webrag.retrieval.statements import Queries
from webrag.settings import load_settings

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
    return sum(score >= best[-1] - 1e-6 for score in got) / len(best)


class Lab:
    def __init__(self, connection: psycopg.Connection, collection: str, corpus: Corpus) -> None:
        self.corpus = corpus
        self.loaded = 0
        self.collection = collection
        names = ("documents", "parents", "postings", "rows", "texts")
        self.names = {name: table(self.collection, name) for name in names}
        self.connection = connection
        self.run("set statement_timeout = 0")
        self.queries = Queries(self.collection)

    def run(self, text: str, *values: object) -> list[tuple]:
        cursor = self.connection.execute(sql.SQL(text).format(**self.names), values or None)
        return cursor.fetchall() if cursor.description else []

    def load(self, pages: Sequence[int]) -> tuple[float, float]:
        """Store pages as one batch; seconds of packing and of writing."""
        texts = [self.corpus.page(number) for number in pages]
        started = time.perf_counter()
        packed = [
            (number, pack_postings(terms)) for number, terms in zip(pages, texts, strict=True)
        ]
        packing = time.perf_counter() - started
        lengths = [int(self.corpus.lengths[(n - 1) * PAGE : n * PAGE].sum()) for n in pages]
        started = time.perf_counter()

        def steps() -> Steps[None]:
            documents = sql.SQL(DOCUMENTS).format(**self.names)
            yield Execute(documents, [PAGE, list(pages), lengths])
            yield copy_postings(self.collection, packed)

        with self.connection.transaction():
            run_steps_sync(self.connection, steps())
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

    def disk(self, name: str) -> str:
        kb, index = self.run(
            "select pg_table_size(n) / 1e3, pg_indexes_size(n) / 1e3"
            " from (select %s::regclass as n) t",
            self.names[name].as_string(),
        )[0]
        each = float(kb + index) / self.loaded
        return f"{kb / 1000:.0f} + {index / 1000:.0f} MB, {each:.1f} kB a chunk"

    def totals(self) -> CorpusTotals:
        step = self.queries.totals()
        rows = self.connection.execute(step.statement, step.values).fetchone()
        return CorpusTotals(*(int(value) for value in rows))

    def packed(self, question: Sequence[int], totals: CorpusTotals) -> list[int]:
        """What the product does for the lexical leg, chunks and pages scored."""
        terms = [word(term) for term in question]
        step = self.queries.lexical(terms)
        rows = self.connection.execute(step.statement, step.values, binary=True).fetchall()
        postings, lengths = term_postings(terms, rows)
        scores, _ = score_children(postings, totals)
        score_pages(postings, lengths, totals)
        return [((key >> 16) - 1) * PAGE + (key & 0xFFFF) for key in scores.best(60).tolist()]

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

    def replace_pages(self, pages: Sequence[int]) -> None:
        """Delete pages one by one, check that results are exact without them, store them again."""
        times = []
        for page in pages:
            started = time.perf_counter()
            self.run("delete from {documents} where id = %s", page)
            times.append((time.perf_counter() - started) * 1000)
        row(f"delete a page of {PAGE} chunks", times)
        gone = [child for page in pages for child in range((page - 1) * PAGE, page * PAGE)]
        self.corpus.alive[gone] = False
        totals = self.totals()
        exact = [
            recall(self.corpus.scores(question), self.packed(question, totals), 60)
            for question in self.corpus.questions(10, 3)
        ]
        print(f"  {'':<30}recall@60 {np.mean(exact):.3f} without {len(pages)} pages")
        row(f"add a page of {PAGE} chunks", [self.load([page])[1] * 1000 for page in pages])
        self.corpus.alive[gone] = True


async def run(chosen: argparse.Namespace) -> None:
    corpus = Corpus(max(chosen.sizes), chosen.live)
    settings = load_settings().model_copy(update={"collection": f"webrag_lexical_{os.getpid()}"})
    database = Database(settings.database_config())
    async with WebRAG(settings) as rag:
        await rag.status()
        try:
            with database.sync_connection(autocommit=True) as connection:
                measure(Lab(connection, settings.collection, corpus), corpus, chosen)
        finally:
            await database.close()
            await rag.drop_collection()


def measure(lab: Lab, corpus: Corpus, chosen: argparse.Namespace) -> None:
    for size in chosen.sizes:
        print(f"{size:,} chunks", flush=True)
        corpus.alive[:] = np.arange(len(corpus.alive)) < size
        lab.grow(size)
        print(f"  {'packed postings':<29}{lab.disk('postings')}")
        with_references = size <= chosen.references
        if with_references:
            lab.make_references()
        lab.compare(chosen.questions, with_references=with_references)
        lab.replace_pages(range(1, size // PAGE, size // PAGE // 50))
        if with_references:
            lab.run("drop table {rows}, {texts}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[100_000, 500_000])
    options.add_argument("--live", type=int, default=100_000)
    options.add_argument("--references", type=int, default=100_000)
    options.add_argument("--questions", type=int, default=60)
    asyncio.run(run(options.parse_args()))


if __name__ == "__main__":
    main()
