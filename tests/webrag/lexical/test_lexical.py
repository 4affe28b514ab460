import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.lexical.analysis import analyze, query_terms, term_weight


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("Merging merges MERGED", ["merg", "merg", "merg"], id="english-stems"),
        pytest.param("книги книга", ["книг", "книг"], id="russian-stems"),
        pytest.param("किताबें", ["किताब"], id="vowel-signs-belong-to-the-word"),
        pytest.param("café CAFE", ["cafe", "cafe"], id="latin-accents-fold"),
        pytest.param("ﬁle ｗｉｄｅ", ["file", "wide"], id="compatibility-forms-fold"),
        pytest.param("使用代码", ["使用", "用代", "代码"], id="han-bigrams"),
        pytest.param("用Python写", ["用", "python", "写"], id="scripts-are-split"),
        pytest.param("max_tryを", ["=max_try", "max", "tri", "を"], id="no-space-by-identifiers"),
        pytest.param("Ctrl+Shift+F5", ["=ctrl+shift+f5", "ctrl", "shift", "f5"], id="keys"),
        pytest.param("C++11", ["=c++", "c", "11"], id="language-with-its-version"),
        pytest.param("한국어", ["한국", "국어"], id="hangul-bigrams"),
        pytest.param("the cat is on a mat", ["cat", "mat"], id="stop-words-go"),
        pytest.param("don\u2019t stop", ["don't", "stop"], id="apostrophes-are-one"),
        pytest.param("می\u200cخواهم میخواهم", ["میخو", "میخو"], id="joiners-are-not-typed"),
        pytest.param("the server's", ["server"], id="possessive"),
        pytest.param("3.11", ["=3.11", "3", "11"], id="version-number"),
        pytest.param("max_connections", ["=max_connections", "max", "connect"], id="snake-case"),
        pytest.param("--no-ff", ["=no-ff", "=--no-ff", "no", "ff"], id="flag"),
        pytest.param("-v", ["=-v", "v"], id="short-flag"),
        pytest.param("Vec::new", ["=vec::new", "vec", "new"], id="path"),
        pytest.param("E0502", ["e0502"], id="error-code"),
        pytest.param("C++ or C#", ["=c++", "c", "=c#", "c"], id="language-names"),
        pytest.param("__init__", ["=__init__", "init"], id="dunder"),
        pytest.param("_emphasis_", ["emphasi"], id="markdown-emphasis-is-no-identifier"),
        pytest.param("maxSize", ["maxsiz", "max", "size"], id="camel-case"),
        pytest.param("HTTPServer", ["httpserver", "http", "server"], id="acronym-in-camel-case"),
        pytest.param("URLs", ["url"], id="plural-acronym-is-one-word"),
        pytest.param("@property $HOME", ["=@property", "properti", "=$home", "home"], id="sigils"),
        pytest.param("WHERE x IN (1)", ["=where", "where", "x", "=in", "1"], id="keywords"),
        pytest.param("`with` statement", ["=with", "statement"], id="stop-word-as-code"),
        pytest.param("end of it.Next", ["end", "=it.next", "next"], id="missing-space"),
        pytest.param("-> ++ 🙂", [], id="no-words"),
    ],
)
def test_analyze_gives_terms(text: str, terms: Any) -> None:
    assert analyze(text) == terms


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        pytest.param("How do I merge two branches?", ["merg", "two", "branch"], id="small-talk"),
        pytest.param("merge merging MERGE", ["merg"], id="distinct"),
        pytest.param("how does it work", ["how", "doe", "work"], id="nothing-else-left"),
        pytest.param("the", ["the"], id="only-a-stop-word"),
        pytest.param("what does --no-ff do", ["=no-ff", "=--no-ff", "ff"], id="flag"),
        pytest.param("?!", [], id="no-word"),
    ],
)
def test_query_terms_keep_the_subject(question: str, terms: Any) -> None:
    assert query_terms(question) == terms


@pytest.mark.parametrize(
    "identifier",
    ["Vec::new", "--no-ff", "max_connections", "C++", "$HOME", "@decorator", "foo.bar", "__init__"],
)
def test_a_whole_identifier_weighs_more_than_each_of_its_parts(identifier: str) -> None:
    wholes, parts = [], []
    for term in query_terms(identifier):
        (wholes if term.startswith("=") else parts).append(term_weight(term))

    assert max(wholes) > 2.2
    assert set(parts) <= {1.0}


@pytest.mark.parametrize(
    "text", ["well-known", "3.11", "e.g.", "U.S.", "WHERE", "Merging", "E0502"]
)
def test_other_words_weigh_alike(text: str) -> None:
    assert {term_weight(term) for term in query_terms(text)} == {1.0}


@given(st.text(max_size=200))
def test_question_finds_every_text_it_quotes(text: str) -> None:
    wholes = {term for term in query_terms(text) if term.startswith("=")}

    assert wholes <= set(analyze(text))


@given(st.text(max_size=300))
def test_terms_are_short_and_free_of_white_space(text: str) -> None:
    assert all(0 < len(term) <= 65 and not any(c.isspace() for c in term) for term in analyze(text))


@given(st.text(max_size=100), st.text(max_size=100))
def test_terms_of_separate_lines_do_not_influence_each_other(one: Any, two: Any) -> None:
    assert analyze(f"{one}\n{two}") == analyze(one) + analyze(two)


def test_endless_words_are_cut_to_a_storable_length() -> None:
    assert [len(term) for term in analyze("x" * 5000)] == [64]
    assert max(len(term) for term in analyze("a_b" * 900)) == 65


def test_threads_get_the_same_terms() -> None:
    text = " ".join(f"configuring{n} книги{n} merges{n}" for n in range(300))
    results = []
    threads = [threading.Thread(target=lambda: results.append(analyze(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(result == results[0] for result in results)


@given(st.lists(st.text(max_size=30), max_size=8))
def test_no_term_reaches_across_white_space(words: Any) -> None:
    text = " ".join(words)

    assert analyze(text) == [term for word in text.split() for term in analyze(word)]


@given(st.from_regex(r"[A-Z]?[a-z]{1,12}", fullmatch=True), st.sampled_from('.,;:!?)"'))
def test_punctuation_around_a_word_changes_nothing(word: Any, mark: Any) -> None:
    assert analyze(f'("{word}{mark}') == analyze(word)
    assert analyze(f"{word}{mark}") == analyze(word)
