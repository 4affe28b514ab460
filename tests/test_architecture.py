import re
import subprocess
import sys
from pathlib import Path

import pytest

import webrag

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "webrag",
    ROOT / "node_parsers/llama_index/node_parser/webrag",
    ROOT / "postprocessors/llama_index/postprocessor/webrag",
]
MODULES = [
    path
    for package in PACKAGES
    for path in sorted(package.rglob("*.py"))
    if "site" not in path.parts
]
TESTS_OF = {
    PACKAGES[0]: ROOT / "tests/webrag",
    PACKAGES[1]: ROOT / "tests/node_parsers",
    PACKAGES[2]: ROOT / "tests/postprocessors",
}

# Modules that are parts of another one: by the test file that goes through them.
TESTED_THROUGH = {
    "tests/node_parsers/test_parent_child.py": ["html_alignment", "html_page", "sections"],
    "tests/node_parsers/test_rich_content.py": ["metadata"],
    "tests/node_parsers/test_segmentation.py": ["lines", "tokens"],
    "tests/postprocessors/test_local_rerank.py": ["rerank_features"],
    "tests/webrag/indexing/test_corpus.py": ["page_queries"],
    "tests/webrag/indexing/test_database.py": ["connection_errors", "pools", "server_checks"],
    "tests/webrag/indexing/test_embedded_postgres.py": [
        "file_locks", "postgres_binaries", "postgres_cluster", "postgres_watcher"
    ],
    "tests/webrag/indexing/test_schema.py": ["tables"],
    "tests/webrag/indexing/test_store.py": ["store_queries", "store_rows"],
    "tests/webrag/ingestion/test_extract.py": [
        "admonitions", "markdown", "marks", "mathml", "outgoing", "passages", "prune", "rewrite",
        "tables", "tree",
    ],
    "tests/webrag/ingestion/test_extraction_pool.py": ["extraction_worker"],
    "tests/webrag/ingestion/test_fetcher.py": ["http_client"],
    "tests/webrag/mcp_server/test_server.py": ["schemas"],
    "tests/webrag/orchestration/test_engine.py": ["actions", "judgement", "research"],
    "tests/webrag/orchestration/test_workflow.py": ["events"],
    "tests/webrag/presentation/test_brief.py": ["blocks", "layout", "sections"],
    "tests/webrag/retrieval/test_search.py": ["plans", "queries", "request"],
    "tests/webrag/settings/test_model.py": [
        "corpus_settings", "evidence_settings", "explain", "fields", "planned", "serving_settings"
    ],
}  # fmt: skip
WITHOUT_BEHAVIOUR = {
    "__main__",  # one call; test_running.py starts it
    "assembly",  # puts objects together; every test that uses an engine or the app runs it
    "errors",  # classes with attributes
    "models",  # values
}
# The server as a process that speaks over stdio: several modules together.
WITHOUT_MODULE = {"tests/webrag/mcp_server/test_stdio.py"}


def test_import_rules_hold() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([command], cwd=ROOT, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", webrag.__all__)
def test_every_public_name_can_be_loaded(name: str) -> None:
    assert getattr(webrag, name) is not None


def test_importing_webrag_loads_neither_llama_index_nor_the_database_driver() -> None:
    code = (
        "import sys, webrag, webrag.settings, webrag.cli; "
        "print([m for m in ('llama_index.core', 'psycopg', 'mcp', 'numpy') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


def test_every_path_the_architecture_page_names_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    paths = re.findall(
        r"`((?:webrag|node_parsers|postprocessors|tests|docs|benchmarks)/[\w./]*)`", text
    )
    missing = [path for path in paths if not (ROOT / path).exists()]

    assert paths
    assert missing == []


def test_every_package_of_the_application_is_on_the_architecture_page() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    packages = [path.parent.relative_to(ROOT) for path in ROOT.glob("webrag/*/__init__.py")]

    assert [str(package) for package in packages if f"`{package}/" not in text] == []


def test_only_settings_reads_the_environment() -> None:
    readers = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if re.search(r"os\.(environ|getenv)", path.read_text(encoding="utf-8"))
    }
    # Both pass a part of it on to a process they start.
    readers -= {"webrag/indexing/postgres_binaries.py", "webrag/ingestion/extraction_pool.py"}

    assert {path for path in readers if not path.startswith("webrag/settings/")} == set()


def test_every_test_file_stands_where_the_module_it_tests_does() -> None:
    strays = {
        test.relative_to(ROOT).as_posix()
        for package, tests in TESTS_OF.items()
        for test in tests.rglob("test_*.py")
        if not any(
            (package / test.relative_to(tests).parent / name).exists()
            for name in (f"{test.stem[5:]}.py", test.stem[5:])
        )
    }

    assert strays == WITHOUT_MODULE


def test_every_module_has_a_test_file_or_says_which_one_goes_through_it() -> None:
    through = {
        (Path(test).parent / f"test_{name}.py").as_posix()
        for test, names in TESTED_THROUGH.items()
        for name in names
        if (ROOT / test).exists()
    }
    wanted = {
        (tests / path.relative_to(package).parent / f"test_{path.name}")
        .relative_to(ROOT)
        .as_posix()
        for package, tests in TESTS_OF.items()
        for path in package.rglob("*.py")
        if path.name != "__init__.py" and path.stem not in WITHOUT_BEHAVIOUR
    }
    present = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}

    assert sorted(wanted - present - through) == []
    assert sorted(through & present | through - wanted) == []
