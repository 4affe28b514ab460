import pytest

from webrag.answering.covering import answer_kind, is_of_kind


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How do I rename a branch?", "steps"),
        ("Some labels are missing in the first batch. What must I do?", "steps"),
        ("Inputs are clean; what has to be set to skip the scan?", "steps"),
        ("Which command backs a merge out?", "steps"),
        ("Which port does the broker use?", "value"),
        ("How large is a page?", "value"),
        ("What is the default of the depth?", "default"),
        ("How many retries are made if nothing is set?", "default"),
        ("Which modes does the filter have?", "list"),
        ("What values can the level take?", "list"),
        ("Which C++ levels are known?", "list"),
        ("What are the parts of a record?", "list"),
        ("Is the sender told when a mail is lost?", "condition"),
        ("What happens to a test that takes too long?", "condition"),
        ("What does the flag do?", "other"),
        ("What is a segment?", "other"),
    ],
)
def test_question_tells_the_kind_of_its_answer(question: str, kind: str) -> None:
    assert answer_kind(question) == kind


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("The default is 20.", "value", True),
        ("The depth can be changed.", "value", False),
        ("The default is 20.", "default", True),
        ("Without the option, `plain` is used; it is on by default.", "default", True),
        ("If it is not set, 8 files are joined.", "default", True),
        ("This is the default.", "default", True),
        ("It sets the default limit. There are 3 others.", "default", False),
        ("The depth is 20.", "default", False),
        ("It takes low, middle and high.", "list", True),
        ("It takes a level.", "list", False),
        ("Run the installer again.", "steps", True),
        ("Installers differ.", "steps", False),
        ("The sender is not told.", "condition", True),
        ("Senders write mail.", "condition", False),
    ],
)
def test_text_is_or_is_not_of_a_kind(text: str, kind: str, expected: bool) -> None:
    assert is_of_kind(text, kind) is expected
