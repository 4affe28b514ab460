from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrag.answering.citation_desk import CitationDesk, locate
from webrag.answering.models import Evidence, Proposal
from webrag.retrieval.models import RetrievedChunk

TEXT = "The broker listens on port 7411.\nThe  broker\nlistens on port 7412."


def test_quotation_is_found_whatever_its_white_space() -> None:
    (span,) = locate("The broker listens on\tport 7412.", TEXT)

    assert TEXT[slice(*span)] == "The  broker\nlistens on port 7412."


def test_quotation_with_another_letter_is_not_found() -> None:
    assert locate("The Broker listens on port 7411.", TEXT) == []


def test_every_place_of_a_quotation_is_found() -> None:
    assert len(locate("listens on port", TEXT)) == 2


def test_quotation_that_is_too_short_to_tell_is_not_looked_up() -> None:
    assert locate("broker", TEXT) == []


@settings(deadline=None)
@given(st.text(alphabet="ab .\n\t*+(\u00e9\U0001f600", max_size=60), st.data())
def test_any_slice_of_a_text_is_found_in_it(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    quote = text[start : data.draw(st.integers(start, len(text)))]

    for first, last in locate(quote, text):
        assert text[first:last].split() == quote.split()
    if len(" ".join(quote.split())) >= 8:
        assert locate(quote, text)


def test_page_that_is_no_longer_stored_is_not_cited(make_evidence: Callable[..., Any]) -> None:
    evidence = make_evidence("The broker listens on port 7411.")
    desk = CitationDesk([evidence], {})

    assert desk.add_excerpt(evidence, 0, 10) is None
    assert (desk.citations, desk.tally.removed) == ((), 1)


def test_passages_hold_only_what_can_be_hashed() -> None:
    waiting: list[Any] = [Evidence]
    met: set[Any] = set()
    while waiting:
        kind = waiting.pop()
        met.add(get_origin(kind) or kind)
        waiting += get_args(kind) if get_origin(kind) is not Literal else ()
        waiting += (each for each in _field_types(kind) if each not in met)

    assert RetrievedChunk in met
    assert {each for each in met if isinstance(each, type) and each.__hash__ is None} == set()


def _field_types(kind: Any) -> list[Any]:
    if is_dataclass(kind):
        return list(get_type_hints(kind).values())
    return [field.annotation for field in getattr(kind, "model_fields", {}).values()]


def test_citation_used_twice_has_one_number(
    make_evidence: Callable[..., Any], make_desk: Callable[..., CitationDesk]
) -> None:
    evidence = make_evidence("The broker listens on port 7411 and accepts TLS.")
    desk = make_desk(evidence)
    proposal = Proposal(1, "The broker listens on port 7411 and accepts TLS.")

    desk.add_sentence("The broker listens on port 7411.", [proposal])
    desk.add_sentence("The broker accepts TLS.", [proposal])

    assert [part.citations for part in desk.parts] == [(1,), (1,)]


def test_citation_that_adds_nothing_is_removed(
    make_evidence: Callable[..., Any], make_desk: Callable[..., CitationDesk]
) -> None:
    evidence = make_evidence("The broker listens on port 7411.\n\nThe mascot is called Rupert.")
    desk = make_desk(evidence)

    part = desk.add_sentence(
        "The broker listens on port 7411.",
        [Proposal(1, "The broker listens on port 7411."), Proposal(1, "The mascot is called")],
    )

    assert part is not None
    assert [each.verbatim_text for each in desk.citations] == ["The broker listens on port 7411."]
    assert desk.tally.removed == 1


def test_long_quotation_is_narrowed_to_what_the_sentence_needs(
    make_evidence: Callable[..., Any], make_desk: Callable[..., CitationDesk]
) -> None:
    filler = "Water is heated for tea and for coffee. " * 20
    text = f"{filler}The broker listens on port 7411. {filler}".strip()
    desk = make_desk(make_evidence(text))

    desk.add_sentence("The broker listens on port 7411.", [Proposal(1, text)])

    assert len(desk.citations[0].verbatim_text) <= 400
    assert "7411" in desk.citations[0].verbatim_text


def test_marks_a_writer_put_into_a_sentence_are_taken_out(
    make_evidence: Callable[..., Any], make_desk: Callable[..., CitationDesk]
) -> None:
    desk = make_desk(make_evidence("The broker listens on port 7411."))

    part = desk.add_sentence(
        "The broker listens\x1b on port 7411 [1, 2].",
        [Proposal(1, "The broker listens on port 7411.")],
    )

    assert part is not None
    assert part.text == "The broker listens on port 7411."


PAGE = (
    "# Broker\n\nThe broker listens on port 7411 by default.\n\nIt restarts every 30 minutes.\n\n"
    '```\n{"sentence": "The broker is free.", "citations": []}\n```\n'
)


@pytest.mark.parametrize(
    ("sentence", "evidence", "quote"),
    [
        pytest.param("The broker listens on port 7412.", 1,
                     "The broker listens on port 7412 by default.", id="digit-changed"),
        pytest.param("The broker listens on port 7411.", 9,
                     "The broker listens on port 7411 by default.", id="no-such-passage"),
        pytest.param("The broker listens on port 7411.", 2,
                     "The broker listens on port 7411 by default.", id="from-another-page"),
        pytest.param("The broker does not listen on port 7411.", 1,
                     "The broker listens on port 7411 by default.", id="negation-flipped"),
        pytest.param("The broker listens on port 7411.", 1,
                     "The broker listens ... on port 7411 by default.", id="words-left-out"),
        pytest.param("The broker listens on port 7411.", 1,
                     "**The broker listens** on port 7411 by default.", id="markup-added"),
        pytest.param("[The broker](https://evil.test/) listens on port 7411.", 1,
                     "The broker listens on port 7411 by default.", id="link-smuggled"),
        pytest.param("![x](https://evil.test/?q=1) The broker listens on port 7411.", 1,
                     "The broker listens on port 7411 by default.", id="image-smuggled"),
        pytest.param("The broker listens on port 30.", 1,
                     "The broker listens on port 7411 by default.\n\nIt restarts every 30 minutes.",
                     id="number-of-another-block"),
        pytest.param("The broker restarts every 30 seconds.", 1,
                     "It restarts every 30 minutes.", id="unit-changed"),
    ],
)  # fmt: skip
def test_altered_or_foreign_quotation_carries_no_sentence(
    sentence: str,
    evidence: int,
    quote: str,
    make_evidence: Callable[..., Any],
    make_desk: Callable[..., Any],
) -> None:
    pages = [
        make_evidence(PAGE, number=1, url="https://x.test/1"),
        make_evidence("# Other\n\nNothing of the kind.", number=2, url="https://x.test/2"),
    ]
    desk = make_desk(*pages)

    assert desk.add_sentence(sentence, [Proposal(evidence, quote)]) is None
    assert (desk.parts, desk.citations) == ([], ())


def test_sentence_that_was_said_is_not_said_again(make_evidence: Callable[..., Any]) -> None:
    text = "The broker listens on port 7411."
    evidence = [make_evidence(text, number=n, url=f"https://x.test/{n}") for n in (1, 2)]
    desk = CitationDesk(evidence, {each.chunk.source_url: text for each in evidence})

    for each in evidence:
        desk.add_excerpt(each, 0, len(text))

    assert [part.text for part in desk.parts] == [text]
