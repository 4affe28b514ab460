from pathlib import Path
from typing import Any

from webrag import WebRAG
from webrag.evaluation.questions import Gold, Question, RunRecord
from webrag.evaluation.report import agent_figures
from webrag.evaluation.runner import fetch_tools


async def test_fetch_gives_a_page_as_markdown_with_its_links(
    rag: WebRAG, static_site: Any, site_folder: Path
) -> None:
    site = static_site(site_folder)

    async with fetch_tools(rag) as tools:
        text = await tools.call("fetch", {"url": f"{site}/index.html"})

    assert "opens at six in the morning" in text
    assert f"[keeping the rye leaven]({site}/leaven.html)" in text


async def test_fetch_gives_a_long_page_in_parts_that_make_the_whole(
    rag: WebRAG, static_site: Any, site_folder: Path
) -> None:
    url = f"{static_site(site_folder)}/index.html"

    async with fetch_tools(rag) as tools:
        whole = await tools.call("fetch", {"url": url})
        first = await tools.call("fetch", {"url": url, "max_length": 30})
        rest = await tools.call("fetch", {"url": url, "start_index": 30})

    head, _, told = first.partition("\n\nCut;")
    assert "start_index of 30" in told
    assert head + rest == whole


async def test_fetch_says_why_it_has_no_page(rag: WebRAG, static_site: Any) -> None:
    site = static_site({})

    async with fetch_tools(rag) as tools:
        missing = await tools.call("fetch", {"url": f"{site}/none.html"})
        nothing = await tools.call("fetch", {})

    assert missing.startswith("Error: ")
    assert nothing.startswith("Error: ")


def test_each_kind_of_tools_has_a_column() -> None:
    question = Question(id="q", query="When?", gold=(Gold(page="p", quote="in May"),))
    said = {"WebRAG": ("It is in May.", 200), "fetch": ("It is in June.", 9000)}
    records = [
        RunRecord(id="q", tools=tools, answer=(answer,), calls=1, characters=read)
        for tools, (answer, read) in said.items()
    ]

    rows = {name: figures for name, *figures in agent_figures([question], records)}

    assert rows[""] == ["WebRAG", "fetch"]
    assert rows["right, all gold in the answer"] == ["1", "0"]
    assert rows["characters read"] == ["200", "9,000"]
