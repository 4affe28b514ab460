from webrag.answering.support import clauses, is_bound, nearest_clauses, numbers


def test_sentences_are_read_clause_by_clause() -> None:
    assert clauses("Reads wait, but writes do not. Both end.") == [
        "Reads wait",
        "but writes do not.",
        "Both end.",
    ]


def test_of_clauses_with_as_many_words_that_with_the_subject_is_nearest() -> None:
    known = ["Logging is enabled by default", "caching is disabled by default"]

    assert nearest_clauses("Caching is enabled by default.", known) == [known[1]]


def test_nothing_is_nearest_to_what_shares_one_word_of_several() -> None:
    assert nearest_clauses("The broker restarts nightly.", ["The broker is small."]) == []


def test_values_that_changed_places_are_not_bound() -> None:
    support = "Reads end after 30 seconds and writes after 5 seconds."

    assert is_bound("Writes end after 5 seconds.", support, numbers)
    assert not is_bound("Writes end after 30 seconds.", support, numbers)


def test_values_listed_after_their_subjects_are_bound() -> None:
    support = "The leader listens on port 1. The replica listens on port 2."

    assert is_bound("Leader and replica listen on port 1 and port 2.", support, numbers)
