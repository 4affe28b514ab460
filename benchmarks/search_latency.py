"""Milliseconds of a search at several corpus sizes, beside the same SQL run alone.

Usage: python benchmarks/search_latency.py FOLDER [--pages N] [--sizes 1000 20000 200000]

Ingests N HTML pages of FOLDER, then multiplies them inside Postgres: every copy has other texts
to the engine (their hashes differ), vectors with noise added and three of ten terms renamed. Per
size it prints, over the same questions (sentences of the pages, 8 words each):

    retrieve    Searcher.retrieve: embedding, both legs, fusion, parents
    search      the engine's search: with reranking, judgement and citations; with passages that
                the reranker has not seen before, and again with the same; also with three other
                wordings, which are other questions: what those cost at the most
    bare SQL    the statements of retrieve, sent again by one synchronous connection in the same
                batches inside one transaction, and their rows read; nothing else

and for the lexical leg its own statement alone, whether its best 60 equal BM25 computed from the
postings one by one, and the size of its table with indexes.
"""

import argparse
import asyncio
import math
import os
import random
import statistics
import time
from collections import defaultdict
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import psycopg
from psycopg import sql

from webrag.app import WebRAG
from webrag.corpus.schema import table
from webrag.corpus.tables import index_statements
from webrag.lexical.analysis import query_terms
from webrag.lexical.blocks import block_of_rows
from webrag.lexical.bm25 import CorpusTotals, score_words
from webrag.lexical.postings import unpack_postings
from webrag.postgres.steps import Execute, Together
from webrag.retrieval.plans import find_chunks
from webrag.retrieval.statements import Queries
from webrag.settings import load_settings
from webrag.static_site import serve_static_site

COPY = (
    """
    create temp table noise as
    select n, array_agg(random_normal() * 0.02)::halfvec(256) as v
    from generate_series(0, 499) n cross join generate_series(1, 256) group by n
    """,
    """
    create temp table copied as
    select row_number() over () + (select max(id) from {documents}) as fresh, d.id as old, k
    from {documents} d cross join generate_series(%(first)s::int, %(last)s::int) k
    where not d.url like '%%~copy-%%'
    """,
    """
    insert into {documents} overriding system value
    select c.fresh, gen_random_uuid(), d.url || '~copy-' || c.k, d.requested_url, '{{}}', d.site,
           d.title, d.description, d.language, d.published_at, d.modified_at, d.publication_year,
           d.fetched_at, d.depth, '', '', md5(d.url || c.k), null, null, d.status, d.source,
           d.token_count, d.child_count, d.term_count, null
    from copied c join {documents} d on d.id = c.old
    """,
    """
    create temp table families as
    select p.id as old, c.k, c.fresh, gen_random_uuid() as id
    from copied c join {parents} p on p.document = c.old
    """,
    """
    insert into {parents}
    select f.id, f.fresh, p.chunk_index, p.heading, p.heading_path, p.text, p.html, p.char_start,
           p.char_end, p.token_start, p.token_end, p.has_table, p.has_code, p.has_math,
           p.has_definition_list, p.has_admonition, p.has_steps, p.images
    from families f join {parents} p on p.id = f.old
    """,
    """
    insert into {data_children}
        (text, metadata_, node_id, embedding, document, parent_id, ordinal, char_start, char_end,
         text_hash)
    select c.text, c.metadata_, gen_random_uuid()::text, c.embedding + n.v, f.fresh, f.id,
           c.ordinal, c.char_start, c.char_end, decode(md5(c.node_id || f.k), 'hex')
    from families f join {data_children} c on c.parent_id = f.old
    join noise n on n.n = (c.id * 7919 + f.k * 104729) %% 500
    """,
    """
    insert into {postings}
    select case when hashtext(p.term || c.fresh) %% 10 in (0, 1, 2) then p.term || '~' || c.k %% 97
                else p.term end, c.fresh, p.segment, p.packed
    from copied c join {postings} p on p.document = c.old
    order by 1, 2
    """,
    "drop table noise, copied, families",
)
TABLES = ("documents", "parents", "data_children", "postings")


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, math.ceil(len(values) * share) - 1)]


def row(name: str, values: list[float]) -> None:
    print(f"  {name:<30}{percentile(values, 0.5):8.1f}{percentile(values, 0.95):8.1f}", flush=True)


def fetch(connection: psycopg.Connection, step: Execute) -> list[tuple]:
    return connection.execute(step.statement, step.values, binary=True).fetchall()


class Lab:
    """One collection, its connection and the questions."""

    def __init__(self, rag: WebRAG) -> None:
        self.rag = rag
        self.parts = rag._parts
        self.collection = self.parts.database.config.collection
        self.names = {name: table(self.collection, name) for name in TABLES}

    def connect(self) -> psycopg.Connection:
        with self.parts.database.sync_connection() as pooled:
            info = pooled.info
        connection = psycopg.connect(
            host=info.host,
            port=info.port,
            user=info.user,
            dbname=info.dbname,
            password=info.password,
            autocommit=True,
        )
        from pgvector.psycopg import register_vector

        register_vector(connection)
        return connection

    def execute(self, text: str, **values: object) -> list[tuple]:
        with self.connect() as connection:
            cursor = connection.execute(sql.SQL(text).format(**self.names), values)
            return cursor.fetchall() if cursor.description else []

    def grow(self, children: int) -> None:
        base = self.execute(
            "select count(*) from {data_children} c join {documents} d"
            " on d.id = c.document where not d.url like '%%~copy-%%'"
        )[0][0]
        have = self.execute("select count(*) from {data_children}")[0][0]
        first, last = have // base, max(0, round(children / base) - 1)
        if last < first:
            return
        index = index_statements(self.collection, 256)["data_children_embedding"]
        with self.connect() as connection:
            connection.execute("set maintenance_work_mem = '1GB'")
            connection.execute(
                sql.SQL("drop index {}.data_children_embedding").format(
                    sql.Identifier(self.collection)
                )
            )
            for text in COPY:
                statement = sql.SQL(text).format(**self.names)
                values = {"first": first, "last": last} if "%(first)s" in text else {}
                if not values:
                    statement = sql.SQL(text.replace("%%", "%")).format(**self.names)
                connection.execute(statement, values or None)
            connection.execute(index)
            for name in TABLES:
                connection.execute(sql.SQL("vacuum analyze {}").format(self.names[name]))

    async def questions(self, count: int) -> list[str]:
        texts = self.execute("select text from {data_children} order by id limit 3000")
        random.seed(7)
        found = []
        while len(found) < count:
            words = [w for w in random.choice(texts)[0].split() if w.isalpha()]
            if len(words) >= 12:
                start = random.randrange(len(words) - 8)
                found.append(" ".join(words[start : start + 8]))
        return found

    async def statements(self, question: str) -> list[list]:
        """The batches of statements that retrieve sends, found by running its plan."""
        config = self.rag.settings.retrieval_config()
        vector = (await self.parts.embedder.embed_query(question)).tolist()
        plan = find_chunks(
            Queries(self.collection), config, terms=query_terms(question),
            vector=vector, budget=config.context_budget, limit=config.children_limit,
        )  # fmt: skip
        batches: list[list] = []
        step = next(plan)
        with self.connect() as connection, connection.transaction():
            while True:
                batches.append(list(step.statements) if isinstance(step, Together) else [step])
                found = [fetch(connection, each) for each in batches[-1]]
                try:
                    step = plan.send(
                        [(rows,) for rows in found] if isinstance(step, Together) else found[0]
                    )
                except StopIteration:
                    return batches

    def bare(self, batches: list[list], connection: psycopg.Connection) -> float:
        started = time.perf_counter()
        with connection.transaction():
            for batch in batches:
                with connection.pipeline():
                    cursors = [
                        connection.execute(each.statement, each.values, binary=True)
                        for each in batch
                    ]
                    for cursor in cursors:
                        cursor.fetchall()
        return (time.perf_counter() - started) * 1000

    def forget_passages(self) -> None:
        """What the reranker remembers of passages; words stay known, as in a running server."""
        self.parts.reranker._extractor._cache.clear()

    def lexical(self, questions: list[str]) -> tuple[list[float], float]:
        """Times of the lexical statement with its scoring, and the share of exact results."""
        queries = Queries(self.collection)
        times, exact = [], []
        with self.connect() as connection:
            (totals_row,) = fetch(connection, queries.totals())
            totals = CorpusTotals(*(int(value) for value in totals_row))
            for question in questions:
                terms = query_terms(question)
                started = time.perf_counter()
                rows = fetch(connection, queries.lexical(terms))
                scores = score_words(terms, [block_of_rows(rows)], totals).children
                best = scores.best(60)
                times.append((time.perf_counter() - started) * 1000)
                if len(exact) < 5:
                    reference = self.brute_force(connection, terms, totals)
                    worst = sorted(reference.values(), reverse=True)[:60][-1]
                    exact.append(all(reference[int(key)] >= worst - 1e-9 for key in best))
        return times, statistics.fmean(exact)

    def brute_force(self, connection, terms, totals) -> dict[int, float]:
        """BM25 by its definition, one posting after another."""
        average = totals.terms / totals.children
        scores: dict[int, float] = defaultdict(float)
        for term in terms:
            rows = connection.execute(
                sql.SQL("select document, packed from {} where term = %s").format(
                    self.names["postings"]
                ),
                [term],
            ).fetchall()
            found = [(doc, entry) for doc, packed in rows for entry in unpack_postings(packed)]
            n = len(found)
            idf = math.log(1 + (totals.children - n + 0.5) / (n + 0.5))
            for doc, entry in found:
                tf, length = float(entry["tf"]), float(entry["length"])
                norm = tf + 1.2 * (0.25 + 0.75 * length / average)
                scores[doc << 16 | int(entry["ordinal"])] += idf * tf * 2.2 / norm
        return scores

    async def measure(self, size: int, count: int) -> None:
        started = time.perf_counter()
        self.grow(size)
        children, parents = (
            self.execute("select count(*) from {data_children}")[0][0],
            self.execute("select count(*) from {parents}")[0][0],
        )
        took = time.perf_counter() - started
        print(f"{children} children, {parents} parents (made in {took:.0f} s)")
        print(f"  {'':<30}{'p50':>8}{'p95':>8}  ms")
        questions = await self.questions(count)
        batches = [await self.statements(question) for question in questions]
        times: dict[str, list[float]] = defaultdict(list)
        with self.connect() as connection:
            for turn in range(2):  # the first warms caches and prepares statements
                times.clear()
                for question, batch in zip(questions, batches, strict=True):
                    started = time.perf_counter()
                    await self.parts.searcher.retrieve(question)
                    times["retrieve"].append((time.perf_counter() - started) * 1000)
                    times["bare SQL"].append(self.bare(batch, connection))
                if turn == 0:
                    continue
                for question in questions:
                    others = random.Random(question).sample(questions, 3)
                    for wordings in ((), others):
                        self.forget_passages()
                        kind = "search, 3 wordings" if wordings else "search"
                        for name in (f"{kind}, passages not seen", f"{kind}, passages seen"):
                            started = time.perf_counter()
                            await self.parts.engine.search(question, wordings=wordings)
                            times[name].append((time.perf_counter() - started) * 1000)
        for name, values in times.items():
            row(name, values)
        bare = percentile(times.pop("bare SQL"), 0.5)
        print(f"  {'p50 and its share of SQL':<30}{'/ SQL':>8}{'share':>8}")
        for name, values in times.items():
            ratio = percentile(values, 0.5) / bare
            print(f"  {name:<30}{ratio:8.2f}{1 / ratio:8.2f}")
        for seen in ("not seen", "seen"):
            one, more = (
                percentile(times[f"{kind}, passages {seen}"], 0.5)
                for kind in ("search", "search, 3 wordings")
            )
            print(f"  3 wordings / none, {seen:<11}{more / one:8.2f}")
        lexical, exact = self.lexical(questions)
        row("lexical leg alone", lexical)
        size_mb = self.execute(
            "select pg_total_relation_size(%(name)s::regclass) / 1e6",
            name=f"{self.collection}.postings",
        )[0][0]
        print(f"  lexical exact, of 5 questions {exact:8.2f}")
        print(f"  postings with indexes         {size_mb:8.0f} MB\n", flush=True)


async def run(chosen: argparse.Namespace) -> None:
    pages = sorted(path.relative_to(chosen.folder).as_posix() for path in chosen.files)
    pages = pages[:: -(-len(pages) // chosen.pages)]
    with serve_static_site(chosen.folder) as base_url:
        settings = load_settings().allowing([urlsplit(base_url).netloc])
        settings = settings.model_copy(update={"collection": f"webrag_latency_{os.getpid()}"})
        async with WebRAG(settings) as rag:
            try:
                await rag.ingest([urljoin(base_url, page) for page in pages])
                lab = Lab(rag)
                for size in chosen.sizes:
                    await lab.measure(size, chosen.questions)
            finally:
                await rag.drop_collection()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--pages", type=int, default=60)
    options.add_argument("--questions", type=int, default=60)
    options.add_argument("--sizes", type=int, nargs="+", default=[1_000, 20_000, 200_000])
    chosen = options.parse_args()
    chosen.files = list(chosen.folder.rglob("*.html"))
    asyncio.run(run(chosen))


if __name__ == "__main__":
    main()
