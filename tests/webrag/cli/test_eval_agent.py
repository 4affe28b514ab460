import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.loopback import QuietHandler, serving

Run = Callable[..., Result]

PRUNING = "Apple trees are pruned in February, on a dry day without wind."
PAGES = {
    "index.html": '<title>Garden</title><main><h1>Garden book</h1><p>The garden has <a href="'
    'trees.html">apple trees</a>, and it is open from April on.</p></main>',
    "trees.html": f"<title>Trees</title><main><h1>Apple trees</h1><p>{PRUNING}</p></main>",
}
QUESTIONS = [
    {
        "id": "prune", "query": "When are apple trees pruned?", "seed_url": "index.html",
        "site": "garden", "gold": [{"page": "trees.html", "quote": "are pruned in February"}],
    },
    {
        "id": "hopeless", "query": "Which compiler flag enables vectorisation?", "site": "garden",
        "seed_url": "index.html", "gold": [],
    },
]  # fmt: skip


class Model:
    """Chat completions of a model that follows a script; `asked` holds the decoded requests."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.quotes = PRUNING
        self.never_ends = False
        self.searches = True

    def message(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        names = {each["function"]["name"] for each in request["tools"]}
        task = next(m["content"] for m in request["messages"] if m["role"] == "user")
        read = "".join(m["content"] for m in request["messages"] if m["role"] == "tool")
        start = re.search(r"from the pages at (\S+)", task)[1]  # type: ignore[index]
        question = task.rsplit("Question: ", 1)[1]
        if not read or self.never_ends:
            if "fetch" in names:
                return _call("fetch", url=start)
            if self.searches:
                return _call("search", query=question)
            return _call("answer", query=question, url=[start])
        if "apple" not in question:
            return {"content": "NOT FOUND"}
        if "fetch" in names and "pruned in" not in read:
            return _call("fetch", url=re.search(r"\]\((\S+trees\S+)\)", read)[1])  # type: ignore[index]
        return {"content": f"In February.\n\n> {self.quotes}"}


def _call(name: str, **arguments: str | list[str]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    scripted = Model()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            request = json.loads(self.read_body())
            message = {"role": "assistant", **scripted.message(request)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {"id": "1", "object": "chat.completion", "created": 1, "choices": [choice]}
            self.send(200, json.dumps({**whole, "model": request["model"]}).encode())

    with serving(Handler) as url:
        monkeypatch.setenv("ORCHESTRATION_LLM_BASE_URL", f"{url}/v1")
        yield scripted


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    garden = tmp_path / "sites" / "garden"
    garden.mkdir(parents=True)
    for name, text in PAGES.items():
        (garden / name).write_text(text, encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(each) + "\n" for each in QUESTIONS), encoding="utf-8")
    out = ["--out", str(tmp_path / "run.jsonl")]
    return ["eval", str(questions), "--site-root", str(garden.parent), *out, "--agent"]


def _lines(arguments: list[str]) -> list[dict[str, Any]]:
    text = Path(arguments[arguments.index("--out") + 1]).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _row(name: str, shown: str) -> list[str]:
    return re.split(r"  +", next(line for line in shown.splitlines() if line.startswith(name)))[1:]


def test_a_model_answers_with_the_mcp_tools_and_with_a_plain_fetch(
    model: Model, arguments: list[str], corpus_command: Run
) -> None:
    result = corpus_command(None, *arguments)

    assert result.exit_code == 0, result.stderr
    assert _row("right", result.stdout) == ["1", "1"]
    assert _row("unanswerable, said so", result.stdout) == ["1", "1"]
    assert _row("calls", result.stdout) == ["2", "3"]
    assert _row("quotations that the tools showed", result.stdout) == ["1", "1"]
    lines = _lines(arguments)
    assert [(line["id"], line["tools"], line["calls"]) for line in lines] == [
        ("prune", "WebRAG", 1), ("prune", "fetch", 2),
        ("hopeless", "WebRAG", 1), ("hopeless", "fetch", 1),
    ]  # fmt: skip
    read = sum(line["characters"] for line in lines if line["tools"] == "fetch")
    assert _row("characters read", result.stdout)[1] == f"{read:,}"


def test_the_model_has_the_tools_of_the_server_and_nothing_else(
    model: Model, arguments: list[str], corpus_command: Run
) -> None:
    corpus_command(None, *arguments, "--limit", "1")

    offered = [[each["function"]["name"] for each in asked["tools"]] for asked in model.asked]
    assert offered[0] == ["answer", "search", "read", "status", "ingest", "verify"]
    assert offered[-1] == ["fetch"]
    assert model.asked[0]["messages"][0]["role"] == "system"


def test_the_tools_ask_no_model_themselves_so_that_every_cost_is_counted(
    model: Model, arguments: list[str], corpus_command: Run
) -> None:
    model.searches = False

    result = corpus_command(None, *arguments, "--limit", "1", "--setting", "seed")

    assert _row("right", result.stdout) == ["1", "1"]
    assert all(asked.get("tools") for asked in model.asked)


def test_a_quotation_that_no_tool_showed_is_counted_apart(
    model: Model, arguments: list[str], corpus_command: Run
) -> None:
    model.quotes = "Apple trees are pruned in March."

    result = corpus_command(None, *arguments, "--limit", "1")

    assert _row("right", result.stdout) == ["0", "0"]
    assert _row("quotations  ", result.stdout) == ["1", "1"]
    assert _row("quotations that the tools showed", result.stdout) == ["0", "0"]


def test_a_model_that_only_calls_tools_is_stopped_and_counts_as_failed(
    model: Model, arguments: list[str], corpus_command: Run
) -> None:
    model.never_ends = True

    result = corpus_command(None, *arguments, "--limit", "1", "--setting", "seed")

    assert _row("failed", result.stdout) == ["1", "1"]
    assert [line["error"] for line in _lines(arguments)] == [
        "The model gave no answer in 25 replies."
    ] * 2


def test_a_model_that_cannot_be_reached_is_recorded_for_each_question(
    arguments: list[str], corpus_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORCHESTRATION_LLM_BASE_URL", "http://127.0.0.1:1/v1")

    result = corpus_command(None, *arguments, "--limit", "1")

    assert _row("failed", result.stdout) == ["1", "1"]
    assert "could not be reached" in _lines(arguments)[0]["error"]


def test_without_a_model_it_is_told_which_variables_name_one(
    arguments: list[str], corpus_command: Run
) -> None:
    result = corpus_command(None, *arguments)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "ORCHESTRATION_LLM_BASE_URL" in result.stderr


@pytest.mark.parametrize("other", [["--ask"], ["--setting", "seed", "--deep"]])
def test_other_ways_to_ask_do_not_go_with_a_model(
    other: list[str], model: Model, arguments: list[str], corpus_command: Run
) -> None:
    result = corpus_command(None, *arguments, *other)

    assert result.exit_code == 2
    assert "--agent goes with neither" in result.stderr
