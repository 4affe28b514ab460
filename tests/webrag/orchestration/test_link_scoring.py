from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.models import LinkCandidate
from webrag.orchestration.config import ExpansionConfig
from webrag.orchestration.links.scoring import (
    LinkQuestion,
    max_similarity,
    passage_scores,
    score_links,
)
from webrag.retrieval.models import WordingScores

from .conftest import ENCODER, build_chunk, build_match, build_result

WEIGHTS = ExpansionConfig().signal_weights
QUESTION = "What is the replica lag?"


def link(url: str = "https://d.test/x", **values: Any) -> LinkCandidate:
    given = {"source_url": "https://d.test/", "source_page_id": 1, "url": url}
    return LinkCandidate(**{**given, **values})


def scored(
    *links: Any,
    passages: Any = None,
    encoder: Any = None,
    questions: Any = (QUESTION,),
    seeds: Any = (),
    in_turn: bool = False,
    site_map: Any = None,
) -> Any:
    return score_links(
        links,
        [LinkQuestion.of(question, encoder) for question in questions],
        seeds=seeds,
        passages=passages or {},
        encoder=encoder,
        weights=WEIGHTS,
        in_turn=in_turn,
        site_map=site_map,
    )


@pytest.mark.parametrize(
    ("candidate", "signal", "value"),
    [
        pytest.param(link(title="Replica lag"), "title", 1.0, id="anchor says all"),
        pytest.param(link(title="Replicas"), "title", 1.0, id="stemmed; no link knows the rest"),
        pytest.param(link(title="next"), "title", 0.0, id="generic anchor"),
        pytest.param(
            link(title="Lag"), "title_share", 1.0, id="the question holds all of the anchor"
        ),
        pytest.param(link(title="next"), "title_share", 0.0, id="generic anchor says nothing"),
        pytest.param(link(description="the lag of a replica"), "description", 1.0, id="sentence"),
        pytest.param(link("https://d.test/replica/lag.html"), "title", 1.0, id="path"),
        pytest.param(link(), "passage", 0.0, id="navigation has no passage"),
        pytest.param(link(), "similarity", 0.0, id="no encoder"),
    ],
)
def test_signal(candidate: Any, signal: Any, value: Any) -> None:
    (found,) = scored(candidate)

    assert found.breakdown[signal] == pytest.approx(value)


def test_what_the_sites_own_map_says_of_a_target_raises_links_of_pages_as_well() -> None:
    with_map, without = (
        scored(link(), site_map=said)[0] for said in ({"https://d.test/x": 0.5}, None)
    )

    assert with_map.breakdown["site_map"] == 0.5
    assert with_map.score == pytest.approx(without.score + 0.5 * WEIGHTS["site_map"])


def test_target_is_named_by_all_its_links_together() -> None:
    links = [link(title="Replicas"), link(title="Their lag"), link("https://d.test/lag")]

    best, other = scored(*links)

    assert (best.url, best.breakdown["title"]) == ("https://d.test/x", 1.0)
    assert other.breakdown["title"] < 0.5


def test_word_that_names_few_targets_says_more() -> None:
    links = [link(f"https://d.test/replica-{n}") for n in range(9)] + [link("https://d.test/lag")]

    assert scored(*links)[0].url == "https://d.test/lag"


def test_link_named_by_one_word_of_the_question_beats_a_long_name_that_holds_it_too() -> None:
    long, short = "https://d.test/a", "https://d.test/b"
    links = [link(long, title="Lag of ports behind sails and masts"), link(short, title="Lag")]

    assert scored(*links)[0].url == short


def test_sentence_around_a_link_tells_what_its_name_does_not() -> None:
    links = [
        link("https://d.test/a", title="pgx", description="See pgx, which delays copies."),
        link("https://d.test/b", title="pgy", description="See pgy, which paints pictures."),
    ]

    best, other = scored(*reversed(links), encoder=ENCODER)

    assert best.url == "https://d.test/a"
    assert best.breakdown["similarity"] > other.breakdown["similarity"]


def test_address_tells_of_a_link_without_words() -> None:
    (found,) = scored(link("https://d.test/replica-lag"), encoder=ENCODER)

    assert found.breakdown["similarity"] > 0.5


def test_newer_target_wins_a_tie() -> None:
    old, new = "https://d.test/2019/03/04/replica-lag", "https://d.test/2024/03/04/replica-lag"
    told = "https://d.test/a/b/c/replica-lag"

    assert [each.url for each in scored(link(old), link(new))] == [new, old]
    at = datetime(2025, 1, 1, tzinfo=UTC)
    assert scored(link(old), link(new), link(told, modified_at=at))[0].url == told


def test_each_part_of_a_question_is_served_in_turn() -> None:
    replicas = [link(f"https://d.test/{n}", title=f"Replica lag {n}") for n in range(5)]
    backup = link("https://d.test/b", title="Backup at night, and work for tired sailors")
    questions = (QUESTION, "How are backups pruned?")

    found = [each.title for each in scored(*replicas, backup, questions=questions)]
    turns = [each.title for each in scored(*replicas, backup, questions=questions, in_turn=True)]

    assert backup.title not in found[:2]
    assert backup.title in turns[:2]


def test_passage_signal_is_that_of_the_passage_around_the_link() -> None:
    passages = {"https://d.test/": [(0, 50, 0.2), (50, 90, 0.9)]}

    (found,) = scored(link(char_start=50), passages=passages)

    assert found.breakdown["passage"] == 0.9


def test_score_is_the_weighted_sum() -> None:
    (found,) = scored(link(title="Replica lag"))

    assert found.score == pytest.approx(0.60 + 0.60)


def test_target_counts_by_the_named_page_whose_address_it_shares_most() -> None:
    seeds = ("https://d.test/a/", "https://d.test/book/ch15-00-pointers.html")

    (found,) = scored(link("https://d.test/book/ch15-06-cycles.html"), seeds=seeds)

    assert found.breakdown["seed_path"] == 0.5


def test_folder_above_a_named_page_gains_nothing_from_its_address() -> None:
    seeds = ("https://d.test/guide/start.html",)

    (found,) = scored(link("https://d.test/guide/", source_url=""), seeds=seeds)

    assert found.breakdown["seed_path"] == 0.0


def test_target_takes_its_best_link() -> None:
    poor = link(source_url="https://d.test/a")
    good = link(source_url="https://d.test/b", title="Replica lag")

    (found,) = scored(poor, good)

    assert (found.parent_url, found.title) == ("https://d.test/b", "Replica lag")


def test_best_target_comes_first() -> None:
    found = scored(link("https://d.test/a"), link("https://d.test/b", title="Replica lag"))

    assert [candidate.url for candidate in found] == ["https://d.test/b", "https://d.test/a"]


def test_link_counts_by_the_part_of_the_question_it_fits() -> None:
    (found,) = scored(link(title="Backups"), questions=(QUESTION, "Where are backups?"))

    assert found.breakdown["title"] == 1.0


def test_similar_anchor_beats_an_unrelated_one_without_a_common_word() -> None:
    found = scored(
        link("https://d.test/a", title="Cookery"),
        link("https://d.test/b", title="Mirror delay"),
        encoder=ENCODER,
    )

    assert found[0].url == "https://d.test/b"


def test_folder_has_no_parent() -> None:
    (found,) = scored(link(source_url=""))

    assert found.parent_url is None


def test_max_similarity_of_equal_texts_is_one() -> None:
    question = LinkQuestion.of("replica lag", ENCODER)

    assert max_similarity(question, ENCODER.token_vectors("lag replica")[1]) == pytest.approx(1)


def test_max_similarity_is_zero_without_tokens() -> None:
    question = LinkQuestion.of("replica lag", ENCODER)

    assert max_similarity(question, np.zeros((0, 256), np.float32)) == 0.0
    assert max_similarity(LinkQuestion.of("?", ENCODER), question.vectors) == 0.0


def result(*passages: tuple[float, float], page_lexical: float = 1.0) -> Any:
    matches = tuple(
        build_match(
            char_start=10 * n,
            char_end=10 * n + 10,
            lexical=lexical,
            similarity=similarity,
            page_lexical=page_lexical,
        )
        for n, (lexical, similarity) in enumerate(passages)
    )
    return build_result(build_chunk(source_url="https://d.test/", matches=matches))


def values_of(found: Any) -> list[float]:
    return [value for _, _, value in found["https://d.test/"]]


def test_passages_are_scored_between_the_typical_and_the_best() -> None:
    passages = [(4.0, 1.0), (3.0, 0.75), (2.0, 0.5), (1.0, 0.25), (0.0, 0.0)]

    found = passage_scores([result(*passages)], children_total=5)

    assert values_of(found) == pytest.approx([1.0, 0.5, 0.0, 0.0, 0.0])


def test_passage_gains_nothing_from_the_rest_of_its_page() -> None:
    passages = [(4.0, 1.0), (3.0, 0.75), (2.0, 0.5)]

    alone = passage_scores([result(*passages, page_lexical=0.1)], children_total=3)

    assert alone == passage_scores([result(*passages, page_lexical=1.0)], children_total=3)


def test_passages_not_retrieved_count_as_the_least() -> None:
    found = passage_scores([result((4.0, 1.0), (2.0, 0.5))], children_total=10)

    assert values_of(found) == [1.0, 0.0]


def test_single_passage_is_the_best() -> None:
    found = passage_scores([result((1.0, 0.4))], children_total=1)

    assert found == {"https://d.test/": [(0, 10, 1.0)]}


def test_passage_counts_by_the_wording_it_fits_best() -> None:
    def other(lexical: float, similarity: float) -> WordingScores:
        return WordingScores(similarity=similarity, lexical=lexical, page_lexical=1.0, fused=0.5)

    matches = [
        build_match(
            lexical=4.0, similarity=1.0, char_start=0, char_end=10, wordings=(other(0.0, 0.1),)
        ),
        build_match(
            lexical=0.0, similarity=0.1, char_start=10, char_end=20, wordings=(other(4.0, 1.0),)
        ),
    ]
    chunk = build_chunk(source_url="https://d.test/", matches=tuple(matches))

    found = passage_scores([build_result(chunk)], children_total=2)["https://d.test/"]

    best = {start: max(v for s, _, v in found if s == start) for start, _, _ in found}
    assert best == {0: 1.0, 10: 1.0}


def test_nothing_retrieved_scores_no_passage() -> None:
    assert passage_scores([build_result()], children_total=3) == {}


texts = st.sampled_from(["", "next", "Replica lag", "backups of replicas", "cookery", "ラグ"])
links = st.builds(
    link,
    url=st.sampled_from([f"https://d.test/{name}" for name in ("a", "replica-lag", "c/d.html")]),
    title=texts,
    description=texts,
    source_depth=st.integers(0, 8),
    char_start=st.none() | st.integers(0, 100),
)


@given(st.lists(links, max_size=12), texts)
def test_targets_are_distinct_ordered_and_bounded(candidates: Any, question: Any) -> None:
    found = scored(*candidates, questions=(question,), seeds=("https://d.test/a",), encoder=ENCODER)
    scores = [candidate.score for candidate in found]

    assert len({candidate.url for candidate in found}) == len(found)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= sum(WEIGHTS.values()) for score in scores)


def in_list(count: int) -> list[LinkCandidate]:
    """Links of one passage, the last of which says what the question asks."""
    names = [*(f"other{n}" for n in range(count - 1)), "lag"]
    return [
        link(f"https://d.test/{name}", title=name, char_start=place)
        for place, name in enumerate(names)
    ]


@pytest.mark.parametrize(("count", "value"), [(1, 0.8), (4, 0.8), (16, 0.4), (64, 0.2)])
def test_relevance_of_a_passage_is_shared_where_it_links_to_many(count: int, value: float) -> None:
    passages = {"https://d.test/": [(0, 100, 0.8)]}

    found = scored(*in_list(count), passages=passages)

    assert [each.breakdown["passage"] for each in found] == pytest.approx([value] * count)


def test_one_target_linked_many_times_keeps_the_relevance_of_its_passage() -> None:
    links = [link(title=f"lag {n}", char_start=n) for n in range(50)]

    (found,) = scored(*links, passages={"https://d.test/": [(0, 100, 0.8)]})

    assert found.breakdown["passage"] == pytest.approx(0.8)


def test_link_named_in_a_sentence_beats_the_entries_of_a_relevant_list() -> None:
    links = [
        *in_list(60)[:-1],
        link("https://d.test/aside", title="replica lag", source_url="https://d.test/other"),
    ]

    best, *_ = scored(*links, passages={"https://d.test/": [(0, 100, 1.0)]})

    assert best.url == "https://d.test/aside"


@pytest.mark.parametrize("signal", ["title", "description"])
def test_word_that_names_every_target_says_little(signal: str) -> None:
    names = ["add", "commit", "fetch", "merge", "push", "stash", "tag", "bisect"]
    links = [
        link(f"https://d.test/git-{name}.html", title=f"git-{name}", description=f"git {name}")
        for name in names
    ]

    found = scored(*links, questions=("git bisect run",))

    values = {each.title: each.breakdown[signal] for each in found}
    assert values.pop("git-bisect") > 0.3
    assert max(values.values()) < 0.1


@given(st.integers(1, 30), st.integers(0, 30))
def test_signals_of_words_stay_within_bounds_however_common_the_words(same: int, own: int) -> None:
    links = [link(f"https://d.test/lag/{n}", title="replica lag") for n in range(same)]
    links += [link(f"https://d.test/x{n}", title=f"own{n}") for n in range(own)]

    for each in scored(*links):
        assert all(0.0 <= value <= 1.0 for value in each.breakdown.values())
    assert max(each.breakdown["title"] for each in scored(*links)) == pytest.approx(1.0)
