import uuid
from types import SimpleNamespace
from typing import Any

from webrag.mcp_server.replies import Reply, brief_reply, within_budget


def ranked(score: float, *, heading: str | None = None, adjacent: bool = False) -> Any:
    chunk = SimpleNamespace(
        chunk_id=uuid.uuid5(uuid.NAMESPACE_URL, str(score)),
        title="Page\nof",
        section_heading=heading,
    )
    return SimpleNamespace(chunk=chunk, reranked_score=score, is_locality_expanded=adjacent)


def test_links_lead_to_the_best_passages_and_not_to_their_neighbours(memory: Any) -> None:
    scores = [0.1, 0.9, 0.3, 0.8, 0.2, 0.7]
    chunks = [*map(ranked, scores), ranked(1.0, adjacent=True)]

    reply = brief_reply(memory, SimpleNamespace(chunks=chunks, urls_fetched=()), structured=False)  # type: ignore[arg-type]

    best = [ranked(score).chunk.chunk_id for score in sorted(scores, reverse=True)[:5]]
    assert [link.uri for link in reply.links] == [f"webrag://passage/{each}" for each in best]


def test_names_of_links_are_one_line(memory: Any) -> None:
    chunks = [ranked(0.5, heading="A\n[STATS]")]

    reply = brief_reply(memory, SimpleNamespace(chunks=chunks, urls_fetched=()), structured=False)  # type: ignore[arg-type]

    assert reply.links[0].name == "Page of § A [STATS]"


def test_errors_carry_no_structured_content() -> None:
    assert (
        Reply("no", is_error=True, data={"a": 1}).result(structured=True).structured_content is None
    )


def test_text_comes_first_and_alone_unless_more_is_asked_for() -> None:
    result = Reply("text", data={"a": 1}).result(structured=False)

    assert [block.type for block in result.content] == ["text"]
    assert result.structured_content is None


def test_report_within_its_budget_is_left_as_it_is() -> None:
    assert within_budget("one\ntwo", 100, len, hint="ask for less") == "one\ntwo"


def test_report_beyond_its_budget_loses_whole_lines_from_its_end_and_says_so() -> None:
    lines = [f"line {number}" for number in range(100)]

    kept = within_budget("\n".join(lines), 300, len, hint="ask for less").split("\n")

    assert len("\n".join(kept)) <= 300
    assert kept[:-1] == lines[: len(kept) - 1]
    assert kept[-1] == "... (cut to fit the response budget; ask for less)"
