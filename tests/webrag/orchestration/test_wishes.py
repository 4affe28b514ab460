from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.orchestration.models import RankedChunk
from webrag.orchestration.question.wishes import Wish, fulfilled, read_wishes, without_effect
from webrag.question import Question

from .conftest import Lab, build_chunk, build_ranked

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SEED = "docs.test"


def read(constraint: str) -> Wish:
    (wish,) = read_wishes([constraint], None, named_sites=[SEED])
    return wish


@pytest.mark.parametrize(
    ("constraint", "kinds"),
    [
        ("code examples", ("code",)),
        ("must include code examples", ("code",)),
        ("with a snippet", ("code",)),
        ("show a TABLE of the settings", ("table",)),
        ("step-by-step instructions", ("steps",)),
        ("code and a table", ("code", "table")),
        ("no code", ()),
        ("don't quote tables", ()),
        ("what the status code means", ()),
        ("the code of conduct", ()),
        ("tablets", ()),
    ],
)
def test_kinds_of_content_are_recognised(constraint: str, kinds: tuple[str, ...]) -> None:
    assert read(constraint).kinds == kinds


@pytest.mark.parametrize(
    ("constraint", "is_recent"),
    [
        ("prioritize recent content", True),
        ("the latest version", True),
        ("up-to-date", True),
        ("the current documentation", True),
        ("in the current directory", False),
        ("not recent", False),
    ],
)
def test_wish_for_recent_pages_is_recognised(constraint: str, is_recent: bool) -> None:
    assert read(constraint).recent is is_recent


@pytest.mark.parametrize(
    ("constraint", "sites"),
    [
        ("only docs.example.com", ("docs.example.com",)),
        ("Only from https://docs.example.com/.", ("docs.example.com",)),
        ("use only pages of example.com", ("example.com",)),
        ("search only 127.0.0.1:8000", ("127.0.0.1:8000",)),
        ("example.com only", ("example.com",)),
        ("only version 3", ()),
        ("only Python", ()),
        ("official documentation", (SEED,)),
        ("prefer official sources", (SEED,)),
        ("unofficial mods", ()),
        ("nothing official", ()),
    ],
)
def test_sites_are_recognised(constraint: str, sites: tuple[str, ...]) -> None:
    assert read(constraint).sites == sites


def ranked(score: float, **values: Any) -> RankedChunk:
    return build_ranked(score, **values)


def order(rankings: Sequence[Sequence[RankedChunk]]) -> list[str]:
    return [each.chunk.text for part in rankings for each in part]


@pytest.mark.parametrize(
    ("wish", "values"),
    [
        (Wish("code", kinds=("code",)), {"has_code": True}),
        (Wish("code or table", kinds=("code", "table")), {"has_table": True}),
        (Wish("recent", recent=True), {"published_at": NOW - timedelta(days=30)}),
        (Wish("only", sites=("docs.test",)), {}),
        (Wish("only", sites=("test",)), {}),
    ],
)
def test_what_is_wished_for_passes_what_is_a_little_better(
    wish: Wish, values: dict[str, Any]
) -> None:
    part = (
        ranked(0.62, text="better", site="blog.other:80"),
        ranked(0.60, text="wished", site="docs.test:80", **values),
    )

    assert order(fulfilled([part], [wish], NOW))[0] == "wished"


def test_what_is_wished_for_does_not_pass_what_is_much_better() -> None:
    part = (ranked(0.9, text="better"), ranked(0.5, text="wished", has_code=True))

    assert order(fulfilled([part], [Wish("code", kinds=("code",))], NOW)) == ["better", "wished"]


def test_newer_pages_pass_older_ones() -> None:
    days = {"old": 4000, "new": 10}
    part = tuple(
        ranked(0.6, text=text, published_at=NOW - timedelta(days=age)) for text, age in days.items()
    )

    assert order(fulfilled([part], [Wish("recent", recent=True)], NOW)) == ["new", "old"]


def test_site_that_nothing_is_of_leaves_everything() -> None:
    part = (ranked(0.9), ranked(0.5))

    assert fulfilled([part], [Wish("only", sites=("other.test",))], NOW) == [part]


WISHES = st.lists(
    st.sampled_from(
        [
            Wish("code", kinds=("code",)),
            Wish("recent", recent=True),
            Wish("here", sites=("docs.test",)),
            Wish("elsewhere", sites=("other.test",)),
            Wish("nothing"),
        ]
    ),
    max_size=4,
)
CHUNKS = st.builds(
    ranked,
    st.floats(0, 1),
    has_code=st.booleans(),
    site=st.sampled_from(["docs.test", "other.test", "third.test"]),
    published_at=st.sampled_from([None, NOW, NOW - timedelta(days=900)]),
)


@given(parts=st.lists(st.lists(CHUNKS, max_size=4).map(tuple), max_size=3), wishes=WISHES)
def test_wishes_add_nothing_and_keep_the_scale_of_scores(
    parts: list[tuple[RankedChunk, ...]], wishes: list[Wish]
) -> None:
    result = fulfilled(parts, wishes, NOW)

    given_ids = [{each.chunk.chunk_id for each in part} for part in parts]
    found_ids = [{each.chunk.chunk_id for each in part} for part in result]
    scores = [each.reranked_score for part in result for each in part]
    assert all(found <= known for found, known in zip(found_ids, given_ids, strict=True))
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert bool(scores) == any(parts)


@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=6), holding=st.integers(0, 63))
def test_wishes_for_kinds_keep_the_best_score(scores: list[float], holding: int) -> None:
    part = tuple(ranked(s, has_code=bool(holding >> n & 1)) for n, s in enumerate(scores))

    (result,) = fulfilled([part], [Wish("code", kinds=("code",))], NOW)

    assert result[0].reranked_score == pytest.approx(max(scores), abs=1e-12)


@pytest.mark.parametrize(
    ("constraint", "reason"),
    [
        ("be brief", "'be brief' (nothing is ordered or left out by it)"),
        ("code please", "'code please' (no code in the evidence)"),
        ("recent", "'recent' (no page with a date in the evidence)"),
        ("only other.test", "'only other.test' (nothing of other.test in the evidence)"),
        ("no code", "'no code' (nothing is ordered or left out by it)"),
    ],
)
def test_wishes_that_came_to_nothing_are_named_with_the_reason(
    constraint: str, reason: str
) -> None:
    told = without_effect([read(constraint)], [build_chunk()])

    assert told == f"Wishes without effect: {reason}."


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        ("code please", {"has_code": True}),
        ("recent", {"published_at": NOW}),
        ("only docs.test", {}),
        ("official", {}),
        ("must include examples of traps", {}),
    ],
)
def test_wishes_that_had_an_effect_are_not_named(constraint: str, values: dict[str, Any]) -> None:
    assert without_effect([read(constraint)], [build_chunk(**values)]) is None


def test_an_intent_that_orders_nothing_is_named() -> None:
    wishes = read_wishes([], "exploratory", named_sites=())

    assert "'intent exploratory'" in (without_effect(wishes, [build_chunk()]) or "")


BY_HAND = """<html><head><title>Restarting</title></head><body><main><h1>Restart the server</h1>
<p>Restart the gannet server from its menu, where it says restart.</p></main></body></html>"""
BY_COMMAND = """<html><head><title>Restarting</title></head><body><main><h1>Restart</h1>
<p>Restart the gannet server from a shell with one line.</p>
<pre><code>gannet down
gannet up --now</code></pre></main></body></html>"""


async def test_a_wish_for_code_puts_the_passage_with_code_first(
    lab: Lab, static_site: Callable[..., Any]
) -> None:
    site = static_site({"/hand": BY_HAND, "/command": BY_COMMAND})
    urls, question = [f"{site}/hand", f"{site}/command"], "restart the gannet server"

    plain = await lab.engine().run(Question.of(question, urls=urls))
    wished = await lab.engine().run(Question.of(question, urls=urls, constraints=["prefer code"]))

    assert [max(each.chunks, key=lambda c: c.reranked_score).chunk.source_url
            for each in (plain, wished)] == urls  # fmt: skip
    worst, best = zip(*(sorted(c.reranked_score for c in each.chunks) for each in (plain, wished)),
                      strict=True)  # fmt: skip
    lift = (worst[0] / best[0]) / (worst[1] / best[1])
    assert 1 / 1.151 < lift < 1.151  # once
    assert wished.confidence == pytest.approx(plain.confidence, abs=0.1)
    assert wished.warnings == ()


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"constraints": ["be kind", "recent"]}, ["'be kind'", "'recent' (no page with a date"]),
        ({"intent": "exploratory"}, ["'intent exploratory'"]),
        ({"constraints": ["code"], "retrieval_mode": "full_context"}, ["given whole"]),
    ],
)
async def test_a_result_names_the_wishes_nothing_came_of(
    lab: Lab, manual: Any, asked: dict[str, Any], named: list[str]
) -> None:
    result = await lab.engine().run(
        Question.of("Which port does it listen on?", urls=manual + "/", **asked)
    )

    (warning,) = result.warnings
    assert all(each in warning for each in named)
