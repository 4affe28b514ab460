import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.question.patterns import quantity_asked


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("What does the kettle cost?", "It is sold for 40 €.", "It holds 2 litres."),
        ("Was kostet der Kessel?", "Er ist kostenlos.", "Er fasst 2 Liter."),
        ("How much does the warden get paid?", "She earns $300 a week.", "There are 3 wardens."),
        ("How many kettles fit a shelf?", "It holds six kettles.", "The shelf is 6 feet high."),
        ("Which is the maximum number of kettles?", "At most 12 kettles.", "See page 12."),
        ("What is the maximum number of kettles?", "At most 12 kettles.", "See page 12."),
        ("How long does it boil?", "It takes 4 minutes.", "It needs IPv6 and version v0.10."),
        ("Wie schwer ist der Kessel?", "Er wiegt 2 kg.", "Er ist aus Stahl."),
        ("Сколько чайников на полке?", "На полке шесть чайников, а было 7.", "Полка крепкая."),
        ("一分間に何回沸かすか？", "2回沸かす。", "沸かさない。"),
        ("How many ms does it wait?", "It waits 300ms.", "It waits for 2 kettles."),
        ("How high is kettle 7?", "It is 30 cm high.", "Kettle 7 is red."),
        ("max length of a spout", "It has 3 segments.", "A spout is a row of segments."),
        ("default boil time of the kettle", "It boils 4 minutes.", "The time it boils."),
        ("Which size in mm has the lid?", "It is 90 mm wide.", "Lids are wide."),
        ("On which TCP port does it listen?", "It listens on 6820.", "It listens for kettles."),
        ("Какой максимальный размер крышки?", "Не более 90 мм.", "Крышка бывает большой."),
        ("Since which version does it whistle?", "Since v0.10 it does.", "RFC 8092 - Whistles"),
        ("In which version of Kettle was the whistle added?", "New in 2.4.", "It has 2 whistles."),
        ("What is the minimum version of the lid?", "It fits lid 2.4.", "It fits 3 lids."),
        (
            "From which version is the lid there?",
            "New in iLid 15 beta.",
            "See Table 3, in 10 minutes.",
        ),
        ("How much memory does it need?", "It needs 512 MB.", "Memory is read 3 times."),
        ("How much RAM does a kettle take?", "-Xmx4g, or 4g, is enough.", "RAM comes in 3 kinds."),
        ("How much disk space is left?", "Half of the disk.", "A disk has 2 sides."),
        ("Wie viel Speicher braucht er?", "Er braucht 2 GiB.", "Er hat 2 Speicher."),
        ("How many lids can Kettle hold?", "It holds 4 lids.", "Lids stay on[3]. Kettle 2 too."),
        ("Wie viele Deckel darf Kessel haben?", "Er hat 4 Deckel.", "Kessel 2 ist rot."),
        ("Ab welcher Version pfeift er?", "Seit Version 3.", "Er hat 2 Pfeifen."),
    ],
)
def test_figure_that_was_asked_for_is_told_from_other_text(
    question: str, answer: str, other: str
) -> None:
    asked = quantity_asked(question)

    assert asked is not None
    assert (asked.is_stated(answer), asked.is_stated(other)) == (True, False)


@pytest.mark.parametrize("number", ["8", "acht", "Cinco", "dos", "half", "ONE", "zwei", "четыре"])
def test_number_in_words_is_a_figure_too(number: str) -> None:
    asked = quantity_asked("How many kettles fit a shelf?")

    assert asked is not None
    assert asked.is_stated(f"There are {number} kettles.")


@pytest.mark.parametrize(
    "question",
    [
        "Which option starts it?",
        "What limits how many kettles fit a shelf?",
        "What can I use so that timers cost less?",
        "Which tool pays no heed to how often a folder is visited?",
        "Where in Costa Rica is it sold?",
        "How do I descale it?",
        "Is it fine to boil milk?",
        "How can I tell which kettle version I have?",
        "What is the ceremonial release of the steam believed to bring?",
        "Which parameters for default real lid size exclude each other?",
        "In which version control system is the kettle kept?",
        "What version control system does the kettle's maker use?",
        "Which version manager should I install?",
        "Which function returns the size of a lid in bytes?",
        "Which function returns the current time in seconds?",
        "What is the default time zone of the kettle?",
        "What time zone does the kettle use?",
        "What is the default conflict resolution strategy?",
        "Which setting limits the maximum lid size?",
        "Which option sets the maximum number of kettles?",
        "How do I raise the maximum number of kettles?",
        "Which serial port is the gauge read over?",
        "How can I set the boiling time in milliseconds?",
        "How do I turn off opening times?",
    ],
)
def test_question_that_wants_no_figure_asks_for_none(question: str) -> None:
    assert quantity_asked(question) is None


@given(st.text(), st.text())
def test_any_text_is_read(question: str, text: str) -> None:
    asked = quantity_asked(f"How many {question}")

    assert asked is not None
    assert asked.is_stated(text) in (True, False)


def test_the_number_of_an_item_of_a_list_counts_nothing() -> None:
    asked = quantity_asked("What is the maximum number of kettles on a shelf?")
    assert asked is not None

    assert not asked.is_stated("1. Fill the kettles.\n2. Put the kettles on the shelf.")
    assert asked.is_stated("1. Put 12 kettles on the shelf.")


def test_one_that_stands_for_a_thing_is_no_figure() -> None:
    asked = quantity_asked("How long does the kettle take?")

    assert asked is not None
    assert not asked.is_stated(
        "The new kettle replaces the old one; one of them boils, as one can see."
    )
    assert asked.is_stated("It takes one minute.")
