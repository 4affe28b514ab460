"""Every benchmark at its smallest size, on made-up pages; its figures and its reference appear."""

import gzip
import io
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save_file

from tests.webrag.wiring.tiny_bert import weights, write_cross_encoder
from webrag.evaluation.metrics import comparison_key
from webrag.settings import Settings

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
QUESTIONS = BENCHMARKS / "questions"
PATIENCE_S = 300

# The arguments of each, and what must be printed: its own figures and those of the reference.
RUNS = {
    "bert_onnx.py": ("bert onnx", []),
    "fit_content.py": (
        "--gold questions.jsonl=sites",
        [r"^\d+ blocks, \d+ features", r"^ -1\.5  documentation content \d\.\d+"],
    ),
    "fit_judge.py": (
        "sites --questions units --part fit",
        [
            r"^alone +n +first +three +product 1",
            r"^all +3 +\d\.\d\d +1\.00 +\d\.\d\d",
            r"^\w+, 2\.5 +\d",
        ],
    ),
    "fit_links.py": (
        "questions.jsonl sites --limit 3",
        [r"^all signals +question alone", r'^\{"weights": \{"title": \d'],
    ),
    "fit_local_rerank.py": ("--questions questions.jsonl --site-root sites", [r"^mean +\d", "@10"]),
    "full_text_maps.py": ("sites copy", [r"^rivers: 4 pages", r"^towns: 4 pages"]),
    "import_memory.py": ("--pages 20", [r"^ +20 +\d"]),
    "ingest_speed.py": (
        "sites/towns --runs 1",
        [
            r"^WebRAG, into Postgres .* 4 pages +[1-9]\d* chunks .* [1-9]\d*\.\d ms",
            r"^stock, 1,024 tokens +\d.* [1-9]\d*\.\d ms",
            r"^stock, .* tokens for as many chunks .* 4 chunks",
        ],
    ),
    "kill_ingest.py": ("--kills 1", [r"^1 kills,.* 0 with a lost or half page$"]),
    "link_ablation.py": (
        "questions.jsonl sites --limit 1 --variants links,pages_2 --delay 0.01",
        [r"^\| links \|", r"^\| pages_2 \|"],
    ),
    "page_content.py": (
        "--gold questions.jsonl=sites",
        [r"^AEB  trafilatura", r"^questions\.jsonl: 1\.0000 of [1-9]\d* kept, 0 absent; 0 of"],
    ),
    "public.py": ("public", [r"^scifact +nDCG@10 +BM25", r"^docsearch +MRR +bundled +\d"]),
    "quotations.py": (
        "sites --questions units",
        [r"^alone +n +first +three +words", r"^all +3 +\d\.\d\d +1\.00 +\d\.\d\d +1\.00 +1\.00 "],
    ),
    "retrieval_comparison.py": (
        "--questions questions.jsonl --site-root sites --stock --data-dir data",
        [r"^ +fused \+ local rerank +@1 \d", r"^ +BM25 over", r"^ +LlamaIndex stock +@1 \d"],
    ),
    "search_scale.py": (
        "--sizes 1000 --questions 2 --checked 2 --references 1000",
        [r"^ +whole search +\d", r"^ +tsvector, ts_rank +\d", r"recall@60 1\.000, @10 1\.000"],
    ),
    "store_behaviour.py": ("", [r"^of \d+ +(\d+) +\1 "]),
    "store_speed.py": ("sites/towns --chunks 8", [r"^WebRAG, 10 URLs +\d", r"^bare SQL, 10 URLs"]),
    "typing_errors.py": ("questions.jsonl 7", [r'"query": ']),
    "workers.py": ("speed --workers 1 --hosts 2 --pages 2 --page-ms 1", [r"\d"]),
}
# What is not run here, and why.
OTHERS = {
    "fetch_sites.py": "it downloads packages; what it does with them is tested below",
    "script_pages.py": "it downloads frameworks from npm",
    "xquad_questions.py": "it writes what quotations.py reads; what it writes is tested below",
    "cached_embedding.py": "the others import it",
    "memory_corpus.py": "the others import it",
}


def test_every_benchmark_is_named() -> None:
    found = {path.relative_to(BENCHMARKS).as_posix() for path in BENCHMARKS.rglob("*.py")}

    assert found == RUNS.keys() | OTHERS.keys()


# These start themselves again or count what processes need.
ALONE = {"import_memory.py", "ingest_speed.py", "kill_ingest.py", "workers.py"}

# These keep a corpus in the folder that is given to them.
STORING = {
    "fit_judge.py", "fit_links.py", "link_ablation.py", "public.py", "quotations.py",
    "retrieval_comparison.py", "search_scale.py",
}  # fmt: skip


@pytest.mark.timeout(PATIENCE_S + 20)  # a busy machine takes ten times as long as an idle one
@pytest.mark.parametrize("name", RUNS)
def test_benchmark_prints_its_figures(
    name: str, tmp_path: Path, made_cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_material(tmp_path)
    if name in STORING:
        shutil.copytree(made_cluster, tmp_path / "data/postgres/cluster")
    arguments, shown = RUNS[name]
    run = _run if name in ALONE else partial(_run_here, monkeypatch)

    status, output = run([sys.executable, str(BENCHMARKS / name), *arguments.split()], tmp_path)

    assert not status, output[-3000:]
    assert [each for each in shown if not re.search(each, output, re.M)] == [], output


def test_variants_of_links_and_pages_are_what_a_run_is_limited_to() -> None:
    variants = runpy.run_path(str(BENCHMARKS / "link_ablation.py"))["VARIANTS"]

    settings = {name: Settings().model_copy(update=update) for name, update in variants.items()}

    assert settings["pages_10"].expansion_config().max_pages_per_run == 10
    assert not settings["links"].expansion_config().site_map.enabled
    assert settings["both"].expansion_config().site_map.enabled


def _run_here(
    monkeypatch: pytest.MonkeyPatch, command: list[str], folder: Path
) -> tuple[object, str]:
    """Run a script as `_run` does, but where all that it imports is there already."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", command[1:])
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setenv("WEBRAG_DATA_DIR", str(folder / "data"))
    status: object = 0
    with redirect_stdout(io.StringIO()) as printed:
        try:
            runpy.run_path(command[1], run_name="__main__")
        except SystemExit as end:
            status = end.code
    return status, printed.getvalue()


def _run(command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in a folder; what it has started ends with it, also when it takes too long."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"WEBRAG_DATA_DIR": str(folder / "data")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def _write_material(folder: Path) -> None:
    """Two sites and questions about them, two public sets, and a model, all very small."""
    questions = []
    for site, things in {
        "towns": ("Arden", "Belmont", "Corwick"),
        "rivers": ("Dove", "Esk", "Fal"),
    }.items():
        pages = folder / "sites" / site
        pages.mkdir(parents=True)
        links = "".join(f'<li><a href="{each}.html">About {each}</a>' for each in things)
        _write_page(pages / "index.html", "Index", f"<p>All {site} of the county.<ul>{links}</ul>")
        for number, name in enumerate(things):
            fact = f"{name} was first surveyed in {1700 + 13 * number} by the county's engineer."
            text = f"<p>{fact}</p><p>It is one of many {site} that visitors like.</p>"
            _write_page(pages / f"{name}.html", name, text)
            gold = [{"page": f"{name}.html", "quote": fact}]
            questions.append(
                {"id": name, "site": site, "seed_url": "index.html", "type": "factual"}
                | {"query": f"Which engineer surveyed {name} first?", "gold": gold}
            )
    lines = "".join(json.dumps(each) + "\n" for each in questions)
    (folder / "questions.jsonl").write_text(lines)
    _write_units(folder / "units", [each for each in questions if each["site"] == "towns"])
    _write_public_sets(folder / "public", questions)
    save_file(weights(1), write_cross_encoder(folder / "bert") / "model.safetensors")


def _write_page(path: Path, title: str, body: str) -> None:
    html = f"<!doctype html><title>{title}</title><main><h1>{title}</h1>{body}</main>"
    path.write_text(html, encoding="utf-8")


def _write_units(folder: Path, questions: list[dict[str, object]]) -> None:
    folder.mkdir()
    labels = {"source": "towns", "asked": "page", "kind": "which", "language": "en"}
    rows = {
        "sources": [{"source": "towns", "kind": "manual", "language": "en"}],
        "towns": [each | labels for each in questions],
        "towns_wordings": [{"id": each["id"], "phrasings": ["first survey"]} for each in questions],
    }
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(each) for each in lines))
    (folder / "split.json").write_text('{"towns": "fit"}')


def _write_public_sets(folder: Path, questions: list[dict[str, object]]) -> None:
    for name in ("scifact", "docsearch/pages"):
        (folder / name).mkdir(parents=True)
    texts = {str(each["id"]): str(each["gold"]) for each in questions}
    rows = {
        "corpus": [{"_id": id, "title": id, "text": text} for id, text in texts.items()],
        "queries": [{"_id": each["id"], "text": each["query"]} for each in questions],
    }
    for name, lines in rows.items():
        text = "\n".join(json.dumps(each) for each in lines)
        (folder / "scifact" / f"{name}.jsonl").write_text(text)
    grades = "".join(f"{id}\t{id}\t1\n" for id in texts)
    (folder / "scifact/qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    addresses = {f"https://docs.example/{id}": f"pages/{id}.md" for id in texts}
    (folder / "docsearch/url_map.json").write_text(json.dumps(addresses))
    for id, text in texts.items():
        (folder / f"docsearch/pages/{id}.md").write_text(f"# {id}\n\n{text}\n")
    asked = [
        {"id": each["id"], "query": each["query"]}
        | {"gold": [{"url": f"https://docs.example/{each['id']}", "grade": 1}]}
        for each in questions
    ]
    text = "\n".join(json.dumps(each) for each in asked)
    (folder / "docsearch/questions.jsonl").write_text(text)


def _lines(name: str) -> list[dict[str, Any]]:
    text = (QUESTIONS / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


FETCH = runpy.run_path(str(BENCHMARKS / "fetch_sites.py"))


@pytest.mark.parametrize("name", ["documentation", "links", "manuals"])
def test_a_published_question_has_a_package_a_seed_and_other_wordings(name: str) -> None:
    wordings = {each["id"]: each["phrasings"] for each in _lines("documentation_wordings")}

    for question in _lines(name):
        assert question["package"]
        assert question["seed_url"]
        assert len(wordings[question["id"]]) >= 2


def test_listed_pages_hold_all_evidence_and_every_seed() -> None:
    pages = FETCH["listed_pages"](QUESTIONS / "documentation.jsonl")

    for question in _lines("documentation"):
        needed = {question["seed_url"], *(gold["page"] for gold in question["gold"])}
        assert needed <= set(pages[question["site"]])


def test_fetched_site_has_the_listed_pages_and_no_others(tmp_path: Path) -> None:
    source = tmp_path / "package/usr/share/doc/git-doc"
    (source / "howto").mkdir(parents=True)
    for page in ("git.html", "howto/rebase.html", "unlisted.html"):
        (source / page).write_text(page)

    FETCH["place"]("git", tmp_path / "package", tmp_path / "git", ["git.html", "howto/rebase.html"])

    assert _files(tmp_path / "git") == ["git.html", "howto/rebase.html"]


def test_fetched_site_without_a_list_has_every_page_once(tmp_path: Path) -> None:
    source = tmp_path / "package/usr/share/doc/ffmpeg/manual"
    source.mkdir(parents=True)
    for page in ("ffmpeg.html", "ffmpeg-all.html"):
        (source / page).write_text(page)

    FETCH["place"]("ffmpeg/manual", tmp_path / "package", tmp_path / "out", [])

    assert _files(tmp_path / "out") == ["ffmpeg.html"]


def test_page_with_evidence_that_was_not_fetched_is_named(tmp_path: Path) -> None:
    question = {"site": "git", "seed_url": "git.html", "gold": [{"page": "lost.html"}]}
    (tmp_path / "git").mkdir()
    (tmp_path / "git/git.html").write_text("Git")

    assert FETCH["missing_pages"]([question], tmp_path) == ["git/lost.html"]


SOURCE = {"source": "manual", "root": "usr/share/manual", "package": "manual-doc"}


def test_pages_of_a_source_are_placed_as_they_are_served(tmp_path: Path) -> None:
    root = tmp_path / "manual-doc" / SOURCE["root"]
    root.mkdir(parents=True)
    (root / "a.html.gz").write_bytes(gzip.compress(b"<p>A"))
    (root / "NEWS").write_text("News")
    listed = SOURCE | {"pages": ["a.html.gz", "NEWS"]}

    FETCH["place_source"](listed, [tmp_path / "manual-doc"], tmp_path / "listed")
    FETCH["place_source"](SOURCE, [tmp_path / "manual-doc"], tmp_path / "every")

    placed = {path.name: path.read_text() for path in (tmp_path / "listed").iterdir()}
    assert placed == {"a.html": "<p>A", "NEWS.txt": "News"}
    assert [path.name for path in (tmp_path / "every").iterdir()] == ["a.html"]


def test_quotation_that_its_page_does_not_show_is_named(tmp_path: Path) -> None:
    (tmp_path / "manual").mkdir()
    (tmp_path / "manual/a.html").write_text("<p>Ports <b>below</b> 1024\n are kept.<script>x = 1")
    gold = {"page": "a.html", "quote": "Ports below 1024 are kept."}
    questions = [
        {"id": "shown", "source": "manual", "gold": [gold]},
        {"id": "hidden", "source": "manual", "gold": [gold | {"quote": "x = 1"}]},
        {
            "id": "other",
            "source": "manual",
            "gold": [gold | {"alternatives": [{**gold, "page": "b.html"}]}],
        },
    ]

    assert FETCH["absent_quotes"](questions, tmp_path) == ["hidden on a.html", "other on b.html"]


UNITS = [_lines(f"units/{path.stem}") for path in sorted((QUESTIONS / "units").glob("*.jsonl"))]
SOURCES = {str(row["source"]): row for rows in UNITS for row in rows if "root" in row}
ASKED = [row for rows in UNITS for row in rows if "query" in row]


def test_every_source_has_a_part_that_later_sources_leave_alone() -> None:
    quotations = runpy.run_path(str(BENCHMARKS / "quotations.py"))
    split = json.loads((QUESTIONS / "units/split.json").read_text("utf-8"))

    assert split.keys() == SOURCES.keys()
    later = {"source": "later", "kind": "blog", "language": "de"}
    assert quotations["deal"]([later, *SOURCES.values()], split) == {**split, "later": "fit"}


def test_every_sentence_question_is_whole() -> None:
    wordings = {row["id"]: row["phrasings"] for rows in UNITS for row in rows if "phrasings" in row}
    assert len({row["id"] for row in ASKED}) == len(ASKED)

    for row in ASKED:
        assert row["source"] in SOURCES
        assert len(wordings[row["id"]]) == 3, row["id"]
        assert (row["kind"] == "unanswerable") == (not row["gold"]), row["id"]
        for gold in row["gold"]:
            for place in (gold, *gold.get("alternatives", ())):
                assert 0 < len(comparison_key(place["quote"])) <= 300, row["id"]


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))


def test_questions_of_xquad_have_their_answer_and_its_sentence_on_the_page(tmp_path: Path) -> None:
    context = "Der Turm wurde 1889 erbaut. Auf dem Hügel am Ufer ist er 330 Meter hoch."
    answer = {"text": "330 Meter", "answer_start": context.index("330")}
    asked = {"id": "hoch", "question": "Wie hoch ist der Turm?", "answers": [answer]}
    articles = [{"paragraphs": [{"context": context, "qas": [asked]}]}]
    (tmp_path / "xquad.de.json").write_text(json.dumps({"data": articles}))
    script = [sys.executable, str(BENCHMARKS / "xquad_questions.py"), ".", "out"]

    status, output = _run(script, tmp_path)

    assert (status, output) == (0, "1 questions in 1 languages\n")
    row = json.loads((tmp_path / "out/questions/xquad.jsonl").read_text("utf-8"))
    assert row["gold"] == [{"page": "0.html", "quote": "ügel am Ufer ist er 330 Meter hoch."}]
    page = (tmp_path / "out/sites/xquad-de/0.html").read_text("utf-8")
    assert page.count(context) == 1
