from collections.abc import Callable
from typing import Any

import pytest

from webrag.answering.english.conflicts import find_conflicts
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
        units = read_units(f"{left} {right}", make_gathered(*pages))
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
        pytest.param("The pool of the broker holds at most 10 open connections.",
                     "The pool of the broker holds at most 20 open connections.", id="at-most"),
        pytest.param("Each worker process handles 10 requests of the broker.",
                     "Each worker process handles 20 requests of the broker.", id="each-noun"),
        pytest.param("Both brokers of the cluster accept 10 clients at once.",
                     "Both brokers of the cluster accept 20 clients at once.", id="both-noun"),
        pytest.param("Open connections are closed after 30 seconds.",
                     "Open connections are closed after 60 seconds.", id="noun-like-an-order"),
        pytest.param("Write timeouts are reported to clients after 30 seconds.",
                     "Write timeouts are reported to clients after 60 seconds.",
                     id="noun-like-another-order"),
        pytest.param("The broker keeps messages for many consumers for 7 days.",
                     "The broker keeps messages for many consumers for 14 days.",
                     id="many-of-others"),
        pytest.param("The TTL 300 seconds applies to cached replies.",
                     "The TTL 600 seconds applies to cached replies.", id="capital-before-unit"),
        pytest.param("Nginx 512 worker connections are the limit of a process.",
                     "Nginx 768 worker connections are the limit of a process.",
                     id="capital-before-count"),
        pytest.param("Pods start in Kubernetes 10 seconds after their volumes.",
                     "Pods start in Kubernetes 20 seconds after their volumes.",
                     id="capital-name-before-unit"),
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
        pytest.param("The limit of the pool was raised by 10 connections.",
                     "The limit of the pool was raised to 60 connections.", id="by-and-to"),
        pytest.param("Memory use of the broker dropped by 20 percent.",
                     "Memory use of the broker dropped to 80 percent.", id="by-and-to-percent"),
        pytest.param("The cluster runs the broker on 3 nodes.",
                     "The cluster runs the broker in 8 nodes.", id="on-and-in"),
        pytest.param("Data moved from 3 regions to the cloud.",
                     "Data moved to 5 regions from the cloud.", id="from-and-to"),
        pytest.param("The price rose from 5 crowns by 10 crowns.",
                     "The price rose by 5 crowns from 20 crowns.", id="swapped-prepositions"),
        pytest.param("The broker accepts connections from clients.",
                     "The broker does not accept connections to clients.", id="other-direction"),
        pytest.param("The client closes a connection if idle after 30 seconds.",
                     "The client closes an idle connection after 60 seconds.",
                     id="condition-in-a-joint"),
        pytest.param("The broker keeps at least 10 connections open.",
                     "The broker keeps at most 20 connections open.", id="least-and-most"),
        pytest.param("Windows 10 nodes join the cluster at once.",
                     "Windows 11 nodes join the cluster at once.", id="name-before-plural"),
        pytest.param("TLS 1.2 connections are closed by the broker.",
                     "TLS 1.3 connections are closed by the broker.", id="protocol-before-plural"),
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
        pytest.param("The request timeout limit is 30 seconds.",
                     "The request timeout limit is 60 seconds.", id="little-of-its-own"),
        pytest.param("The broker crashed in 1932.",
                     "The broker crashed in 1933.", id="too-short"),
        pytest.param("Open connections to 10 servers of the cluster.",
                     "Open connections to 20 servers of the cluster.", id="order-without-article"),
        pytest.param("Each holds 10 open connections of the pool.",
                     "Each holds 20 open connections of the pool.", id="each-of-something"),
        pytest.param("Both accept 10 clients of the broker at once.",
                     "Both accept 20 clients of the broker at once.", id="both-of-something"),
        pytest.param("For many clients the broker waits 10 seconds.",
                     "For many clients the broker waits 20 seconds.", id="many-of-the-subject"),
    ],
)  # fmt: skip
def test_sentences_that_state_nothing_of_their_own_are_no_conflict(
    left: str, right: str, conflicts: Any
) -> None:
    assert conflicts(left, right) == []


def test_one_page_does_not_conflict_with_itself(conflicts: Any) -> None:
    assert conflicts(LIMIT, LIMIT.replace("100", "60"), other_page=False) == []
