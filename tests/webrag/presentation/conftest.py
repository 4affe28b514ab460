from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

from webrag.embedding.bundled_model import BundledVectors
from webrag.orchestration.judge import judged
from webrag.orchestration.models import (
    AnswerUnit,
    ExpansionDecision,
    ExpansionStep,
    OrchestrationResult,
    OrchestrationTiming,
    QueryAnalysis,
    RankedChunk,
)
from webrag.retrieval.models import ChildMatch, CorpusStats, RetrievedChunk

NAMESPACE = UUID("00000000-0000-5000-8000-000000000000")
FETCHED = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

INSTALL_URL = "https://docs.example.org/guide/install"
CONFIG_URL = "https://docs.example.org/guide/reference/config"
LIMITS_URL = "https://docs.example.org/guide/reference/limits"
INSTALL_PAGE = """# Install

Kiln needs Python 3.11 or newer. Install it with pip; nothing else has to be set up.

## From a package

Run `pip install kiln`. The command downloads one wheel and takes less than a minute on an \
ordinary connection.

## From source

Clone the repository, then run `make build`. Building from source needs a C compiler.
"""
CONFIG_PAGE = """# Configuration

Kiln reads its settings from the environment once, at start.

## Timeouts

`KILN_TIMEOUT` sets how many seconds a firing may take. The default is 120 seconds. A value of 0 \
switches the limit off.

## Retries

`KILN_RETRIES` sets how often a failed firing is tried again. The default is 3.
"""


ENCODE = BundledVectors().encode


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare with a reviewed file; a missing file is written and fails once."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "data" / f"{name}.txt"
        if not path.exists():
            path.write_text(text + "\n", encoding="utf-8")
            pytest.fail(f"{path.name} did not exist; it was written: review it")
        assert text + "\n" == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def count_tokens() -> Callable[[str], int]:
    return lambda text: (len(text) + 3) // 4


@pytest.fixture
def make_chunk() -> Callable[..., RankedChunk]:
    """A ranked chunk of a page: `text` and `focus` are found in `page`."""

    def make(
        page: str,
        text: str,
        *,
        url: str = INSTALL_URL,
        title: str | None = "Install",
        heading: str | None = "Install",
        focus: str | None = None,
        score: float = 0.8,
        confidence: float | None = None,
        adjacent: bool = False,
        sub_query: str | None = None,
        index: int = 0,
        **chunk_fields: Any,
    ) -> RankedChunk:
        start = page.index(text)
        matches: tuple[ChildMatch, ...] = ()
        if focus is not None:
            at = start + text.index(focus)
            matches = (
                ChildMatch(
                    node_id=str(uuid5(NAMESPACE, focus)),
                    char_start=at,
                    char_end=at + len(focus),
                    text=focus,
                    heading_path=(heading,) if heading else (),
                    similarity=0.6,
                    lexical=2.0,
                    page_lexical=0.5,
                    fused=0.7,
                ),
            )
        chunk = RetrievedChunk(
            **{
                "chunk_id": uuid5(NAMESPACE, url + text),
                "document_id": uuid5(NAMESPACE, url),
                "source_url": url,
                "site": "docs.example.org",
                "title": title,
                "text": text,
                "section_heading": heading,
                "chunk_index": index,
                "char_start": start,
                "char_end": start + len(text),
                "token_start": 0,
                "token_end": max(1, len(text) // 4),
                "score": score,
                "raw_similarity": score,
                "depth": 0,
                "fetched_at": FETCHED,
                "matches": matches,
                **chunk_fields,
            }
        )
        return RankedChunk(
            chunk=chunk,
            reranked_score=0.0 if adjacent else score,
            confidence=confidence,
            is_locality_expanded=adjacent,
            source_sub_query=sub_query,
        )

    return make


@pytest.fixture
def make_unit() -> Callable[..., AnswerUnit]:
    """Part of a chunk as a unit that may answer."""

    def make(ranked: RankedChunk, text: str, score: float = 1.0) -> AnswerUnit:
        start = ranked.chunk.char_start + ranked.chunk.text.index(text)
        return AnswerUnit(
            chunk_id=ranked.chunk.chunk_id,
            char_start=start,
            char_end=start + len(text),
            score=score,
        )

    return make


@pytest.fixture
def make_result() -> Callable[..., OrchestrationResult]:
    """A result around the chunks; any field can be given."""

    def make(*chunks: RankedChunk, **fields: Any) -> OrchestrationResult:
        urls = tuple(dict.fromkeys(ranked.chunk.source_url for ranked in chunks))
        query = fields.get("query", "How do I set the timeout of a firing?")
        values: dict[str, Any] = {
            "query": query,
            "seed_urls": (INSTALL_URL,),
            "chunks": chunks,
            "citations": (),
            "query_analysis": QueryAnalysis(
                original_query=query,
                sub_queries=fields.pop("sub_queries", (query,)),
                query_type="how_to",
                complexity="simple",
                key_concepts=("timeout", "firing"),
                method="rule_based",
            ),
            "corpus_stats": CorpusStats(
                total_documents=3,
                total_parent_chunks=47,
                total_tokens=12_340,
                documents_matched=urls,
            ),
            "timing": OrchestrationTiming(
                ingestion_ms=410, retrieval_ms=9, reranking_ms=12, merge_ms=1, total_ms=432
            ),
            "mode": "chunk",
            "final_decision": ExpansionDecision(
                action="stop",
                reason="The best results are good and alike.",
                confidence="high",
                rule="good_plateau",
                rule_number=4,
            ),
            "term_idf": {"timeout": 3.0, "fire": 2.0, "firing": 2.0},
            "total_urls_ingested": 1,
            "urls_fetched": (INSTALL_URL,),
            "confidence": 0.72,
            "confidence_band": "medium",
        }
        result = OrchestrationResult(**(values | fields))
        ranked = sorted(result.chunks, key=lambda item: -item.reranked_score)
        best = judged(
            result.query,
            ranked,
            wordings=result.wordings,
            term_idf=result.term_idf,
            encode=None,
        )
        return result.model_copy(update={"units": result.units or best.units})

    return make


@pytest.fixture
def make_step() -> Callable[..., ExpansionStep]:
    def make(**fields: Any) -> ExpansionStep:
        values: dict[str, Any] = {
            "iteration": 1,
            "depth": 1,
            "source_url": INSTALL_URL,
            "top_score_before": 0.42,
            "top_score_after": 0.81,
            "decision": "expand_breadth",
            "reason": "The scores are low everywhere.",
            "rule": "low_scores",
            "duration_ms": 1200.0,
        }
        return ExpansionStep(**(values | fields))

    return make


@pytest.fixture
def pages() -> dict[str, str]:
    return {INSTALL_URL: INSTALL_PAGE, CONFIG_URL: CONFIG_PAGE}


@pytest.fixture
def install_chunk(make_chunk: Callable[..., RankedChunk]) -> RankedChunk:
    """The whole install page as one parent; its focus is the part about packages."""
    return make_chunk(
        INSTALL_PAGE,
        INSTALL_PAGE.strip("\n"),
        focus=INSTALL_PAGE[INSTALL_PAGE.index("Run `pip") : INSTALL_PAGE.index("\n\n## From s")],
        score=0.41,
    )


@pytest.fixture
def timeout_chunk(make_chunk: Callable[..., RankedChunk]) -> RankedChunk:
    """The configuration page's part about timeouts."""
    text = CONFIG_PAGE[CONFIG_PAGE.index("## Timeouts") : CONFIG_PAGE.index("\n\n## Retries")]
    return make_chunk(
        CONFIG_PAGE,
        text,
        url=CONFIG_URL,
        title="Configuration",
        heading="Timeouts",
        focus=text[text.index("`KILN_TIMEOUT`") :],
        score=0.93,
        confidence=0.88,
        index=1,
    )


@pytest.fixture
def retries_chunk(make_chunk: Callable[..., RankedChunk]) -> RankedChunk:
    """The part after the one about timeouts, as adjacent context."""
    return make_chunk(
        CONFIG_PAGE,
        CONFIG_PAGE[CONFIG_PAGE.index("## Retries") :].strip("\n"),
        url=CONFIG_URL,
        title="Configuration",
        heading="Retries",
        adjacent=True,
        index=2,
    )


@pytest.fixture(scope="session")
def cl100k() -> Callable[[str], int]:
    """The tokenizer the application counts with."""
    from llama_index.core.utils import get_tokenizer

    encode = get_tokenizer()
    return lambda text: len(encode(text))
