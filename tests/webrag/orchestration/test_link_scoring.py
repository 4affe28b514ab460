import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.models import LinkCandidate
from webrag.orchestration.links.scoring import (
    LinkQuestion,
    link_signals,
    score_links,
    similarities,
)

from .conftest import ENCODER

QUESTION = "What is the replica lag?"


def link(url: str = "https://d.test/x", **values: Any) -> LinkCandidate:
    given = {"source_url": "https://d.test/", "url": url}
    return LinkCandidate(**{**given, **values})


def scored(
    *links: Any,
    encoder: Any = None,
    questions: Any = (QUESTION,),
    in_turn: bool = False,
    site_map: Any = None,
) -> Any:
    return score_links(
        links,
        [LinkQuestion.of(question, encoder) for question in questions],
        encoder=encoder,
        in_turn=in_turn,
        site_map=site_map or {},
    )


def signals(
    *links: LinkCandidate, encoder: Any = None, question: str = QUESTION, site_map: Any = None
) -> dict[str, list[float]]:
    found = link_signals(
        links,
        [LinkQuestion.of(question, encoder)],
        encoder=encoder,
        site_map=site_map or {},
        site_text={},
    )
    return {name: values[0].tolist() for name, values in found.items()}


@pytest.mark.parametrize(
    ("candidate", "signal", "value"),
    [
        pytest.param(link(title="Lag"), "title", 1.0, id="the question holds all of the anchor"),
        pytest.param(link(title="Replicas"), "title", 1.0, id="stemmed"),
        pytest.param(link(title="next"), "title", 0.0, id="generic anchor says nothing"),
        pytest.param(link("https://d.test/replica-lag"), "path", 1.0, id="all of the address"),
        pytest.param(link(), "similarity", 0.0, id="no encoder"),
        pytest.param(link("https://d.test/genindex.html"), "is_page", 0.5, id="listing"),
    ],
)
def test_signal(candidate: Any, signal: Any, value: Any) -> None:
    assert signals(candidate)[signal] == [pytest.approx(value)]


@pytest.mark.parametrize(
    "faq",
    [
        link("https://d.test/faq.html", title="Help"),
        link("https://d.test/9", title="Frequently Asked Questions"),
        link("https://d.test/9", title="Häufig gestellte Fragen"),
        link("https://d.test/9", title="よくある質問"),
    ],
)
def test_page_of_questions_and_answers_is_read_before_pages_that_promise_as_little(
    faq: LinkCandidate,
) -> None:
    others = [link(f"https://d.test/{n}", title="Sails") for n in range(8)]
    told = link("https://d.test/lag", title="Replica lag")

    found = scored(*others, faq, told)

    assert [each.url for each in found[:2]] == [told.url, faq.url]


def test_site_named_after_questions_and_answers_makes_none_of_its_pages_likelier() -> None:
    (elsewhere,) = scored(link("https://d.test/9", title="Sails"))
    (there,) = scored(link("https://faq.d.test/9", title="Sails"))

    assert there.score == elsewhere.score


def test_what_the_sites_own_map_says_of_a_target_raises_links_of_pages_as_well() -> None:
    links = [link(f"https://d.test/{n}", title="Sails") for n in range(5)]

    found = scored(*links, site_map={"https://d.test/3": 0.5})

    assert found[0].url == "https://d.test/3"
    assert found[0].score > 2 * found[1].score


def test_link_named_by_one_word_of_the_question_beats_a_long_name_that_holds_it_too() -> None:
    long, short = "https://d.test/a", "https://d.test/b"
    links = [link(long, title="Lag of ports behind sails and masts"), link(short, title="Lag")]

    assert scored(*links)[0].url == short


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What does Get return?", 1.0),
        ("When do I use `get`?", 1.0),
        ("How do I get a replica?", 0.0),
        ("How To get a replica?", 0.0),
    ],
)
def test_word_that_questions_are_put_in_counts_where_it_is_written_as_a_name(
    question: str, value: float
) -> None:
    assert signals(link(title="Get"), question=question)["title"] == [value]


def test_sentence_around_a_link_tells_what_its_name_does_not() -> None:
    links = [
        link("https://d.test/a", title="pgx", description="See pgx, which delays copies."),
        link("https://d.test/b", title="pgy", description="See pgy, which paints pictures."),
    ]

    best, _ = scored(*reversed(links), encoder=ENCODER)

    assert best.url == "https://d.test/a"


def test_address_tells_of_a_link_without_words() -> None:
    assert signals(link("https://d.test/replica-lag"), encoder=ENCODER)["similarity"][0] > 0.5


def test_each_part_of_a_question_is_served_in_turn() -> None:
    replicas = [link(f"https://d.test/{n}", title=f"Replica lag {n}") for n in range(5)]
    backup = link("https://d.test/b", title="Backup at night, and work for tired sailors")
    questions = (QUESTION, "How are backups pruned?")

    found = [each.anchor for each in scored(*replicas, backup, questions=questions)]
    turns = [each.anchor for each in scored(*replicas, backup, questions=questions, in_turn=True)]

    assert backup.title not in found[:2]
    assert backup.title in turns[:2]


def test_the_more_links_there_are_the_less_likely_each_is() -> None:
    few, many = (
        scored(*(link(f"https://d.test/{n}", title=f"Sail {n}") for n in range(count)))
        for count in (3, 300)
    )

    assert few[0].score > 5 * many[0].score


def test_target_takes_its_best_link() -> None:
    poor = link(source_url="https://d.test/a")
    good = link(source_url="https://d.test/b", title="Replica lag")

    (found,) = scored(poor, good)

    assert (found.page_url, found.anchor) == ("https://d.test/b", "Replica lag")


def test_best_target_comes_first() -> None:
    found = scored(link("https://d.test/a"), link("https://d.test/b", title="Replica lag"))

    assert [candidate.url for candidate in found] == ["https://d.test/b", "https://d.test/a"]


def test_link_counts_by_the_part_of_the_question_it_fits() -> None:
    (without,), (found,) = (
        scored(link(title="Backups"), questions=questions)
        for questions in ((QUESTION,), (QUESTION, "Where are backups?"))
    )

    assert found.score > without.score


def test_similar_anchor_beats_an_unrelated_one_without_a_common_word() -> None:
    found = scored(
        link("https://d.test/a", title="Cookery"),
        link("https://d.test/b", title="Mirror delay"),
        encoder=ENCODER,
    )

    assert found[0].url == "https://d.test/b"


def test_folder_has_no_parent() -> None:
    (found,) = scored(link(source_url=""))

    assert found.page_url is None


def similarity(question: str, text: str) -> float:
    return float(similarities([LinkQuestion.of(question, ENCODER)], [text], ENCODER)[0, 0])


def test_similarity_of_equal_texts_is_one() -> None:
    assert similarity("replica lag", "lag replica") == pytest.approx(1)


def test_similarity_is_zero_without_tokens() -> None:
    assert similarity("replica lag", "") == 0.0
    assert similarity("?", "replica lag") == 0.0


def test_thousands_of_links_take_a_fraction_of_a_second_of_the_processor() -> None:
    named = [
        f"{word} {n}" for word in ("replica", "sail", "cook", "lag", "port") for n in range(999)
    ]
    many = [link(f"https://d.test/{n}.html", title=name) for n, name in enumerate(named)]
    scored(*many, encoder=ENCODER)  # reads the weights

    begun = time.process_time()
    scored(*many, encoder=ENCODER, questions=(QUESTION, "How are sails cooked?"))

    assert time.process_time() - begun < 0.5  # .08 on an idle machine


def test_only_the_best_are_given_back_where_no_more_are_wanted() -> None:
    links = [link(f"https://d.test/{n}", title=f"Replica lag {n}") for n in range(9)]
    question = [LinkQuestion.of(QUESTION, None)]

    def best(at_most: int | None) -> list[str]:
        found = score_links(links, question, encoder=None, at_most=at_most)
        return [each.url for each in found]

    assert best(3) == best(None)[:3]


LONG = "replica lag, cookery and sailing with children"


def test_similarity_falls_with_what_else_a_text_is_about() -> None:
    assert similarity("replica lag", LONG) < similarity("replica lag", "replica lag") - 0.05


def test_word_counts_less_where_most_texts_hold_it() -> None:
    texts = ["Replica cookery", "Replica sailing", "Replica children", "mirror delay"]
    question = [LinkQuestion.of("How far may the lag of a replica grow?", ENCODER)]

    (alone,) = similarities(question, texts, ENCODER)
    (together,) = similarities(question, texts, ENCODER, tells_apart=True)

    assert together[0] - together[3] < alone[0] - alone[3] - 0.05


def test_words_of_the_question_count_in_a_long_sentence_more_than_its_whole_says() -> None:
    whole = [ENCODER.token_vectors(text)[1].sum(axis=0) for text in ("replica lag", LONG)]
    cosine = whole[0] @ whole[1] / np.prod([np.linalg.norm(each) for each in whole])

    assert similarity("replica lag", LONG) > cosine + 0.05


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
    found = scored(*candidates, questions=(question,), encoder=ENCODER)
    scores = [candidate.score for candidate in found]

    assert len({candidate.url for candidate in found}) == len(found)
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert sum(scores) <= 1


def test_word_that_names_every_target_says_little() -> None:
    names = ["add", "commit", "fetch", "merge", "push", "stash", "tag", "bisect"]
    links = [link(f"https://d.test/git-{name}.html", title=f"git-{name}") for name in names]

    shares = signals(*links, question="git bisect run")["title"]

    values = dict(zip([each.title for each in links], shares, strict=True))
    assert values.pop("git-bisect") > 0.3
    assert max(values.values()) < 0.1


@given(st.integers(1, 30), st.integers(0, 30))
def test_signals_of_words_stay_within_bounds_however_common_the_words(same: int, own: int) -> None:
    links = [link(f"https://d.test/lag/{n}", title="replica lag") for n in range(same)]
    links += [link(f"https://d.test/x{n}", title=f"own{n}") for n in range(own)]

    found = signals(*links)
    assert all(0.0 <= value <= 1.0 + 1e-9 for values in found.values() for value in values)
    assert max(found["title"]) == pytest.approx(1.0)
