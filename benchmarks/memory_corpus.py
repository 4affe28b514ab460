"""A corpus in memory that retrieves as the product does, for benchmarks over many small sets.

Chunks, index terms, BM25, fusion, candidates and rerank features are the product's own functions;
only Postgres is left out. The graph index is replaced by an exact search.
"""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from llama_index.core.schema import Document
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor.webrag.rerank_features import FeatureExtractor, Passage
from llama_index.postprocessor.webrag.wordings import AskedWording
from numpy.typing import NDArray

from webrag.corpus.rows import child_row, fields_of
from webrag.embedding.bundled import BundledEmbedding
from webrag.ingestion.extract import extract
from webrag.ingestion.http.decode import decode
from webrag.ingestion.models import FetchedPage
from webrag.lexical.analysis import analyze, query_terms
from webrag.lexical.bm25 import CorpusTotals, fuse_scores, score_words
from webrag.lexical.postings import Postings, SlotLayout, TermSlots
from webrag.retrieval.models import RetrievalConfig

CONFIG = RetrievalConfig()
EMBEDDING = BundledEmbedding()  # also what rerank features look words up in, as in the product
PARSER = ParentChildNodeParser()


@dataclass
class Page:
    name: str
    title: str
    markdown: str


@dataclass
class Child:
    page: int
    parent: str
    text: str
    text_hash: bytes
    title: str
    headings: tuple[str, ...]


@dataclass
class Candidates:
    """Children that both legs found, best fused score first."""

    terms: list[str]
    idf: dict[str, float]
    rows: NDArray[np.int64]
    lexical: NDArray[np.float64]
    similarity: NDArray[np.float64]
    page_lexical: NDArray[np.float64]
    fused: NDArray[np.float64]


class Encoder(Protocol):
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def encode_questions(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


class MemoryCorpus:
    def __init__(self, pages: Sequence[Page], embedding: Encoder | None = None) -> None:
        self.pages = pages
        self.children: list[Child] = []
        self.parents: dict[str, str] = {}
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._extractor = FeatureExtractor(EMBEDDING, analyze, query_terms, cache_size=200_000)
        texts, places, lengths = [], [], []
        for number, page in enumerate(pages):
            for place, (child, indexed) in enumerate(children_of(number, page, self.parents)):
                terms = analyze(indexed)
                row = len(self.children)
                for term, count in Counter(terms).items():
                    self._postings[term].append((row, count))
                lengths.append(len(terms))
                self.children.append(child)
                texts.append(indexed)
                places.append(place)
        self._place_of = np.array(places)
        self._page_of = np.array([child.page for child in self.children])
        numbers = np.arange(len(pages))
        self._layout = SlotLayout.of_sizes(
            numbers,
            np.bincount(self._page_of, lengths, len(pages)).astype(np.int64),
            np.bincount(self._page_of, minlength=len(pages)),
            np.array(lengths, np.uint16),
        )
        self._vectors = (embedding or EMBEDDING).encode(texts)
        self._encode_questions = embedding.encode_questions if embedding else EMBEDDING.encode
        self._totals = CorpusTotals(len(pages), len(self.children), sum(lengths))

    def candidates(self, question: str, limit: int = CONFIG.children_limit) -> Candidates:
        terms = query_terms(question)
        lexical, pages, idf = self._bm25(terms)
        similarity = self._vectors @ self._encode_questions([question])[0]
        words = [row for row in np.argsort(-lexical, kind="stable")[:limit] if lexical[row] > 0]
        rows = np.array(sorted({*words, *np.argsort(-similarity, kind="stable")[:limit]}), int)
        rows = rows[(lexical[rows] > 0) | (similarity[rows] >= CONFIG.similarity_floor)]
        page_scores = pages[self._page_of[rows]] if len(rows) else np.zeros(0)
        fused = fuse_scores(
            lexical[rows],
            similarity[rows],
            page_scores,
            lexical_weight=CONFIG.lexical_weight,
            page_weight=CONFIG.page_weight,
        )
        order = self._distinct(rows, np.argsort(-fused, kind="stable"))[:limit]
        kept = rows[order]
        return Candidates(
            terms, idf, kept, lexical[kept], similarity[kept], page_scores[order], fused[order]
        )

    def features(self, question: str, found: Candidates) -> NDArray[np.float64]:
        """One row of rerank features per candidate."""
        children = [self.children[row] for row in found.rows]
        passages = [Passage(each.text, each.title, each.headings) for each in children]
        asked = AskedWording(
            question, found.idf, found.similarity.tolist(), found.page_lexical.tolist()
        )
        return self._extractor.features([asked], passages)[0]

    def _bm25(
        self, terms: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, float]]:
        found = {}
        for term in terms:
            rows, *counted = np.array(self._postings.get(term, []), np.int64).reshape(-1, 2).T
            counts = np.minimum(counted[0], 255).astype(np.uint8)
            found[term] = TermSlots.of_chunks(rows, counts, self._layout)
        scored = score_words(terms, Postings(self._layout, found), self._totals)
        lexical = scored.children.at((self._page_of << 16) | self._place_of)
        return lexical, scored.pages.at(np.arange(len(self.pages))), scored.idf

    def _distinct(self, rows: NDArray[np.int64], order: NDArray[np.int64]) -> list[int]:
        seen: dict[bytes, int] = {}
        for place in order:
            seen.setdefault(self.children[rows[place]].text_hash, int(place))
        return list(seen.values())


def children_of(number: int, page: Page, parents: dict[str, str]) -> Iterable[tuple[Child, str]]:
    metadata = {"title": page.title} if page.title else {}
    nodes = PARSER.get_nodes_from_documents(
        [Document(id_=f"{number}", text=page.markdown, metadata=metadata)]
    )
    parents |= {n.node_id: n.get_content() for n in nodes if n.metadata["chunk_level"] == "parent"}
    leaves = [node for node in nodes if node.metadata["chunk_level"] == "child"]
    for ordinal, node in enumerate(leaves):
        row = child_row(fields_of(node), ordinal)
        headings = tuple(node.metadata.get("heading_path") or ())
        parent = node.parent_node.node_id if node.parent_node else node.node_id
        yield Child(number, parent, row.text, row.text_hash, page.title, headings), row.indexed_text


@dataclass
class Judged:
    """Questions over a corpus, with what counts as relevant.

    Attributes:
        queries: Id to text.
        relevant: Id to grade by unit; a unit is a page of a collection or a child of a site.
        unit_of: Child row to unit.
    """

    name: str
    corpus: MemoryCorpus
    queries: dict[str, str]
    relevant: dict[str, dict[int, int]]
    unit_of: Callable[[int], int]
    gold: dict[str, list[list[str]]] = field(default_factory=dict)


def load_collection(path: Path, every: int = 1, embedding: Encoder | None = None) -> Judged:
    """A test collection of `{docs, queries, qrels}`; every so many queries of it."""
    data = json.loads(path.read_text("utf-8"))
    names = list(data["docs"])
    place = {name: number for number, name in enumerate(names)}
    pages = [
        Page(name, " ".join(each["title"].split()), each["text"] or each["title"])
        for name, each in data["docs"].items()
    ]
    relevant = {
        query: {place[doc]: grade for doc, grade in grades.items() if grade > 0 and doc in place}
        for query, grades in data["qrels"].items()
    }
    asked = [query for query in data["queries"] if relevant.get(query)][::every]
    corpus = MemoryCorpus(pages, embedding)
    return Judged(
        path.stem,
        corpus,
        {query: data["queries"][query] for query in asked},
        relevant,
        lambda row: corpus.children[row].page,
    )


def load_site(
    folder: Path, questions: Sequence[Mapping[str, Any]], embedding: Encoder | None = None
) -> Judged:
    """A folder of HTML files and questions whose gold is quotations."""
    pages = [read_page(path, folder) for path in sorted(folder.rglob("*.html"))]
    corpus = MemoryCorpus(pages, embedding)
    keys = [letters(child.text) for child in corpus.children]
    gold, relevant = {}, {}
    for question in questions:
        groups = [
            [letters(each["quote"]) for each in (item, *item.get("alts", []))]
            for item in question["gold"]
        ]
        gold[question["id"]] = groups
        relevant[question["id"]] = {
            row: 1
            for row, key in enumerate(keys)
            if any(quote in key for group in groups for quote in group)
        }
    queries = {question["id"]: question["query"] for question in questions}
    return Judged(folder.name, corpus, queries, relevant, lambda row: row, gold)


def read_page(path: Path, folder: Path) -> Page:
    name = path.relative_to(folder).as_posix()
    url = f"https://site.test/{name}"
    fetched = FetchedPage(
        requested_url=url,
        url=url,
        status=200,
        kind="html",
        text=decode(path.read_bytes()),
        fetched_at=datetime.now(UTC),
        source="benchmark",
    )
    document = extract(fetched)
    return Page(name, document.title or "", document.markdown)


def letters(text: str) -> str:
    """What a reader would call the same words: letters and digits, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())
