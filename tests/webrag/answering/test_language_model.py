import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webrag.answering.language_model import SentenceReader

ONE = {"sentence": "One {brace}.", "citations": [{"evidence": 1, "quote": 'a "quote" {'}]}
TWO = {"sentence": "Two.", "citations": []}
FORMS = [
    f"{json.dumps(ONE)}\n{json.dumps(TWO)}",
    json.dumps([ONE, TWO]),
    json.dumps({"answer": [ONE, TWO]}, indent=1),
    f"Sure!\n```json\n{json.dumps(ONE)}\n{json.dumps(TWO)}\n```\nDone {{ok}}.",
]


@pytest.mark.parametrize("reply", FORMS)
@settings(deadline=None)
@given(size=st.integers(1, 200))
def test_sentences_are_found_once_whatever_the_pieces(reply: str, size: int) -> None:
    reader = SentenceReader()
    pieces = [reply[at : at + size] for at in range(0, len(reply), size)]

    found = [sentence for piece in pieces for sentence in reader.feed(piece)]

    assert [each.text for each in found] == ["One {brace}.", "Two."]
    assert found[0].proposals[0].quote == 'a "quote" {'


def test_first_sentence_is_known_before_the_second_is_complete() -> None:
    reader = SentenceReader()

    found = reader.feed(f'{{"answer": [{json.dumps(ONE)}, {{"sentence": "Tw')

    assert [each.text for each in found] == ["One {brace}."]


def test_giving_up_is_noticed() -> None:
    reader = SentenceReader()
    reader.feed('{"unanswered": "nothing about ports"}')

    assert reader.gave_up


@settings(deadline=None)
@given(st.text(alphabet='{}[]":,sentence unanswered\\ 1', max_size=120))
def test_no_reply_breaks_the_reader(text: str) -> None:
    for sentence in SentenceReader().feed(text):
        assert sentence.text
