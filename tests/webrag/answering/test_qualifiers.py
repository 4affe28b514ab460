import pytest

from webrag.answering.support import keeps_qualifiers, keeps_units


@pytest.mark.parametrize(
    ("sentence", "support"),
    [
        ("All users can delete files.", "Administrators can delete files."),
        ("Only administrators can delete files.", "Administrators can delete files."),
        ("It deletes every table.", "It deletes every table only if --force is given."),
    ],
)
def test_statement_that_says_more_than_its_support_is_recognised(
    sentence: str, support: str
) -> None:
    assert not keeps_qualifiers(sentence, support)


def test_statement_that_says_less_than_its_support_is_fine() -> None:
    assert keeps_qualifiers("Files can be deleted.", "All users can delete only their files.")


@pytest.mark.parametrize(
    ("sentence", "support"),
    [
        ("It takes 30 minutes.", "It takes 30 seconds."),
        ("The limit is 5 GB.", "The limit is 5MB."),
        ("It costs 5 dollars.", "It costs 5 euros."),
    ],
)
def test_quantity_in_another_unit_is_recognised(sentence: str, support: str) -> None:
    assert not keeps_units(sentence, support)


@pytest.mark.parametrize(
    ("sentence", "support"),
    [
        ("It takes 30 s.", "It takes 30 seconds."),
        ("30 seconds", "30 requests"),
        ("5 GB in 5 minutes", "5 gigabytes within 5 min"),
    ],
)
def test_quantity_in_the_same_unit_or_in_none_is_fine(sentence: str, support: str) -> None:
    assert keeps_units(sentence, support)
