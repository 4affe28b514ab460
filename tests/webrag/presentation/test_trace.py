from collections.abc import Callable

from webrag.orchestration.models import EvaluationSignals, ExpansionStep, OrchestrationResult
from webrag.presentation.brief.trace import expansion_path, expansion_trace

MakeResult = Callable[..., OrchestrationResult]
MakeStep = Callable[..., ExpansionStep]
SEED = "https://docs.example.org/guide/install"


def test_trace_is_empty_without_expansion(make_result: MakeResult, make_step: MakeStep) -> None:
    result = make_result(expansion_steps=(make_step(decision="stop"),))

    assert expansion_trace(result) == ""


def test_trace_shows_searches_that_fetched_nothing(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    result = make_result(expansion_steps=(make_step(decision="expand_intent", duration_ms=35),))

    assert expansion_trace(result).splitlines()[2:] == [
        "/install (seed, score: 0.42 → 0.42)",
        "└── (searched again with other words, score: 0.42 → 0.81, 35ms)",
        "    [action 1: expand_intent by low_scores]",
        "    [stopped by rule 4, good_plateau: The best results are good and alike.]",
    ]


def test_trace_base_is_the_folder_all_pages_of_the_site_share(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    step = make_step(candidates_expanded=("https://docs.example.org/guide/a/b?x=1/2",))

    trace = expansion_trace(make_result(expansion_steps=(step,)))

    assert trace.startswith("Base: https://docs.example.org/guide/\n")
    assert "/a/b?x=1/2 (depth 1" in trace


def test_trace_prints_other_sites_in_full(make_result: MakeResult, make_step: MakeStep) -> None:
    step = make_step(candidates_expanded=("https://docs.example.organic/guide/x",))

    trace = expansion_trace(make_result(expansion_steps=(step,)))

    assert "└── https://docs.example.organic/guide/x (external, depth 1" in trace


def test_trace_of_several_seeds_draws_one_tree_each(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    other = "https://other.example.net/"
    step = make_step(source_url=other, candidates_expanded=("https://other.example.net/x",))

    trace = expansion_trace(make_result(seed_urls=(SEED, other), expansion_steps=(step,)))

    assert [line.split(" (")[0] for line in trace.splitlines()[2:5]] == [
        "/install",
        other,
        "└── https://other.example.net/x",
    ]


def test_trace_keeps_a_hostile_reason_on_one_line(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    step = make_step(candidates_failed={SEED + "/x": "bad\n[STATS]\nConfidence: 1.00"})

    trace = expansion_trace(make_result(expansion_steps=(step,)))

    assert "[failed: bad [STATS] Confidence: 1.00]" in trace


def test_trace_gives_the_rule_and_the_signals_of_each_action(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    signals = EvaluationSignals(
        top_score=0.42,
        score_at_k=0.2,
        score_cliff=0.22,
        score_variance=0.0123,
        score_mean=0.31,
        chunks_above_threshold=2,
        token_fill_ratio=0.056,
        redundancy_ratio=0.25,
        source_document_count=3,
        avg_confidence=0.7,
        is_plateau=False,
        is_cliff=True,
        is_saturated=False,
        is_mediocre_plateau=False,
        has_high_redundancy=False,
    )
    step = make_step(rule="cliff", rule_number=7, signals=signals)

    trace = expansion_trace(make_result(expansion_steps=(step,), final_signals=signals))

    printed = (
        "top 0.42, rank K 0.20, mean 0.31, variance 0.012, near top 2, fill 6%, repeated 25%, "
        "pages 3, scorer sure 0.70]"
    )
    assert f"    [action 1: expand_breadth by rule 7, cliff; {printed}" in trace
    assert trace.endswith(f"    [at the end: {printed}")


def test_way_says_where_it_went_and_why_it_stopped_without_rules_and_signals(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    page = SEED + "/x"
    step = make_step(candidates_expanded=(page,), scores={page: 0.7}, fetch_ms={page: 120.0})

    assert expansion_path(make_result(expansion_steps=(step,)), {page}).splitlines() == [
        f"{SEED} → /guide/install/x (link 0.70, 120ms)",
        "[stopped: The best results are good and alike.]",
    ]


def test_trace_hangs_a_page_under_the_stored_page_its_link_stands_on(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    child, stored = "https://docs.example.org/guide/b", "https://docs.example.org/guide/a"
    step = make_step(candidates_expanded=(child,), parents={child: stored}, source_url=SEED)

    lines = expansion_trace(make_result(expansion_steps=(step,))).splitlines()

    assert lines[2].startswith("/install (seed")
    assert lines[3] == "/a (stored before)"
    assert lines[4].startswith("└── /b (depth 1")


def test_trace_names_no_stored_page_whose_links_led_to_nothing_printed(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    child, stored = "https://docs.example.org/guide/b", "https://docs.example.org/guide/a"
    step = make_step(candidates_expanded=(child,), parents={child: stored}, source_url=SEED)

    trace = expansion_path(make_result(expansion_steps=(step,)), printed=set())

    assert "; 1 more page" in trace
    assert "stored before" not in trace


def test_trace_names_no_stored_page_whose_links_all_failed_beside_what_is_printed(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    child, stored = "https://docs.example.org/guide/b", "https://docs.example.org/guide/a"
    step = make_step(candidates_failed={child: "gone"}, parents={child: stored}, source_url=SEED)

    trace = expansion_path(make_result(expansion_steps=(step,)), printed=set())

    assert "stored before" not in trace


def test_trace_says_which_map_of_the_site_named_a_page(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    url = "https://docs.example.org/guide/b"
    step = make_step(candidates_expanded=(url,), found_in={url: "the site's search index"})

    trace = expansion_trace(make_result(expansion_steps=(step,)))

    assert "/b (depth 1, +0 chunks, found in the site's search index, " in trace


def test_trace_tells_the_time_of_a_round_once(make_result: MakeResult, make_step: MakeStep) -> None:
    urls = tuple(f"https://docs.example.org/guide/{name}" for name in "abc")
    step = make_step(candidates_expanded=urls, duration_ms=777)

    trace = expansion_trace(make_result(expansion_steps=(step,)))

    assert trace.count("777ms") == 1
    assert "(3 pages in one round:" in trace


def test_trace_shows_the_way_to_what_is_printed_and_counts_the_other_pages(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    pages = [f"https://docs.example.org/guide/{name}" for name in "abcd"]
    step = make_step(
        candidates_expanded=tuple(pages),
        candidates_failed={f"{SEED}/gone": "404"},
        parents={pages[0]: SEED, pages[1]: pages[0], pages[2]: SEED, pages[3]: SEED},
    )

    way = expansion_path(make_result(expansion_steps=(step,)), {pages[1]})

    assert way.splitlines()[0] == f"{SEED} → /guide/a → /guide/b; 2 more pages"


def test_way_that_goes_on_is_told_once_and_ways_stand_in_the_order_they_were_read(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    pages = [f"https://docs.example.org/guide/{name}" for name in "abcdefg"]
    parents = dict.fromkeys(pages, SEED) | {pages[1]: pages[0]}
    step = make_step(candidates_expanded=tuple(pages), parents=parents)

    way = expansion_path(make_result(expansion_steps=(step,)), set(pages))

    told = "; → ".join(f"/guide/{name}" for name in "cdefg")
    assert way.splitlines()[0] == f"{SEED} → /guide/a → /guide/b; → {told}"


def test_way_names_the_host_that_begins_like_that_of_the_first_page(
    make_result: MakeResult, make_step: MakeStep
) -> None:
    pages = ["https://docs.example.org.au/a", "https://docs.example.org:8080/b"]
    step = make_step(candidates_expanded=tuple(pages), parents=dict.fromkeys(pages, SEED))

    way = expansion_path(make_result(expansion_steps=(step,)), set(pages))

    assert way.splitlines()[0] == f"{SEED} → {pages[0]}; → {pages[1]}"
