from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.embedding.bundled_model import BundledVectors
from webrag.orchestration.judge import Judgement, judged
from webrag.orchestration.models import AnswerUnit, RankedChunk

from .conftest import build_ranked

ENCODE = BundledVectors().encode
MANUAL = """\
The broker keeps messages on disk. A replica follows its leader and may fall behind it.
A replica that is more than 512 megabytes behind the leader is expelled.

Start the broker with this command:

```
turnip serve --port 7411
```

| Option | Default |
|---|---|
| port | 7411 |
| replicas | 3 |

`--keep-going`  \nContinues after an error. Nothing is undone.
"""
TIMELINE = "The project began in 2009. It moved to a foundation in 2014 and has three maintainers."


def judge(question: str, *texts: str, wordings: Sequence[str] = ()) -> tuple[list[str], Judgement]:
    """The units in words, best first, and the judgement."""
    ranked = [build_ranked(0.9 - place / 10, text) for place, text in enumerate(texts)]
    weights: dict[str, dict[str, float]] = {each: {} for each in wordings}
    found = judged(question, ranked, wordings=weights, term_idf={}, encode=ENCODE)
    return [said(unit, ranked) for unit in found.units], found


def said(unit: AnswerUnit, ranked: Sequence[RankedChunk]) -> str:
    chunk = next(item.chunk for item in ranked if item.chunk.chunk_id == unit.chunk_id)
    return chunk.text[unit.char_start - chunk.char_start : unit.char_end - chunk.char_start]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How far may a replica fall behind before it is expelled?", "512 megabytes"),
        ("What is the default number of replicas?", "replicas | 3"),
        ("Which option continues after an error?", "Continues after an error."),
        ("How do I start the broker?", "turnip serve"),
    ],
)
def test_unit_that_answers_comes_first(question: str, answer: str) -> None:
    units, _ = judge(question, MANUAL, TIMELINE)

    assert answer in units[0]


def test_wording_finds_what_the_question_does_not_name() -> None:
    question, wording = "When is a follower thrown out?", "a replica behind the leader is expelled"

    units, _ = judge(question, TIMELINE, MANUAL, wordings=[wording])

    assert "512 megabytes" in units[0]


@pytest.mark.parametrize(
    "contents",
    [
        "1. How to fire a kiln\n2. How to clean a kiln",
        "See also:\n\n- Which lids a kiln has\n- How to fire a kiln",
    ],
)
def test_entry_that_only_repeats_the_question_does_not_answer(contents: str) -> None:
    page = f"{contents}\n\n## How to fire a kiln\n\nClose the lid and press the red button."

    units, _ = judge("How do I fire a kiln?", page)

    assert "Close the lid" in units[0]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which option fires a kiln twice?", "`--again`\n: fires a kiln twice\n\nIt is hot."),
        ("Which one should I take for this, JSON or YAML?", "- JSON\n- TOML\n\nIt is hot."),
        ("May I fire a kiln twice?", "fire a kiln twice\n\nIt is hot."),
    ],
)
def test_words_of_the_question_may_answer_below_a_name_as_a_choice_and_as_yes(
    question: str, text: str
) -> None:
    units, _ = judge(question, text)

    assert not units[0].startswith("It is hot")


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "How do I erase a recording?",
            "Recordings are listed in the archive.\n\nDeleting clips is done with the red button."
            "\n\nA recording may last an hour.",
            "red button",
        ),
        (
            "Which illnesses does the vaccine prevent?",
            "The vaccine is kept in a fridge.\n\nIt protects against measles and mumps.\n\n"
            "The vaccine was tested in 1970.",
            "measles",
        ),
    ],
)
def test_words_that_mean_what_the_question_says_outweigh_a_repeated_one(
    question: str, text: str, answer: str
) -> None:
    units, _ = judge(question, text)

    assert answer in units[0]


def test_items_of_a_list_that_answer_together_are_one_unit() -> None:
    items = "name the kiln\n- name the law that it breaks"
    text = f"To be complete, a request must\n\n- come from an office\n- {items}\n\nIt was hot."

    units, _ = judge("What must a request name to be complete?", text)

    assert units[0] == items


def test_listing_comes_before_the_sentence_that_announces_it() -> None:
    told = "To run all the integration tests of the broker, use this:"
    text = f"{told}\n\n```\nturnip check --all\n```\n\nIt takes long."

    units, _ = judge("How are all the integration tests of the broker run?", text, TIMELINE)

    assert units[:2] == ["turnip check --all", told]


def test_listing_comes_behind_sentences_that_say_more_than_to_announce_it() -> None:
    told = "One call may do several actions. To replace a broker by a new one in one call, do this:"
    text = f"{told}\n\n```\nturnip -D old -S new\n```\n\nIt takes long."

    units, _ = judge("Which one call of several actions replaces a broker by a new one?", text)

    assert units[:2] == [told, "turnip -D old -S new"]


def test_list_that_a_unit_announces_is_quoted_as_a_whole() -> None:
    told = "The broker looks for its limit in the following places and in this order:"
    items = "limit field of the record\n- argument\n- entry of the file\n- built-in value"

    units, _ = judge(
        "In which places and order does the broker look for its limit?",
        MANUAL,
        f"{told}\n\n- {items}",
    )

    assert units[:2] == [told, items]


def test_what_two_pages_say_word_for_word_is_given_once() -> None:
    said = "The kiln beeps when it is hot, if the sound of the system is on."

    units, _ = judge("When does the kiln beep?", f"{said}\n\nRed.", f"Old.\n\n{said}")

    assert units.count(said) == 1


def test_passage_that_answers_is_trusted_more_than_one_that_does_not() -> None:
    question = "How far may a replica fall behind before it is expelled?"

    assert judge(question, MANUAL)[1].confidence > 0.8 > judge(question, TIMELINE)[1].confidence


def test_what_never_names_the_identifier_asked_for_is_not_trusted() -> None:
    question = "What is the default of `replica_limit` for a replica?"
    told = "The limit of a replica is set once. The default of the replica limit is 40."

    named = judge(question, told.replace("The limit", "`replica_limit`"))[1].confidence

    assert judge(question, told)[1].confidence <= 0.6 < named


SCAN = "`scan time number`  \nTime in seconds between two scans of the kernel routing table."
ASKED_SCAN = "What is the default scan time of the kernel protocol?"
WORDED_SCAN = ["Time in seconds between two scans of the kernel routing table; default 20."]


def test_what_never_speaks_of_a_default_does_not_say_which_it_is() -> None:
    _, silent = judge(ASKED_SCAN, SCAN, wordings=WORDED_SCAN)
    _, told = judge(ASKED_SCAN, SCAN[:-1] + "; default 20.", wordings=WORDED_SCAN)

    assert silent.confidence <= 0.6 < told.confidence


@pytest.mark.parametrize(
    "text",
    [
        "| Option | Default |\n|---|---|\n| scan time | 20 |\n| persist | off |",
        "## Defaults of the kernel protocol\n\nThe scan time is 20 seconds.",
        "Defaults of the kernel protocol:\n\n- a scan time of 20 seconds\n- no learning of routes",
    ],
)
def test_default_may_stand_above_its_value(text: str) -> None:
    _, found = judge(ASKED_SCAN, text, wordings=WORDED_SCAN)

    assert found.confidence > 0.6


def test_default_may_be_a_column_of_a_table_that_began_in_an_earlier_passage() -> None:
    rows = "| scan time | 20 | of the kernel routing table |\n| persist | off | of routes |"
    path = ("Kernel protocol", "Option | Default | Meaning")
    ranked = [build_ranked(0.9, rows, heading_path=path)]

    found = judged(ASKED_SCAN, ranked, term_idf={}, encode=ENCODE)

    assert found.confidence > 0.6


@pytest.mark.parametrize(
    "told",
    [
        "The kernel protocol's scan time is 20 seconds unless another one is set.",
        "If it is omitted, the scan time of the kernel protocol is 20 seconds.",
        "The scan time of the kernel protocol is 20 seconds when `scan` is not given.",
    ],
)
def test_default_may_be_what_is_taken_where_nothing_is_given(told: str) -> None:
    _, found = judge(ASKED_SCAN, told, wordings=WORDED_SCAN)

    assert found.confidence > 0.6


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("Was ist der voreingestellte Port des Kessels?", "Standardwert des Ports am Kessel: 20."),
        ("¿Cuál es el puerto predeterminado del horno?", "El puerto por defecto del horno es 20."),
    ],
)
def test_default_may_be_called_by_another_word_of_its_language(question: str, told: str) -> None:
    assert judge(question, told, wordings=[told])[1].confidence > 0.6


def test_default_may_be_the_column_of_a_row_that_is_cut_in_its_cells() -> None:
    more = "It says how the kernel protocol learns of its routes, and of no other table. " * 10
    text = (
        "| Option | Default | Meaning |\n|---|---|---|\n"
        f"| scan time of the kernel protocol | The scan time is 20 seconds. | {more}|"
    )

    found = judge(ASKED_SCAN, text, wordings=WORDED_SCAN)[1]

    assert found.confidence > 0.6


def test_default_in_another_row_is_not_that_of_a_row() -> None:
    scans = "".join(
        f"| {own} scan time of the kernel protocol | 0-{own} |\n" for own in range(20, 24)
    )
    text = f"| Option | Value |\n|---|---|\n{scans}| lid | Default<br>red<br>blue<br>green |"

    _, silent = judge(ASKED_SCAN, text, wordings=WORDED_SCAN)

    assert silent.confidence <= 0.6


def test_sentence_that_names_the_place_of_the_answer_is_not_called_high() -> None:
    question = "How is the filter of the kettle cleaned?"
    told = "How the filter of the kettle is cleaned {}. The kettle heats water."

    pointing = judge(question, told.format("is described in care and cleaning of it"))[1]
    telling = judge(question, told.format("matters: it is cleaned with citric acid"))[1]

    assert pointing.confidence < 0.8 <= telling.confidence


def test_sentence_beside_the_answer_may_name_the_place_of_something_else() -> None:
    told = "The kettle heats water for tea.\n\nHow its filter is cleaned is described in care."

    units, found = judge("What does the kettle heat?", told)

    assert units[0] == told
    assert found.confidence >= 0.8


def test_words_of_another_language_are_compared_by_their_stems() -> None:
    page = "Der Server wird im Hof gekühlt. In den Dateien stehen die Namen der Kundinnen."

    found = judge("In welcher Datei steht der Name einer Kundin?", page)[1]

    assert found.confidence > 0.7  # .54 where "Dateien" is another word than "Datei"


def test_nothing_is_known_of_passages_that_were_not_ranked() -> None:
    found = judged("Which port?", [build_ranked(0.0, MANUAL)], term_idf={}, encode=ENCODE)

    assert found.confidence == 0
    assert found.units


def test_every_passage_has_a_unit() -> None:
    pages = [f"Page {number} says that the port is {number}." for number in range(8)]

    units, _ = judge("Which port?", *pages)

    assert {unit.split()[1] for unit in units} == set("01234567")


def test_no_passage_gives_no_unit_and_no_confidence() -> None:
    assert judge("Which port?")[1] == Judgement((), 0.0)


@given(st.text(max_size=60), st.lists(st.sampled_from([MANUAL, TIMELINE, "", "x"]), max_size=3))
def test_units_never_overlap_and_the_confidence_is_a_chance(
    question: str, texts: list[str]
) -> None:
    _, found = judge(question, *texts)

    assert 0 <= found.confidence <= 1
    for place, unit in enumerate(found.units):
        assert not any(unit.overlaps(other) for other in found.units[:place])


KILN = """\
# turnip-kiln(1) Manual Page

## NAME

turnip-kiln - Heat clay until it is hard

## NOTES

When the kiln is opened early, the kiln is damaged.

## OPTIONS

`--force` fires a kiln that is open, though a kiln may break.
"""


@pytest.mark.parametrize(
    "question", ["kiln", "what is turnip kiln", "What does the kiln do?", "kiln overview"]
)
def test_who_asks_what_a_thing_is_gets_the_line_that_opens_its_page(question: str) -> None:
    units, _ = judge(question, KILN)

    assert units[0] == "turnip-kiln - Heat clay until it is hard"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what is a glaze", "A glaze is a coat of glass on clay."),
        ("glaze", "A glaze is a coat of glass on clay."),
        ("what does slip mean", "Thin clay that joins two parts."),
        ("Was ist Schamotte?", "Schamotte ist gebrannter und wieder zermahlener Ton."),
    ],
)
def test_sentence_and_entry_that_define_a_thing_answer_what_it_is(
    question: str, answer: str
) -> None:
    texts = (
        "## Work with glaze\n\nThe glaze must dry. Brush the glaze on twice."
        " A second glaze is thin. Dry slip cracks. Schamotte wird gesiebt.",
        "Clay shrinks. A glaze is a coat of glass on clay.\n\n`slip`  \n"
        "Thin clay that joins two parts."
        "\n\nSchamotte ist gebrannter und wieder zermahlener Ton.",
    )

    units, _ = judge(question, *texts)

    assert units[0] == answer


def test_line_that_opens_a_page_does_not_answer_another_question_about_its_subject() -> None:
    units, _ = judge("When is the kiln damaged?", KILN)

    assert "opened early" in units[0]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Is it free?", "The kiln is free and open source. You may copy it."),
        ("How do I install it?", "Run `pip install kiln` to install it."),
        ("Who wrote it?", "Ada Lovelace wrote it in 1843."),
    ],
)
def test_question_with_one_word_of_weight_does_not_ask_what_that_word_is(
    question: str, text: str
) -> None:
    _, found = judge(question, text)

    assert found.confidence > 0.8


@pytest.mark.parametrize("name", ["WhatsApp", "COSE"])
def test_name_that_begins_as_a_question_does_is_asked_about_whole(name: str) -> None:
    _, found = judge(name, f"{name} is a format for sealed letters.")

    assert found.confidence > 0.8


@pytest.mark.parametrize(
    "question", ["glaze", "the glaze", "glaze, c’est quoi ?", "glaze was ist das", "glaze, qué es"]
)
def test_word_that_no_unit_explains_is_not_likely_answered(question: str) -> None:
    _, found = judge(question, "Brush the glaze on twice and dry the glaze.")

    assert found.confidence <= 0.6
