import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from webrag.orchestration.decision import RULES

ROOT = Path(__file__).parents[1]
WRITTEN = [
    path
    for pattern in ("*.md", "*/README.md", "benchmarks/*/*.md", "docs/**/*.md", "notebooks/*.ipynb")
    for path in sorted(ROOT.glob(pattern))
]
NAMING = [
    path
    for folder in ("webrag", "node_parsers", "postprocessors", "benchmarks", "docs")
    for path in sorted((ROOT / folder).rglob("*.py"))
] + [ROOT / ".env.example", ROOT / "pyproject.toml", ROOT / "compose.yaml"]
EXAMPLE = "docs/guide.md"  # a file of the user's, in examples of places
WEIGHTS = ROOT / "postprocessors/llama_index/postprocessor/webrag/local_rerank.json"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_scoring_page_lists_the_rules_in_the_order_they_are_tried() -> None:
    assert re.findall(r"^\| `(\w+)` \|", page("scoring.md"), re.M) == [rule.name for rule in RULES]


def test_scoring_page_states_the_weights_that_are_used() -> None:
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    table = page("scoring.md").partition("| Feature | Weight |")[2].partition("\n\n")[0]
    stated = re.findall(r"^\| [\w, ]+ \| (\d\.\d+) \|$", table, re.M)

    assert stated == [str(weight) for weight in weights.values()]


def test_scoring_page_states_the_curve_that_is_used() -> None:
    curve = json.loads(WEIGHTS.read_text(encoding="utf-8"))["calibration"]

    assert f"{curve['slope']}\\,(x - {curve['centre']})" in page("scoring.md")


def test_links_page_names_the_signals_that_are_used() -> None:
    from webrag.orchestration.links.scoring import fitted

    table = page("concepts/loop.md").partition("| Signal | Name |")[2].partition("\n\n")[0]

    assert re.findall(r"\| `(\w+)` \|", table) == list(fitted().weights)


def test_worked_example_of_the_scoring_page_is_what_the_code_computes() -> None:
    from datetime import UTC, datetime, timedelta

    from llama_index.postprocessor.webrag.local_scoring import calibrated

    from webrag.answering.evidence import boosted, freshness
    from webrag.answering.judging import answer_confidence, band_of, weighted
    from webrag.answering.models import AnswerConfig, CitationTally
    from webrag.lexical.bm25 import fuse_scores
    from webrag.orchestration.confidence import LOCAL, quality

    example = page("scoring.md").partition("### A worked example")[2]
    shown = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", example, re.M))

    def given(step: str) -> list[float]:
        return [float(value) for value in shown[step].split(" and ")]

    config, now = AnswerConfig(), datetime.now(UTC)
    fused = fuse_scores(
        given("BM25 of A and of B"),
        given("similarity of A and of B"),
        given("BM25 of their pages, relative"),
    )
    relevance = calibrated(*given("reranker's sum for A"))
    fresh = freshness(
        now - timedelta(days=1.5 * 365.25), window_years=config.recent_year_window, now=now
    )
    (passages,) = given("confidence of the passages")
    reflection = weighted(*given("answer judged as asked, and as searched for"))
    kept, removed = map(int, given("citations kept, and removed"))
    answer = answer_confidence(passages, reflection, CitationTally(kept=kept, removed=removed))
    order = boosted(relevance, fresh, profile=LOCAL, boost=config.rerank_recency_boost)
    computed = {
        "fused score of A": fused[0],
        "fused score of B": fused[1],
        "relevance of A": relevance,
        "on the common scale": quality(relevance, LOCAL),
        "A was published 1.5 years ago, freshness": fresh,
        "order of A": order,
        "reflection": reflection,
        "confidence of the answer, rounded down to two decimals": answer,
    }

    assert {step: shown[step] for step in computed} == {
        step: f"{value:.3f}" for step, value in computed.items()
    }
    assert shown["final reason"] == f"`{band_of(answer).reason}`"


def test_scoring_page_lists_the_bands_with_their_bounds() -> None:
    from webrag.answering.judging import band_of
    from webrag.orchestration.confidence import HIGH, LOW, MEDIUM

    reasons = re.findall(r"^\| .+ \| `(confidence_\w+)` \| .+ \|$", page("scoring.md"), re.M)

    assert reasons == [band_of(bound).reason for bound in (HIGH, MEDIUM, LOW, 0.0)]


def anchors(path: Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w -]", "", heading.lower()) for heading in headings]
    return {heading.strip().replace(" ", "-") for heading in plain}


def is_broken(link: str, page: Path) -> bool:
    """True where a link from a page leads to no file, or to no heading of a page."""
    target, _, anchor = link.partition("#")
    file = page.parent / target if target else page
    return not file.exists() or (anchor != "" and anchor not in anchors(file))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_pages_leads_to_a_page_and_a_heading(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:)([^)\s\"\\]+)", path.read_text(encoding="utf-8"))

    assert [link for link in links if is_broken(link, path)] == []


def test_every_page_that_code_names_exists() -> None:
    named = {
        (str(path.relative_to(ROOT)), page)
        for path in NAMING
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
    }

    assert len(named) > 10
    assert [each for each in named if not (ROOT / each[1]).exists() and each[1] != EXAMPLE] == []


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_every_python_block_of_the_documentation_compiles(path: Path) -> None:
    from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT

    for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S):
        compile(block, str(path), "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_confidence_pages_state_the_bounds_of_the_bands() -> None:
    from webrag.orchestration.confidence import HIGH, LOW, MEDIUM, band

    stated = re.findall(r"^\| (high|medium|low) \| (\d\.\d)", page("concepts/confidence.md"), re.M)
    sentence = re.findall(r"(high|medium|low) from (\d\.\d)", page("scoring.md"))

    assert stated == sentence == [(band(each), f"{each}") for each in (HIGH, MEDIUM, LOW)]


@pytest.mark.parametrize(
    "face", ["webrag", "llama_index.node_parser.webrag", "llama_index.postprocessor.webrag"]
)
def test_every_public_name_of_a_part_is_documented(face: str) -> None:
    module = import_module(face)
    pages = page("llamaindex.md") + page("reference/python.md")
    public = [name for name in module.__all__ if not name.startswith("__")]

    # Of a metadata key its value, which is what a node has.
    unnamed = [name for name in public if not {name, str(getattr(module, name))} & told(pages)]

    assert public
    assert unnamed == []


def told(text: str) -> set[str]:
    """The words of a text that may be names."""
    return set(re.findall(r"\w+", text))
