from collections.abc import Callable
from typing import Any

import pytest

from webrag.answering.conflicts import find_conflicts
from webrag.answering.units import read_units


@pytest.fixture
def conflicts(make_evidence: Callable[..., Any], make_gathered: Callable[..., Any]) -> Any:
    """Kinds of the conflicts between one sentence and another, of another page by default."""

    def find(left: str, right: str, *, other_page: bool = True) -> list[str]:
        urls = ["https://x.test/1", "https://x.test/2" if other_page else "https://x.test/1"]
        pages = [
            make_evidence(text, number=n, url=url)
            for n, (text, url) in enumerate(zip((left, right), urls, strict=True), start=1)
        ]
        units = read_units(f"{left} {right}", make_gathered(*pages), similarity=None)
        return [each.kind for each in find_conflicts(units)]

    return find


LIMIT = "The request limit of the free plan is 100 calls per minute."


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(LIMIT, LIMIT.replace("100", "60"), id="limit"),
        pytest.param("The broker listens on TCP port 7411 unless another port is configured.",
                     "The broker listens on TCP port 7000 unless another port is configured.",
                     id="port"),
        pytest.param("Backups are kept for 30 days by default.",
                     "By default, backups are kept for 14 days.", id="other-order"),
        pytest.param("A bicycle costs four crowns on the ferry.",
                     "A bicycle costs 6 crowns on the ferry.", id="word-and-digit"),
        pytest.param("The client waits 30s for each reply of the broker.",
                     "The client waits 45 s for each reply of the broker.", id="glued-unit"),
        pytest.param("The lighthouse of the island was built in 1887.",
                     "The lighthouse of the island was built in 1878.", id="year"),
        pytest.param("The bridge to the island opened in May 1932.",
                     "The bridge to the island opened in May 1933.", id="dated-with-month"),
    ],
)  # fmt: skip
def test_other_value_of_the_same_subject_is_a_conflict(
    left: str, right: str, conflicts: Any
) -> None:
    assert conflicts(left, right) == ["number"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param("The broker accepts plain connections on this port.",
                     "The broker does not accept plain connections on this port.", id="not"),
        pytest.param("By default, the client retries lost requests.",
                     "By default, the client never retries lost requests.", id="never"),
        pytest.param("Temporary tables survive a restart of the server.",
                     "Temporary tables don't survive a restart of the server.", id="contraction"),
        pytest.param("If the cache is full, the client stores pages on disk.",
                     "If the cache is full, the client does not store pages on disk.",
                     id="same-condition"),
    ],
)  # fmt: skip
def test_denial_of_the_same_statement_is_a_conflict(left: str, right: str, conflicts: Any) -> None:
    assert conflicts(left, right) == ["negation"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(LIMIT, LIMIT, id="same"),
        pytest.param(LIMIT, LIMIT.replace("100", "one hundred"), id="same-value-in-words"),
        pytest.param(LIMIT, "Free lunch is served for 60 people in the canteen.", id="other"),
        pytest.param(LIMIT, "The `max_calls` limit of the free plan is 60 calls per minute.",
                     id="named-in-one"),
        pytest.param("The `min_size` setting of the pool is 5 connections.",
                     "The `max_size` setting of the pool is 10 connections.", id="other-name"),
        pytest.param("The maximum number of connections that the whole broker supports is 100.",
                     "The maximum number of workers that the whole broker supports is 8.",
                     id="one-word-swapped"),
        pytest.param("The request limit of the plan is 100 calls per minute.", LIMIT,
                     id="special-case"),
        pytest.param("The request limit of the plan is 100 calls per minute.",
                     "The request limit of the plan is 60 calls per minute if billing is off.",
                     id="on-a-condition"),
        pytest.param("A backup job may run up to 60 minutes.",
                     "A backup job runs at least 30 minutes.", id="two-bounds"),
        pytest.param("The server waits 1 minute before closing idle client connections.",
                     "The server waits 60 seconds before closing idle client connections.",
                     id="other-unit"),
        pytest.param("The client waits 1m for each reply of the broker.",
                     "The client waits 60s for each reply of the broker.", id="other-glued-unit"),
        pytest.param("On Windows, signal handlers of the event loop are not supported.",
                     "On Linux, signal handlers of the event loop are supported.", id="elsewhere"),
        pytest.param("If the cache directory is not set, the client stores pages in memory.",
                     "If the cache directory is set, the client stores pages in memory.",
                     id="denied-condition"),
        pytest.param("The broker does not rotate log files.",
                     "The broker rotates log files only when asked.", id="exception"),
    ],
)  # fmt: skip
def test_statements_that_can_both_be_true_are_no_conflict(
    left: str, right: str, conflicts: Any
) -> None:
    assert conflicts(left, right) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param("The default value is 100 bytes.", "The default value is 200 bytes.",
                     id="subject-in-the-heading"),
        pytest.param("The default is 512kB on Linux and 0 elsewhere.",
                     "The default is 256kB on Linux and 0 elsewhere.", id="default-of-something"),
        pytest.param("It returns 0 on success and sets the error number.",
                     "It returns 1 on success and sets the error number.", id="pronoun"),
        pytest.param("See Chapter 27 for more about broker high availability.",
                     "See Chapter 20 for more about broker high availability.", id="reference"),
        pytest.param("The syntax of broker queries is described in Section 12.4.",
                     "The syntax of broker queries is described in Section 9.13.", id="section"),
        pytest.param("The header format of broker messages is defined by RFC 7230.",
                     "The header format of broker messages is defined by RFC 9110.", id="standard"),
        pytest.param("New in version 3.8: support for broker context managers.",
                     "New in version 3.12: support for broker context managers.", id="version"),
        pytest.param("The crash of the broker on startup was fixed in issue #812.",
                     "The crash of the broker on startup was fixed in issue #977.", id="issue"),
        pytest.param("The 4th argument of the broker command names the queue.",
                     "The 5th argument of the broker command names the queue.", id="ordinal"),
        pytest.param("For example, a broker pool of 4 processes handles client requests.",
                     "For example, a broker pool of 8 processes handles client requests.",
                     id="example"),
        pytest.param("Set the reply timeout of the broker client to 30 seconds.",
                     "Set the reply timeout of the broker client to 60 seconds.", id="advice"),
        pytest.param("A busy broker usually answers about 100 clients.",
                     "A busy broker usually answers about 120 clients.", id="guess"),
        pytest.param("The planner may not use the index for small tables.",
                     "The planner may use the index for small tables.", id="possibility"),
        pytest.param("Does the broker accept plain connections on this port?",
                     "The broker does not accept plain connections on this port.", id="question"),
        pytest.param("Copyright 2019 The Turnip Broker Authors.",
                     "Copyright 2023 The Turnip Broker Authors.", id="copyright"),
    ],
)  # fmt: skip
def test_sentences_that_state_nothing_of_their_own_are_no_conflict(
    left: str, right: str, conflicts: Any
) -> None:
    assert conflicts(left, right) == []


def test_one_page_does_not_conflict_with_itself(conflicts: Any) -> None:
    assert conflicts(LIMIT, LIMIT.replace("100", "60"), other_page=False) == []
