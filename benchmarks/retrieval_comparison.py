"""Evidence recall of each stage of retrieval, beside BM25 and LlamaIndex's stock pipeline.

Usage: python benchmarks/retrieval_comparison.py --questions FILE --site-root FOLDER
           [--stock] [--data-dir DIR] [--vectors FILE]
       python benchmarks/retrieval_comparison.py --collections FOLDER [--per-set 75]
           [--vectors FILE]

FILE has one question a line, FOLDER one folder of HTML files per site; every site is indexed whole
and searched for its own questions. A result is a parent chunk for the two best of the product's own
rows and the best child for the others, as a brief prints them. Beside them stands bm25s over the
sections of the same pages; --stock adds LlamaIndex's HierarchicalNodeParser, PGVectorStore in
hybrid mode and AutoMergingRetriever with the bundled embedding, on the embedded Postgres of DIR.
With --collections: nDCG@10 over test collections, beside bm25s. --vectors takes the embedding that
EMBEDDING_PROVIDER and EMBEDDING_MODEL name instead of the bundled one, and keeps its vectors in
FILE: an interrupted run goes on where it stopped, a second one embeds nothing.
"""

import argparse
import json
import re
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
from cached_embedding import CachedEmbedding
from fit_local_rerank import COLLECTIONS, Bm25, gain
from llama_index.postprocessor.webrag.local_scoring import weighted_sum
from memory_corpus import EMBEDDING, Candidates, Judged, letters, load_collection, load_site

from webrag.lexical.bm25 import fuse_ranks

Texts = list[str]
Rows = dict[str, dict[str, Texts]]  # pipeline to question id to results, best first
RESULTS = 20
WHOLE = 2
HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_OPEN: list[object] = []


def product_orders(judged: Judged, query: str) -> dict[str, tuple[Candidates, np.ndarray]]:
    found = judged.corpus.candidates(query)
    has_any = len(found.rows) > 0
    reranked = weighted_sum(judged.corpus.features(query, found)) if has_any else np.empty(0)
    return {
        "lexical only": (found, np.where(found.lexical > 0, found.lexical, -np.inf)),
        "dense only": (found, found.similarity),
        "fused": (found, found.fused),
        "fused by rank": (found, fuse_ranks(found.lexical, found.similarity)),
        "fused + local rerank": (found, reranked),
    }


def product_results(judged: Judged, found: Candidates, scores: np.ndarray) -> Texts:
    corpus = judged.corpus
    best: dict[str, str] = {}
    for place in np.argsort(-scores, kind="stable"):
        if np.isfinite(scores[place]):
            child = corpus.children[found.rows[place]]
            best.setdefault(child.parent, child.text)
    return [
        corpus.parents.get(parent, text) if rank < WHOLE else text
        for rank, (parent, text) in enumerate(list(best.items())[:RESULTS])
    ]


def bm25_search(judged: Judged) -> Callable[[str], Texts]:
    """bm25s with its usual numbers, over the sections below each heading of the pages."""
    texts = [
        f"{page.title}\n{section.strip()}"
        for page in judged.corpus.pages
        for section in HEADING.split(page.markdown)
        if section.strip()
    ]

    def tokens(asked: Texts) -> Any:
        return bm25s.tokenize(asked, stopwords="en", show_progress=False)

    index = bm25s.BM25(method="lucene")
    index.index(tokens(texts), show_progress=False)

    def search(query: str) -> Texts:
        count = min(RESULTS, len(texts))
        places, scores = index.retrieve(tokens([query]), k=count, show_progress=False)
        found = zip(places[0], scores[0], strict=True)
        return [texts[place] for place, score in found if score > 0]

    return search


def stock_search(judged: Judged, data_dir: Path) -> Callable[[str], Texts]:
    """LlamaIndex as its documentation puts these parts together, one table per site."""
    from llama_index.core import Document, StorageContext, VectorStoreIndex
    from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
    from llama_index.core.retrievers import AutoMergingRetriever, VectorIndexRetriever
    from llama_index.core.storage.docstore import SimpleDocumentStore
    from llama_index.core.vector_stores.types import VectorStoreQueryMode
    from llama_index.vector_stores.postgres import PGVectorStore

    documents = [
        Document(text=page.markdown, metadata={"title": page.title})
        for page in judged.corpus.pages
        if page.markdown.strip()
    ]
    nodes = HierarchicalNodeParser.from_defaults().get_nodes_from_documents(documents)
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    store = PGVectorStore.from_params(
        connection_string=_connection(data_dir, "psycopg2"),
        async_connection_string=_connection(data_dir, "asyncpg"),
        table_name=f"stock_{uuid.uuid4().hex[:12]}",
        embed_dim=EMBEDDING.dimensions,
        hybrid_search=True,
    )
    context = StorageContext.from_defaults(vector_store=store, docstore=docstore)
    index = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=EMBEDDING)
    base = VectorIndexRetriever(
        index,
        similarity_top_k=RESULTS,
        sparse_top_k=RESULTS,
        vector_store_query_mode=VectorStoreQueryMode.HYBRID,
    )
    merging = AutoMergingRetriever(base, context)
    return lambda query: [found.node.get_content() for found in merging.retrieve(query)]


def _connection(data_dir: Path, driver: str) -> str:
    from psycopg import AsyncConnection

    from webrag.concurrency import run_blocking
    from webrag.postgres.database import Database
    from webrag.settings import load_settings

    database = Database(load_settings(data_dir=data_dir).database_config())
    _OPEN.append(database)  # the server stops with the last one that uses it

    async def address(connection: AsyncConnection) -> str:
        info = connection.info
        secret = f":{info.password}" if info.password else ""
        where = f"host={info.host}&port={info.port}"
        return f"postgresql+{driver}://{info.user}{secret}@/{info.dbname}?{where}"

    return run_blocking(database.run(address))


def scored(gold: Sequence[Sequence[str]], texts: Texts) -> dict[str, float]:
    keys = [letters(text) for text in texts]

    def share(shown: Sequence[str]) -> float:
        return float(np.mean([any(q in t for q in group for t in shown) for group in gold]))

    words = " ".join(" ".join(texts).split()[:1000])
    hits = [rank for rank, key in enumerate(keys, 1) if any(q in key for g in gold for q in g)]
    return {
        **{f"@{k}": share(keys[:k]) for k in (1, 3, 5, 10)},
        "1000 words": share([letters(words)]),
        "MRR": 1 / hits[0] if hits else 0.0,
    }


def on_sites(options: argparse.Namespace) -> None:
    lines = options.questions.read_text("utf-8").splitlines()
    questions = [question for line in lines if (question := json.loads(line)).get("gold")]
    if not questions:
        raise SystemExit(f"{options.questions} has no question with evidence.")
    rows: Rows = {}
    gold: dict[str, list[list[str]]] = {}
    for site in dict.fromkeys(question["site"] for question in questions):
        own = [question for question in questions if question["site"] == site]
        judged = load_site(options.site_root / site, own, options.embedding)
        gold |= judged.gold
        bm25 = bm25_search(judged)
        stock = stock_search(judged, options.data_dir) if options.stock else None
        for name, query in judged.queries.items():
            for label, order in product_orders(judged, query).items():
                rows.setdefault(label, {})[name] = product_results(judged, *order)
            rows.setdefault("BM25 over sections", {})[name] = bm25(query)
            if stock:
                rows.setdefault("LlamaIndex stock", {})[name] = stock(query)
    judgements = {
        label: {name: scored(gold[name], found.get(name, [])) for name in gold}
        for label, found in rows.items()
    }
    kinds = {"all": list(gold)}
    for question in questions:
        kinds.setdefault(question["type"], []).append(question["id"])
        if "vocab_mismatch" in question:
            wording = "unlike" if question["vocab_mismatch"] else "like"
            kinds.setdefault(f"wording {wording} the page's", []).append(question["id"])
    for title, chosen in kinds.items():
        print(f"\n{title} ({len(chosen)})")
        for label, by in judgements.items():
            print(f"  {label:<22}" + figures([by[name] for name in chosen]))


def figures(rows: Sequence[dict[str, float]]) -> str:
    return "  ".join(f"{key} {np.mean([row[key] for row in rows]):.3f}" for key in rows[0])


def on_collections(options: argparse.Namespace) -> None:
    print(f"{'nDCG@10':<12}{'bm25s':>10}", end="")
    for number, name in enumerate(COLLECTIONS):
        path = options.collections / f"{name}.json"
        total = len(json.loads(path.read_text("utf-8"))["qrels"])
        judged = load_collection(path, max(1, total // options.per_set), options.embedding)
        bm25 = Bm25(judged)
        rows: dict[str, list[float]] = {"bm25s": []}
        for query_id, query in judged.queries.items():
            relevant = judged.relevant[query_id]
            rows["bm25s"].append(bm25.ndcg(query, relevant))
            for label, (found, scores) in product_orders(judged, query).items():
                order = [judged.unit_of(found.rows[p]) for p in np.argsort(-scores, kind="stable")]
                grades = [relevant.get(unit, 0) for unit in list(dict.fromkeys(order))[:10]]
                ideal = sorted(relevant.values(), reverse=True)[:10]
                rows.setdefault(label, []).append(gain(grades) / gain(ideal))
        if not number:
            print("".join(f"{label:>22}" for label in rows if label != "bm25s"))
        values = [np.mean(each) for each in rows.values()]
        print(f"{name:<12}{values[0]:>10.4f}" + "".join(f"{v:>22.4f}" for v in values[1:]))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=Path)
    options.add_argument("--site-root", type=Path)
    options.add_argument("--stock", action="store_true")
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--collections", type=Path)
    options.add_argument("--per-set", type=int, default=75)
    options.add_argument("--vectors", type=Path, metavar="FILE")
    given = options.parse_args()
    given.embedding = CachedEmbedding(given.vectors) if given.vectors else None
    if given.stock and given.data_dir is None:
        options.error("--stock needs --data-dir.")
    if bool(given.questions) != bool(given.site_root) or not (given.questions or given.collections):
        options.error("give --questions and --site-root, --collections, or all three.")
    if given.questions:
        on_sites(given)
    if given.collections:
        on_collections(given)


if __name__ == "__main__":
    main()
