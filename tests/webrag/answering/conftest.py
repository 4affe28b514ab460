"""Managers made of the real parts, and a language model played by a server on loopback."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from llama_index.llms.openai_like import OpenAILike
from llama_index.node_parser.webrag import ParentChildNodeParser
from llama_index.postprocessor.webrag import LocalRerank

from tests.loopback import QuietHandler, serving
from webrag.answering.citation_desk import CitationDesk
from webrag.answering.evidence import EvidenceFinder, Gathered
from webrag.answering.guardrails import unquotable_spans
from webrag.answering.judging import Reflector
from webrag.answering.manager import Manager
from webrag.answering.models import AnswerConfig, Evidence, RetrieveStep
from webrag.answering.planning import Planner
from webrag.answering.writing import ExtractiveSynthesizer, LanguageModelSynthesizer
from webrag.corpus.indexer import Indexer
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.ingestion.models import NormalizedDocument
from webrag.lexical.analysis import analyze, query_terms
from webrag.orchestration.confidence import LOCAL
from webrag.orchestration.judge import Encode, judged
from webrag.orchestration.models import RankedChunk
from webrag.orchestration.question.analyzer import QueryAnalyzer
from webrag.orchestration.ranking.reranker import ChunkReranker
from webrag.postgres.database import Database
from webrag.question import Question
from webrag.retrieval.models import ChildMatch, RetrievalConfig, RetrievedChunk
from webrag.retrieval.search import Searcher

ENCODER = BundledEmbedding()
Reply = str | Callable[[dict[str, Any]], str] | int | float


class ScriptedModel:
    """What an OpenAI-compatible chat server answers, one reply after the other.

    A reply is a text, a function of the request, an HTTP status, or seconds of silence. The last
    one is repeated. Judgements are answered by `judgement` instead.
    """

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.judgement: Reply = judgement_reply()
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def next_reply(self, request: dict[str, Any]) -> Reply:
        self.requests.append(request)
        if "You judge whether" in request["messages"][0]["content"]:
            return self.judgement
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    @staticmethod
    def sentence(text: str, *citations: tuple[int, str]) -> str:
        """A line as the model is asked to write it."""
        cited = [{"evidence": number, "quote": quote} for number, quote in citations]
        return json.dumps({"sentence": text, "citations": cited})

    @staticmethod
    def judged(original: float = 0.9, revised: float = 0.9, **notes: str) -> str:
        """A judgement as the model is asked to give it."""
        return judgement_reply(original, revised, **notes)

    def llm(self, **options: Any) -> OpenAILike:
        """A client of this server."""
        given = {"model": "scripted", "api_base": self.url, "api_key": "none", "timeout": 20.0}
        return OpenAILike(is_chat_model=True, max_retries=0, **{**given, **options})


def judgement_reply(original: float = 0.9, revised: float = 0.9, **notes: str) -> str:
    scores = {"original_query_score": original, "revised_query_score": revised}
    return json.dumps({**scores, "applicability_note": "", "uncertainty_note": "", **notes})


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    """A running chat server on loopback."""
    scripted = ScriptedModel()
    closing = threading.Event()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            request = json.loads(self.read_body())
            reply = scripted.next_reply(request)
            if isinstance(reply, float):
                closing.wait(reply)
                reply = ""
            if callable(reply):
                reply = reply(request)
            if isinstance(reply, int):
                self.send(reply, b'{"error": {"message": "no"}}')
            elif request.get("stream"):
                self.send(200, _events(reply), {"Content-Type": "text/event-stream"})
            else:
                self.send(200, _whole(reply))

    with serving(Handler) as base_url:
        scripted.url = f"{base_url}/v1"
        yield scripted
        closing.set()


def _events(text: str) -> bytes:
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    base = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    lines = [
        {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]}
        for piece in pieces
    ]
    lines.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    sent = "".join(f"data: {json.dumps(line)}\n\n" for line in lines)
    return f"{sent}data: [DONE]\n\n".encode()


def _whole(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


class Desk(NamedTuple):
    """The corpus of a test and the way to make managers over it."""

    corpus: Corpus
    store: Callable[..., Any]
    manager: Callable[..., Manager]


@pytest.fixture
async def desk(database: Database) -> Desk:
    """`await desk.store(url, markdown)` stores a page, `desk.manager(llm=...)` answers."""
    await ensure_schema(
        database, embedding_model=ENCODER.model_name, embedding_dimensions=ENCODER.dimensions
    )
    embedder = Embedder(ENCODER, ENCODER.dimensions)
    corpus = Corpus(database)
    indexer = Indexer(corpus, ParentChildNodeParser(), embedder)

    async def store(url: str, markdown: str, *, published: datetime | None = None) -> None:
        await indexer.index(page(url, markdown, published=published), depth=0)

    def manager(
        llm: Any = None,
        *,
        config: AnswerConfig | None = None,
        retrieval: RetrievalConfig | None = None,
        **parts: Any,
    ) -> Manager:
        config, retrieval = config or AnswerConfig(), retrieval or RetrievalConfig()
        reranker = ChunkReranker(
            LocalRerank(encoder=ENCODER, analyze=analyze, analyze_question=query_terms), LOCAL
        )
        searcher = Searcher(database, embedder, retrieval)
        extractive = ExtractiveSynthesizer(config)
        chosen = {
            "planner": Planner(QueryAnalyzer(mode="rule_based")),
            "scope": everything,
            "finder": EvidenceFinder(searcher, corpus, reranker, retrieval, config, ENCODER.encode),
            "synthesizer": LanguageModelSynthesizer(llm, extractive, config) if llm else extractive,
            "reflector": Reflector(llm, config),
            "pages": corpus,
            "encode": ENCODER.encode,
        }
        return Manager(**{**chosen, **parts})

    return Desk(corpus, store, manager)


async def everything(question: Question, _: Any) -> tuple[Any, tuple[str, ...]]:
    return question.urls or None, ()


def page(url: str, markdown: str, *, published: datetime | None = None) -> NormalizedDocument:
    title = markdown.splitlines()[0].lstrip("# ")
    return NormalizedDocument(
        url=url,
        requested_url=url,
        title=title,
        markdown=markdown,
        html="",
        published_at=published,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC),
        content_hash=uuid.uuid5(uuid.NAMESPACE_URL, markdown).hex,
        status=200,
        source="builtin",
    )


def build_evidence(
    text: str, *, number: int = 1, url: str = "https://docs.test/page", **values: Any
) -> Evidence:
    """A passage that is the whole of its page."""
    match = ChildMatch(
        node_id=str(uuid.uuid4()), char_start=0, char_end=len(text), text=text,
        similarity=0.5, lexical=1.0, page_lexical=1.0, fused=0.5,
    )  # fmt: skip
    chunk = RetrievedChunk(
        chunk_id=uuid.uuid4(), document_id=uuid.uuid5(uuid.NAMESPACE_URL, url), source_url=url,
        site="docs.test", title=values.pop("title", "Page"), text=text,
        section_heading=None, chunk_index=0, char_start=0, char_end=len(text),
        token_start=0, token_end=100, score=0.5, raw_similarity=0.5, depth=0,
        fetched_at=datetime(2026, 1, 1, tzinfo=UTC), matches=(match,),
        **{key: values.pop(key) for key in ("heading_path", "published_at") if key in values},
    )  # fmt: skip
    given = {"relevance": 0.9, "order": 0.9, "unquotable": unquotable_spans(text, 0)}
    return Evidence(number=number, chunk=chunk, **{**given, **values})


def build_gathered(
    *evidence: Evidence, asked: Sequence[str] = (), confidence: float = 0.9
) -> Gathered:
    """Passages judged for a question and its parts, found with a confidence of its own."""
    step = RetrieveStep(
        year_mode="none",
        recent_year_window=3,
        passages=len(evidence),
        coverage=0.9,
        confidence=confidence,
    )
    ranked = [RankedChunk(chunk=e.quotable_chunk, reranked_score=e.relevance) for e in evidence]
    plain: Any = {"term_idf": {}, "encode": ENCODER.encode, "profile": LOCAL}
    parts = ((text, judged(text, ranked, **plain)) for text in asked)
    return Gathered(evidence=evidence, step=step, judged=tuple(parts))


def build_desk(*evidence: Evidence, **values: Any) -> CitationDesk:
    pages = {each.chunk.source_url: each.chunk.text for each in evidence}
    return CitationDesk(evidence, pages, **{"encode": ENCODER.encode, **values})


@pytest.fixture
def make_evidence() -> Callable[..., Evidence]:
    """Builds passages; each is a page of its own."""
    return build_evidence


@pytest.fixture
def make_gathered() -> Callable[..., Gathered]:
    """Builds what retrieval found out of passages."""
    return build_gathered


@pytest.fixture
def make_desk() -> Callable[..., CitationDesk]:
    """Builds citation desks whose stored pages are the passages."""
    return build_desk


@pytest.fixture
def encode() -> Encode:
    """The bundled embedding."""
    return ENCODER.encode
