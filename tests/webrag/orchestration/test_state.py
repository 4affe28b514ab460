import time

from tests.webrag.questions import URL, asked, searched
from webrag.orchestration.links.rules import ExpansionOutcome, LinkScope
from webrag.orchestration.models import NextLink, QueryAnalysis
from webrag.orchestration.state import PageBudget, RunClock, RunState
from webrag.question import Question
from webrag.retrieval.filters import NO_FILTERS, SearchFilters


def state(question: Question, scope: str = "same_site") -> RunState:
    return RunState(
        question=question,
        clock=RunClock(started=0, work_until=0),
        scope=LinkScope.of(scope, question.urls),
        budget=PageBudget.of(1, 1),
    )


def analysis(*parts: str) -> QueryAnalysis:
    return QueryAnalysis(
        original_query="A and B?",
        sub_queries=parts,
        query_type="factual",
        complexity="simple",
        key_concepts=(),
        method="rule_based",
    )


def test_rephrasing_is_open_again_after_new_pages_only() -> None:
    run = state(asked())
    run.closed = {"expand_intent", "expand_recall"}

    run.take(ExpansionOutcome(failed={f"{URL}/dead": "404"}))
    assert run.closed == {"expand_intent", "expand_recall"}

    page = NextLink(f"{URL}/new", "", None, URL, 1.0)
    run.take(ExpansionOutcome(ingested=[page], sources={page.url: "built-in"}))

    assert run.closed == {"expand_recall"}
    assert run.fetched == {page.url: "built-in"}


def test_pages_count_as_read_in_vain_until_the_evidence_is_surer() -> None:
    run = state(asked())
    link = NextLink(f"{URL}/read", "", None, URL, 0.5)

    run.weigh(0.4, ())
    assert run.in_vain == 1.0
    run.weigh(0.41, (link, link))
    assert run.in_vain == 0.25
    run.weigh(0.39, (link,))
    assert run.in_vain == 0.125
    run.weigh(0.5, (link,))
    assert run.in_vain == 1.0


def test_split_question_is_searched_as_a_whole_too() -> None:
    run = state(asked(query="A and B?"))
    run.analysis, run.extra_queries = analysis("A", "B"), ("C",)

    assert run.queries == ("A", "B", "A and B?", "C")


def test_whole_question_is_searched_once() -> None:
    run = state(asked(query="A and B?"))
    run.analysis = analysis("A and B?")

    assert run.queries == ("A and B?",)


def test_first_search_is_limited_to_the_named_pages() -> None:
    run = state(asked())
    run.pages[URL] = None

    assert run.filters.source_urls == (URL,)


def test_later_searches_are_of_all_stored_pages_inside_the_scope() -> None:
    run = state(asked())
    run.pages[URL], run.is_widened = None, True

    assert (run.filters.source_urls, run.filters.sites) == (None, ("docs.test",))


def test_later_searches_see_fetched_pages_of_subdomains_that_are_allowed() -> None:
    run = state(asked())
    run.pages["https://api.docs.test/b"], run.is_widened = None, True

    assert run.filters.sites == ("docs.test", "api.docs.test")


def test_scope_any_searches_everything_once_widened() -> None:
    run = state(asked(), scope="any")
    run.is_widened = True

    assert (run.filters.source_urls, run.filters.sites) == (None, None)


def test_search_is_limited_to_what_was_asked_for() -> None:
    question = searched(source_urls=URL, has="code")

    assert state(question).filters == SearchFilters(source_urls=(URL,), has=("code",))
    assert state(searched()).filters == NO_FILTERS


def test_clock_adds_up_and_knows_its_end() -> None:
    clock = RunClock(started=time.monotonic(), work_until=time.monotonic() + 60)

    with clock.timed("merge_ms"):
        pass
    with clock.timed("merge_ms"):
        pass

    assert 0 < clock.timing().merge_ms <= clock.timing().total_ms
    assert not clock.is_over
    assert 0 < clock.left_s <= 60


def test_clock_without_time_left_is_over() -> None:
    clock = RunClock(started=0, work_until=time.monotonic() - 1)

    assert clock.is_over
    assert clock.left_s == 0


def test_wordings_belong_to_the_question_as_a_whole() -> None:
    run = state(asked(query="A and B?", wordings=["C"]))
    run.analysis = analysis("A", "B").model_copy(update={"wordings": ("D",)})

    assert [run.wordings_of(each) for each in ("A", "B", "A and B?")] == [(), (), ("C", "D")]


def test_wordings_follow_a_question_that_a_wish_added_words_to() -> None:
    run = state(asked(query="A?", wordings=["C"], constraints=["in Python"]))
    run.analysis = analysis("A? Python")

    assert [run.wordings_of(each) for each in run.queries] == [("C",)]


def test_file_beside_a_page_widens_no_search_to_every_file() -> None:
    run = state(asked())
    run.pages = dict.fromkeys(["file:///home/me/docs/index.md", f"{URL}/new"])
    run.is_widened = True

    assert run.filters.source_urls == tuple(run.pages)


def test_address_that_was_cut_off_and_then_led_to_a_known_page_is_no_failure() -> None:
    run = state(asked())
    run.take(ExpansionOutcome(failure_kinds={f"{URL}/late": "cut off"}))

    run.take(ExpansionOutcome(aliases={f"{URL}/late": URL}))

    assert not run.failure_kinds
