from typing import Any

import pytest

from webrag.orchestration.steps.research import wordings_by_part
from webrag.question import Question

from .conftest import AT_SEED, ENCODER, ONE_LINK_AWAY, TWO_LINKS_AWAY, Lab, html, texts

PORT = "Which TCP port does the broker listen on"
EXPELLED = "how far may a replica fall behind before it is expelled"
BOTH = f"{PORT}, and {EXPELLED}?"


async def test_question_of_two_parts_goes_on_until_both_are_answered(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(BOTH, urls=manual + "/", research_mode="deep"))

    assert {"TCP port 7411" in texts(result), "512 megabytes" in texts(result)} == {True}
    assert [part.text for part in result.parts] == [PORT, EXPELLED]


async def test_confidence_is_that_of_the_part_that_is_met_worst(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(BOTH, urls=manual + "/"))

    port, expelled = result.parts
    assert port.confidence > expelled.confidence == result.confidence
    assert (expelled.is_open, port.confidence_band) == (True, "high")


async def test_stop_names_the_part_that_is_open(lab: Lab, manual: Any) -> None:
    question = Question.of(
        f"{PORT}, and which colour does the accounting ledger print its totals in?",
        urls=manual + "/",
        research_mode="deep",
    )

    reason = (await lab.engine().run(question)).final_decision.reason

    assert "still open: 'which colour does the accounting ledger print its totals in'" in reason
    assert PORT not in reason


@pytest.mark.parametrize(
    ("parts", "pages"),
    [
        ((PORT, "may the TCP port of the broker be changed while it listens"), 2),
        ((PORT, "how many folders does the broker watch"), 1),
    ],
    ids=["one sentence for both", "a sentence for each"],
)
async def test_parts_that_one_sentence_answers_are_looked_for_on_a_promising_page(
    lab: Lab, static_site: Any, parts: Any, pages: int
) -> None:
    site = static_site(
        {
            "/": html(
                "Turnip",
                "The broker listens on TCP port 7411 unless the port of the broker is changed.",
                "Turnips are white. " * 20,
                "The broker watches three folders.",
                links=(("/port.html", "Changing the TCP port of the broker", ""),),
            ),
            "/port.html": html(
                "Changing the TCP port", "While it listens, nothing can be changed."
            ),
        }
    )

    result = await lab.engine().run(
        Question.of("Turnip", parts=parts, urls=site + "/", research_mode="deep")
    )

    assert [part.confidence_band for part in result.parts] == ["high", "high"]
    assert len(result.urls_fetched) == pages


async def test_parts_of_the_caller_take_the_place_of_the_patterns(lab: Lab, manual: Any) -> None:
    parts = (AT_SEED, TWO_LINKS_AWAY, ONE_LINK_AWAY)

    result = await lab.engine().run(
        Question.of("Turnip", parts=parts, urls=manual + "/", research_mode="deep")
    )

    assert tuple(part.text for part in result.parts) == parts
    assert all(said in texts(result) for said in ("7411", "512 megabytes", "system account"))


async def test_best_passage_of_each_part_is_marked_as_found_for_it(lab: Lab, manual: Any) -> None:
    result = await lab.engine().run(Question.of(BOTH, urls=manual + "/", research_mode="deep"))

    found = {item.chunk.chunk_id: item.source_sub_query for item in result.chunks}
    assert [found[part.chunk_id] for part in result.parts if part.chunk_id] == [PORT, EXPELLED]


async def test_question_of_one_part_has_none(lab: Lab, manual: Any) -> None:
    assert (await lab.engine().run(Question.of(AT_SEED, urls=manual + "/"))).parts == ()


async def test_links_are_chosen_for_the_part_that_is_open(lab: Lab, manual: Any) -> None:
    question = Question.of(
        f"{PORT}, and how is the setup program unpacked by the installation?",
        urls=manual + "/",
        max_pages=1,
        research_mode="deep",
    )

    result = await lab.engine().run(question)

    assert result.urls_fetched == (manual + "/", manual + "/install.html")


def test_wording_belongs_to_the_part_it_fits() -> None:
    parts = ("How do I pick the dselect look", "which option installs suggested extras too")
    theme, extras = "themes make aptitude look like dselect", "install suggested packages option"

    assert wordings_by_part(parts, (extras, theme), ENCODER) == {
        parts[0]: (theme,),
        parts[1]: (extras,),
    }


def test_wording_that_fits_two_parts_is_one_of_both() -> None:
    parts = ("default of max-ncache-ttl", "limit of max-ncache-ttl")
    both = "max-ncache-ttl default and limit"

    assert wordings_by_part(parts, (both,), ENCODER) == dict.fromkeys(parts, (both,))


def test_no_part_is_left_without_a_wording() -> None:
    without = wordings_by_part(("a", "b"), ("c", "d"), None)
    unlike = wordings_by_part(("tall ships", "?"), ("sailing",), ENCODER)

    assert without == dict.fromkeys(("a", "b"), ("c", "d"))
    assert unlike == dict.fromkeys(("tall ships", "?"), ("sailing",))
