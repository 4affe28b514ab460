"""What a word may stand for that no page has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.analysis import analyze
from webrag.lexical.spelling import Respelling, doubtful_words, respelled


def _never(_: str) -> bool:
    return False


def best(word: str, *held: str, common: tuple[str, ...] = ()) -> str | None:
    """What stands for a word in a corpus that holds some others ten times each."""
    chunks = {analyze(each)[0]: 10 for each in held}
    return Respelling(word, analyze(word)[0], lambda each: each in common).best(chunks)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        pytest.param("conactenate", "concatenate", id="letters-swapped"),
        pytest.param("vidoe", "video", id="letters-swapped-at-the-end"),
        pytest.param("asynchronus", "asynchronous", id="letter-lost"),
        pytest.param("kdefault", "default", id="letter-added"),
        pytest.param("parametel", "parameter", id="letter-changed"),
        pytest.param("comit", "commit", id="not-doubled"),
        pytest.param("Vidoe", "video", id="capital-at-the-beginning"),
    ],
)
def test_a_typing_error_stands_for_the_word_that_the_pages_have(typed: str, meant: str) -> None:
    assert best(typed, meant, "unrelated", common=(meant,)) == meant


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("colour", "color"),
        ("optimised", "optimized"),
        ("catalogue", "catalog"),
        ("licence", "license"),
        ("analyse", "analyze"),
        ("centre", "center"),
        ("grey", "gray"),
    ],
)
def test_british_and_american_spelling_stand_for_each_other(british: str, american: str) -> None:
    common = (british, american)

    assert best(british, american, common=common) == american
    assert best(american, british, common=common) == british


@pytest.mark.parametrize(
    ("word", "neighbour"), [("clash", "class"), ("quota", "quote"), ("head", "read")]
)
def test_a_common_word_is_not_taken_for_another_one(word: str, neighbour: str) -> None:
    assert best(word, neighbour, common=(word, neighbour)) is None


def test_the_spelling_that_more_chunks_hold_is_meant() -> None:
    chunks = {"port": 90, "pore": 2}

    assert Respelling("porr", "porr", _never).best(chunks) == "port"


def test_a_stop_word_mistyped_stands_for_no_rare_word() -> None:
    assert Respelling("insted", "inst", _never).best({"int": 99}) is None


def test_a_common_word_is_meant_beside_a_stop_word() -> None:
    chunks = {"worker": 9}

    assert Respelling("workr", "workr", {"worker"}.__contains__).best(chunks) == "worker"


def test_a_contraction_without_its_apostrophe_is_not_doubtful() -> None:
    assert doubtful_words("split where theres a gap") == {"split": "split"}


def test_a_spelling_of_a_single_chunk_may_be_an_error_itself() -> None:
    assert Respelling("vidoe", "vido", _never).best({"video": 1}) is None


def test_a_common_word_is_looked_for_in_few_spellings() -> None:
    few = Respelling("missing", "miss", {"missing"}.__contains__)
    many = Respelling("missing", "miss", _never)

    assert few.best({analyze("mising")[0]: 9}) == "mising"
    assert len(few.terms) * 10 < len(many.terms)


def test_a_word_splits_where_both_parts_are_held() -> None:
    word = Respelling("filename", analyze("filename")[0], _never)

    assert word.splits({"file": 9, "name": 9, "ename": 9}) == [("file", "name")]


@pytest.mark.parametrize(
    "text",
    [
        "what does `conactenate` do",
        "Vec::conactenat",
        "the conactenate_all function",
        "conactenate() fails",
        "--conactenate",
        "see https://docs.test/conactenate",
        "CONACTENATE",
        "useConactenate",
        "odd",
    ],
)
def test_code_names_and_short_words_are_meant_as_they_are(text: str) -> None:
    found = doubtful_words(text)

    assert not {word for word in found if "onactenat" in word or word == "odd"}


def test_words_of_a_question_are_named_with_their_terms() -> None:
    assert doubtful_words("How do I conactenate a vidoe?") == {
        "conactenate": "conacten",
        "vidoe": "vido",
    }


def test_words_are_replaced_where_they_stand_alone() -> None:
    assert respelled("vidoe, vidoes and my-vidoe", {"vidoe": "video"}) == (
        "video, vidoes and my-vidoe"
    )


@given(st.text(max_size=60))
def test_nothing_is_replaced_without_replacements(text: str) -> None:
    assert respelled(text, {}) == text


@given(st.text(alphabet="abcdexyz -'", max_size=60))
def test_every_doubtful_word_can_be_replaced(text: str) -> None:
    words = doubtful_words(text)

    changed = respelled(text, dict.fromkeys(words, "Q"))

    assert not set(words) & set(doubtful_words(changed))
