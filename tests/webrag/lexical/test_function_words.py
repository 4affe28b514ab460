"""Questions in other languages than English are searched by what they are about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.analysis import language_of, query_terms, without_function_words
from webrag.lexical.spelling import doubtful_words


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("Welche Dateien braucht man dafür?", ["dateien", "braucht"]),
        ("¿Cuántos votos recibió el candidato?", ["voto", "recibio", "candidato"]),
        ("cuantos votos recibio", ["voto", "recibio"]),
        ("Qu’est-ce qu’un contexte de notation ?", ["context", "notat"]),
        ("Quel graveur faut-il supprimer du contexte ?", ["graveur", "supprim", "context"]),
        ("Quanto dura la quota dell'anno?", ["dura", "quota", "anno"]),
        ("Com quantos votos Pacheco foi eleito?", ["voto", "pacheco", "eleito"]),
        ("Waarom brak de dam?", ["brak", "dam"]),
        ("Które systemy nie były obsługiwane?", ["systemi", "obsługiwan"]),
        ("Câte echipe au jucat?", ["echip", "jucat"]),
        ("超级碗在哪个城市举行？", ["超级", "级碗", "碗在", "城市", "市举", "举行"]),
        ("この都市の目的は何ですか？", ["この", "の都", "都市", "市の", "の目", "目的", "的は"]),
        ("¿Qué hace la opción -o de gcc?", ["opcion", "=-o", "o", "gcc"]),
        ("Was macht `sind`?", ["macht", "sind"]),
        ("Wo liegt die Oder?", ["liegt", "oder"]),
        ("la diferencia entre O y E", ["diferencia", "o", "e"]),
        ("Où est le rendez-vous ?", ["=rendez-vous", "rendez", "vous"]),
        ("Какой файл можно удалить?", ["файл", "удал"]),
        ("сколько файлов", ["файл"]),
        ("Wieviele Spalten darf man setzen?", ["spalten", "setzen"]),
        ("Hangi takım kaç maç kazandı?", ["takım", "mac", "kazandı"]),
    ],
)
def test_words_that_ask_are_no_terms(question: str, terms: list[str]) -> None:
    assert query_terms(question) == terms


@pytest.mark.parametrize(
    "question",
    [
        "How do I die in the game?",
        "man page die signal",
        "set locale de",
        "en passant",
        "von Neumann architecture",
        "d'Artagnan",
        "pour the batter",
        "status codes AU UD UA",
        "jest mock",
        "react todo app tutorial",
        "Uber eats",
        "Seine length",
        "Who painted La Vie en Rose?",
        "always-on VPN",
        "的士收费",
        "吗啡",
        "どうぶつの森",
        "目的",
    ],
)
def test_english_keeps_what_other_languages_leave_out(question: str) -> None:
    assert without_function_words(question) == question


def test_a_question_of_nothing_else_is_searched_as_it_is() -> None:
    assert query_terms("Was ist das?") == ["ist", "das"]


@pytest.mark.parametrize("question", ["¿Cuánto cuesta la entrada?", "Cuanto cuesta la entrada"])
def test_words_that_ask_are_not_taken_for_typing_errors(question: str) -> None:
    assert set(doubtful_words(question)) == {"entrada"}


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("In welchem Abstand stehen die Kreuzchen des Rasters?", "german"),
        ("Welche vier Freiheiten garantiert Freie Software?", "german"),
        ("est-ce que je peux mettre un chiffre", "french"),
        ("Как изменить размер окна?", "russian"),
        ("How many bits are in a word?", None),
        ("PuTTYgen, ECDSA, EdDSA, Ed25519, Ed448", None),
    ],
)
def test_a_question_is_in_the_language_of_its_function_words(
    question: str, language: str | None
) -> None:
    assert language_of(question) == language


@given(st.text())
def test_a_question_keeps_something(text: str) -> None:
    assert bool(without_function_words(text)) == bool(text)
