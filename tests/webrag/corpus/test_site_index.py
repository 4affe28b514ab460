import time
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.site_index import MapIndex, pack_listing
from webrag.ingestion.characters import storable
from webrag.ingestion.site_maps.listing import ListedPage, MapContent, Section, SiteListing, line

KILN = ListedPage(
    "https://docs.test/kiln", "Firing a kiln", ["Ramp and soak"], [Section("", "The cone bends.")]
)
GLAZE = ListedPage(
    "https://docs.test/glaze", "Glazes", [], [Section("", "A kiln and a cone of glaze.")]
)


def index(*pages: ListedPage, **occurrences: list[int]) -> MapIndex:
    return MapIndex(pack_listing(SiteListing(pages, occurrences)))


def best(known: MapIndex, query: str) -> str:
    return known.urls[int(np.argmax(known.scores(query)))]


def test_title_counts_more_than_text() -> None:
    assert best(index(GLAZE, KILN), "kiln") == KILN.url


def test_names_count_more_than_text() -> None:
    other = ListedPage("https://docs.test/o", "Other", [], [Section("", "Ramp, then soak.")])

    assert best(index(other, KILN), "ramp soak") == KILN.url


def test_stems_of_the_site_are_found_by_words_that_share_them() -> None:
    # Porter's stem of "replication" is "replic", that of "university" "univers".
    known = index(GLAZE, KILN, replic=[1], univers=[0])

    assert best(known, "How does replication work?") == KILN.url
    assert best(known, "universities") == GLAZE.url


@pytest.mark.parametrize("content", get_args(MapContent))
def test_packed_map_tells_what_it_has_of_the_pages(content: MapContent) -> None:
    assert MapIndex(pack_listing(SiteListing((KILN,), content=content))).content == content


def test_whole_identifier_weighs_more_than_its_parts_by_a_stem_of_the_site_too() -> None:
    parts = ListedPage("https://docs.test/parts", "Ramp errors", ["Fatal ramp"], [])
    # Sphinx's index has identifiers as words.
    known = index(parts, KILN, fatal_ramp=[1])

    assert best(known, "What is fatal_ramp?") == KILN.url


def test_scores_say_how_much_of_the_question_was_found() -> None:
    known = index(GLAZE, KILN)

    assert 0 < float(known.scores("kiln unheard")[1]) <= 1
    assert not known.scores("unheard words").any()
    assert not known.scores("").any()


def test_only_names_that_hold_words_of_the_question_are_shown() -> None:
    page = ListedPage("https://docs.test/p", "P", ["Ramp and soak", "Cones", "Ramp, soak, hold"])

    assert index(page).names_about(0, ["soak and hold", "a ramp"]) == [
        "Ramp, soak, hold",
        "Ramp and soak",
    ]


PAGES = st.lists(
    st.builds(
        ListedPage,
        st.from_regex(r"https://docs\.test/[a-z0-9]{1,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=("C", "Z")), max_size=12),
        st.lists(st.from_regex(r"[a-z ]{1,12}", fullmatch=True), max_size=3),
        st.lists(st.builds(Section, st.just(""), st.text(max_size=30)), max_size=2),
    ),
    min_size=1,
    max_size=6,
)


@given(PAGES, st.text(max_size=20))
def test_packing_keeps_pages_and_scores_stay_between_zero_and_one(
    pages: list[ListedPage], query: str
) -> None:
    known = index(*pages)

    assert known.urls == [page.url for page in pages]
    assert known.titles == [page.title for page in pages]
    scores = known.scores(query)
    assert ((scores >= 0) & (scores <= 1.0001)).all()


def test_ten_thousand_pages_are_ranked_quickly() -> None:
    pages = [
        ListedPage(f"https://docs.test/{n}", f"Page {n}", [f"name{n % 50} part{n % 7}"])
        for n in range(10_000)
    ]
    known = index(*pages, **{f"word{n}": list(range(n, 10_000, n + 1)) for n in range(50)})
    query = " ".join(f"word{n} name{n}" for n in range(12))

    begun = time.process_time()
    known.scores(query)

    assert time.process_time() - begun < 1.0


def full_text(*sections: Section) -> MapIndex:
    titled = ListedPage("https://docs.test/t", "Only a title")
    page = ListedPage("https://docs.test/p", "Page", [], list(sections))
    return MapIndex(pack_listing(SiteListing((titled, page), content="texts")))


def test_passages_that_hold_most_of_the_question_come_first() -> None:
    known = full_text(
        Section("Cones", "A cone bends."),
        Section("Holding", "Hold the kiln at its peak."),
        Section("Glazes", "Blue."),
    )

    found = known.passages_about(1, ["How long is the kiln held at its peak?"])

    assert found[0] == Section("Holding", "Hold the kiln at its peak.")


def test_page_of_which_only_the_title_is_held_has_no_passages() -> None:
    assert full_text(Section("", "Text.")).passages_about(0, ["title"]) == []


def test_map_without_the_pages_own_text_has_no_passages() -> None:
    assert index(KILN, GLAZE).passages_about(0, ["cone"]) == []


SECTIONS = st.lists(
    st.builds(
        lambda heading, word, count: Section(line(heading), word * count),
        st.text(max_size=30),
        st.text("ab \x1f\n\ud83d\u00e9", min_size=1, max_size=9),
        st.integers(1, 800),
    ),
    max_size=3,
)


@given(SECTIONS, st.lists(st.text(max_size=20), max_size=2))
def test_passages_are_short_parts_of_the_text_below_its_headings(
    sections: list[Section], queries: list[str]
) -> None:
    kept = [Section(heading, storable(text)) for heading, text in sections]

    found = full_text(*kept).passages_about(1, queries)

    plain = [(heading, " ".join(text.split())) for heading, text in kept]
    assert bool(found) == any(text for _, text in plain)
    assert all(0 < len(each.text) <= 1_400 for each in found)
    assert all(
        any(each.heading == heading and each.text in text for heading, text in plain)
        for each in found
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is a query?", "A query."),
        ("Where do I set max_connections?", "Then max_connections is 7."),
        ("What does --no-ff do?", "Use --no-ff here."),
        ("Is there a cafe?", "The Caf\u00e9 of the guild."),
        ("How is a port chosen?", "The port is 80."),
    ],
)
def test_passage_is_found_by_words_in_other_forms_and_at_their_beginning_only(
    question: str, text: str
) -> None:
    others = [Section("", "It supports what opens and reports: supporting."), Section("", "No.")]

    assert full_text(*others, Section("", text)).passages_about(1, [question])[0].text == text


def test_words_of_a_heading_count_for_the_passages_below_it() -> None:
    below = Section("Idle timeout", "95 s by default.")

    found = full_text(Section("", "One."), Section("", "Two."), below).passages_about(
        1, ["What is the idle timeout?"]
    )

    assert found[0] == below


def test_rare_word_far_down_a_long_section_is_found() -> None:
    far = Section("", "word " * 30_000 + "pyrometer " + "word " * 9_000)

    assert "pyrometer" in full_text(far).passages_about(1, ["pyrometer"])[0].text


def test_rarer_words_weigh_more() -> None:
    weights = index(GLAZE, KILN).term_weights("the kiln and the glaze, unheard")

    assert weights["kiln"] < weights["glaze"] < weights["unheard"]
