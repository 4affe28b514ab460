import hashlib
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.crawling.traps import TrapGuard, TrapLimits, text_signature, words_hash

LIMITS = TrapLimits(trial=2, share=3, waiting=4, failures=2, duplicates=2, key_sets=2, per_facets=2)
PATHS = ("/a/1", "/a/2", "/b/x", "/b/y", "/c?p=1", "/c?p=2", "/d?p=1&q=2", "/2026/05/", "/a/b/3")
URLS = st.sampled_from([f"https://docs.test{path}" for path in PATHS])
TEXTS = st.sampled_from([" ".join(f"word{n}{m}" for m in range(30)) for n in range(3)] + ["short"])
STEPS = st.lists(st.tuples(st.sampled_from(["admit", "begin", "obtain", "fail"]), URLS, TEXTS))


def taken(guard: TrapGuard, steps: list[tuple[str, str, str]]) -> list[object]:
    """What the guard says to each step."""
    said: list[object] = []
    for step, url, text in steps:
        if step == "admit":
            said.append(guard.admit(url, 1))
        elif step == "begin":
            said.append((guard.may_wait(url), guard.begin(url)))
        elif step == "obtain":
            guard.note_obtained(url, text_signature(text), words=words_hash(text))
        else:
            guard.note_failed(url)
    return said


@given(STEPS, STEPS)
def test_guard_that_recalls_what_another_learned_says_what_that_one_would_say(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    guard, other = TrapGuard(LIMITS), TrapGuard(LIMITS)
    taken(guard, before)

    other.recall(guard.learned())

    assert taken(other, after) == taken(guard, after)


@pytest.mark.parametrize(
    ("url", "counted"),
    [
        ("https://docs.test/a/1", "waiting\npattern /a/#"),
        ("https://docs.test/2026/05/", "waiting\ncalendar /#/#/"),
        ("https://docs.test/c?p=x", "waiting\nquery /c"),
    ],
)
def test_counts_that_an_earlier_version_stored_go_on(url: str, counted: str) -> None:
    guard = TrapGuard(LIMITS)
    key = int.from_bytes(hashlib.blake2b(counted.encode(), digest_size=8).digest(), "big")

    guard.admit(url, 1)

    assert [key, 1] in json.loads(zlib.decompress(guard.learned()))["counts"]
