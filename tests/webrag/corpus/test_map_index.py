import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from webrag.corpus.map_index import MapIndex, pack_listing
from webrag.ingestion.site_maps.listing import ListedPage, SiteListing

KILN = ListedPage("https://docs.test/kiln", "Firing a kiln", ["Ramp and soak"], ["The cone bends."])
GLAZE = ListedPage("https://docs.test/glaze", "Glazes", [], ["A kiln and a cone of glaze."])


def index(*pages: ListedPage, **occurrences: list[int]) -> MapIndex:
    return MapIndex(pack_listing(SiteListing(pages, occurrences)))


def best(known: MapIndex, query: str) -> str:
    return known.urls[int(np.argmax(known.scores(query)))]


def test_title_counts_more_than_text() -> None:
    assert best(index(GLAZE, KILN), "kiln") == KILN.url


def test_names_count_more_than_text() -> None:
    other = ListedPage("https://docs.test/o", "Other", [], ["Ramp, then soak."])

    assert best(index(other, KILN), "ramp soak") == KILN.url


def test_stems_of_the_site_are_found_by_words_that_share_them() -> None:
    # Porter's stem of "replication" is "replic", that of "university" "univers".
    known = index(GLAZE, KILN, replic=[1], univers=[0])

    assert best(known, "How does replication work?") == KILN.url
    assert best(known, "universities") == GLAZE.url


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


def test_dates_of_pages_are_kept_for_those_that_have_one() -> None:
    at = datetime(2024, 3, 1, 12, tzinfo=UTC)
    dated = replace(KILN, modified_at=at)

    assert index(GLAZE, dated).changed == {KILN.url: at.timestamp()}
    assert not index(GLAZE, KILN).changed


PAGES = st.lists(
    st.builds(
        ListedPage,
        st.from_regex(r"https://docs\.test/[a-z0-9]{1,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=("C", "Z")), max_size=12),
        st.lists(st.from_regex(r"[a-z ]{1,12}", fullmatch=True), max_size=3),
        st.lists(st.text(max_size=30), max_size=2),
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

    begun = time.perf_counter()
    known.scores(query)

    assert time.perf_counter() - begun < 1.0
