from webrag.lexical.analysis import INDEX_STOPWORDS, QUESTION_STOPWORDS


def test_questions_leave_out_what_the_index_leaves_out() -> None:
    assert INDEX_STOPWORDS < QUESTION_STOPWORDS


def test_stop_words_are_written_as_they_are_compared() -> None:
    assert all(word == word.casefold().strip() for word in QUESTION_STOPWORDS)
