import re

import pytest

from tests.pattern_attacks import (
    PACKAGES,
    Use,
    all_uses,
    is_plainly_linear,
    slow_attack,
    static_findings,
)

# By part of the product, so that several processes share the measuring.
PARTS = (
    "webrag.answering",
    "webrag.corpus",
    "webrag.crawling",
    "webrag.ingestion",
    "webrag.lexical",
    "webrag.orchestration",
    "webrag.presentation",
    "webrag.retrieval",
    *PACKAGES[1:],
    "webrag",
)
QUADRATIC = (r"\s+$", r"<!--.*?-->", r"a[^b]*(?:b|$)c", rb"[ \t]*\n[ ]*\n?[ ]*x")
WORSE = (r"<loc>\s*([^<]+|<!\[CDATA\[.*?\]\]>)\s*</", r"(?:a+)+$")
LINEAR = (
    r"(?<!\s)\s++x",
    r"(?<!\s)\s++$",
    r"<[^<>]*+>",
    r"<!--.*?(?:-->|\Z)",
    r"[^,]{0,200},",
    r"^(?:(?><!--.*?-->)\s*+)*+<p",
    r"\d{1,9}(?:\.\d{1,9})?",
)


def use_of(pattern: str | bytes) -> Use:
    return Use("one", re.compile(pattern, re.DOTALL), is_anchored=False)


def part_of(use: Use) -> str:
    return next(part for part in PARTS if use.name.startswith(part))


def test_the_patterns_of_every_part_are_found() -> None:
    names = {use.name for use in all_uses()}

    assert len(names) > 200
    assert {part_of(use) for use in all_uses()} == set(PARTS)
    assert "webrag.ingestion.http.decode._HTML_START" in names
    assert any(name.startswith("webrag.ingestion.site_maps.reading:") for name in names), (
        "in functions"
    )
    assert "webrag.orchestration.question.patterns._COMPARISONS[0]" in names, "in tuples"


def test_the_analyser_has_nothing_against_any_pattern() -> None:
    found = {use.name: found for use in all_uses() if (found := static_findings(use.pattern))}

    assert not found


# A minute and more on a busy machine.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_twice_the_text_takes_no_pattern_more_than_twice_the_time(part: str) -> None:
    uses = [use for use in all_uses() if part_of(use) == part]

    found = {use.name: found for use in uses if (found := slow_attack(use))}

    assert uses
    assert not found


@pytest.mark.parametrize("pattern", [r"(?:a+)+$", r"<loc>\s*([^<]+|x)\s*</", r"x*x*x*y"])
def test_the_analyser_finds_what_takes_cubic_time(pattern: str) -> None:
    assert static_findings(re.compile(pattern))


@pytest.mark.parametrize("pattern", [*QUADRATIC, *WORSE])
def test_an_attack_is_found_for_a_pattern_that_can_be_slow(pattern: str | bytes) -> None:
    assert slow_attack(use_of(pattern))


@pytest.mark.parametrize("pattern", LINEAR)
def test_no_attack_is_found_for_a_linear_pattern(pattern: str) -> None:
    assert slow_attack(use_of(pattern)) is None


@pytest.mark.parametrize(
    "pattern",
    [*QUADRATIC, *WORSE, r"\s++x", r"(?:a|aa){0,30}b", r"(?:a{0,20}){0,20}b", r"(?:x{0,9}y?){9}z"],
)
def test_no_pattern_that_can_be_slow_is_taken_for_a_plain_one(pattern: str | bytes) -> None:
    assert not is_plainly_linear(re.compile(pattern, re.DOTALL))


@pytest.mark.parametrize("pattern", [r"\bport\b", r"a|b|c?d", r"[0-9]{1,4}-x?", r"(?<!a)b(?=c)"])
def test_pattern_without_endless_repeats_need_not_be_measured(pattern: str) -> None:
    assert is_plainly_linear(re.compile(pattern))
