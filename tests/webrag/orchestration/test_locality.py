from typing import Any
from uuid import UUID

import pytest

from webrag.orchestration.steps.result import neighbours
from webrag.retrieval.chunk_search import in_reading_order

from .conftest import Lab, build_ranked

SECTIONS = "".join(
    f"<h2>Section {n}</h2><p>{' '.join(f'word{n}x{i}' for i in range(60))}.</p>" for n in range(6)
)
PAGE = f"<html><head><title>L</title></head><body><main><h1>L</h1>{SECTIONS}</main></body></html>"


@pytest.fixture
async def parents(lab: Lab, static_site: Any) -> Any:
    """The stored parents of a page with several sections, as matched chunks with no score yet."""
    site = static_site({"/": PAGE})
    page = await lab.acquirer.acquire(site + "/")
    stored = await lab.corpus.page(page.url)
    rows = await lab.searcher.chunks_at([(UUID(stored.document_id), index) for index in range(50)])
    return [
        {
            "chunk_id": row.chunk_id,
            "document_id": row.document_id,
            "source_url": row.source_url,
            "chunk_index": row.chunk_index,
            "text": row.text,
            "tokens": row.token_count,
        }
        for row in rows
    ]


async def adjacent(
    lab: Lab, ranked: Any, radius: int = 1, min_score: float = 0.5, token_budget: int = 100_000
) -> Any:
    found = await neighbours(
        ranked, lab.searcher, radius=radius, min_score=min_score, token_budget=token_budget
    )
    return [item.chunk.chunk_index for item in found]


async def test_neighbours_of_a_strong_chunk_are_added_and_marked(lab: Lab, parents: Any) -> None:
    found = await neighbours(
        [build_ranked(0.9, **parents[2])], lab.searcher, radius=1, min_score=0.5, token_budget=9_999
    )

    assert sorted(item.chunk.chunk_index for item in found) == [1, 3]
    assert {(item.reranked_score, item.is_locality_expanded) for item in found} == {(0.0, True)}


async def test_weak_chunk_gets_no_neighbours(lab: Lab, parents: Any) -> None:
    assert await adjacent(lab, [build_ranked(0.4, **parents[2])]) == []


async def test_matched_chunk_is_not_added_again(lab: Lab, parents: Any) -> None:
    ranked = [build_ranked(0.9, **parents[2]), build_ranked(0.1, **parents[3])]

    assert await adjacent(lab, ranked) == [1]


async def test_shared_neighbour_is_added_once(lab: Lab, parents: Any) -> None:
    ranked = [build_ranked(0.9, **parents[1]), build_ranked(0.8, **parents[3])]

    assert sorted(await adjacent(lab, ranked)) == [0, 2, 4]


@pytest.mark.parametrize("limits", [{"radius": 0}, {"token_budget": 0}])
async def test_no_room_means_no_neighbours(lab: Lab, parents: Any, limits: Any) -> None:
    assert await adjacent(lab, [build_ranked(0.9, **parents[2])], **limits) == []


async def test_budget_goes_to_neighbours_of_the_best_chunk(lab: Lab, parents: Any) -> None:
    ranked = [build_ranked(0.9, **parents[5]), build_ranked(0.6, **parents[1])]

    found = await adjacent(lab, ranked, token_budget=parents[4]["tokens"] + 5)

    assert found == [4]


def test_pages_are_in_order_of_their_best_chunk_and_chunks_as_they_stand() -> None:
    a, b = "https://d.test/a", "https://d.test/b"
    ranked = [
        build_ranked(0.5, source_url=a, chunk_index=0),
        build_ranked(0.9, source_url=b, chunk_index=7),
        build_ranked(0.0, source_url=b, chunk_index=6, is_locality_expanded=True),
    ]

    found = in_reading_order(
        ranked, chunk=lambda item: item.chunk, score=lambda item: item.reranked_score
    )

    assert [(i.chunk.source_url, i.chunk.chunk_index) for i in found] == [(b, 6), (b, 7), (a, 0)]
