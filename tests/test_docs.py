import json
import re
from pathlib import Path

import pytest

from webrag.orchestration.evaluator import RULES

ROOT = Path(__file__).parents[1]
WEIGHTS = ROOT / "postprocessors/llama_index/postprocessor/webrag/local_rerank.json"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_scoring_page_lists_the_rules_in_the_order_they_are_tried() -> None:
    assert re.findall(r"^\| `(\w+)` \|", page("scoring.md"), re.M) == [rule.name for rule in RULES]


def test_scoring_page_states_the_weights_that_are_used() -> None:
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    stated = re.findall(r"^\| [\w, ]+ \| (\d\.\d+) \|$", page("scoring.md"), re.M)

    assert stated == [str(weight) for weight in weights.values()]


def test_scoring_page_states_the_curve_that_is_used() -> None:
    curve = json.loads(WEIGHTS.read_text(encoding="utf-8"))["calibration"]

    assert f"{curve['slope']}\\,(x - {curve['centre']})" in page("scoring.md")


def test_links_page_states_the_weights_that_are_used() -> None:
    from webrag.orchestration.models import ExpansionConfig

    stated = [float(weight) for weight in re.findall(r"\| (0\.\d\d) \|", page("concepts/links.md"))]

    assert stated == list(ExpansionConfig().signal_weights.values())


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem
)
def test_every_python_block_of_the_documentation_compiles(path: Path) -> None:
    from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT

    for block in re.findall(r"```python\n(.*?)```", path.read_text("utf-8"), re.S):
        compile(block, str(path), "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT)
