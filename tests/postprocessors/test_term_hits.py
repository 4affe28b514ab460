from llama_index.postprocessor.webrag.rerank_features import bigram_share, coverage, find_hits

TERMS = ["port", "server", "set", "port", "of", "server", "port"]
WANTED = frozenset({"port", "server"})


def test_terms_before_the_first_window_are_in_the_passage_and_in_no_window() -> None:
    hits = find_hits(TERMS[:3], [2], WANTED)

    assert (hits.terms, hits.windows) == (WANTED, (frozenset(),))


def test_each_window_has_its_own_terms() -> None:
    hits = find_hits(TERMS, [2, 4, 4, 6], WANTED)

    assert hits.windows == ({"port"}, frozenset(), {"server"}, {"port"})


def test_only_neighbours_are_bigrams() -> None:
    hits = find_hits(TERMS, [2, 5], WANTED)

    assert hits.bigrams == {("port", "server"), ("server", "port")}


def test_nothing_wanted_is_nothing_found() -> None:
    assert find_hits(TERMS, [0], frozenset()) == (frozenset(), (frozenset(),), frozenset())


def test_coverage_is_the_share_of_the_weight() -> None:
    assert coverage(frozenset({"port"}), {"port": 3.0, "server": 1.0}) == 0.75


def test_weightless_questions_are_not_covered() -> None:
    assert coverage(frozenset({"port"}), {}) == 0.0
    assert coverage(frozenset({"port"}), {"port": 0.0}) == 0.0


def test_bigram_share_counts_the_questions_pairs() -> None:
    assert bigram_share(frozenset({("a", "b")}), ["a", "b", "c"]) == 0.5
    assert bigram_share(frozenset({("a", "a")}), ["a"]) == 0.0
