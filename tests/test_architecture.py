import ast
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
    readers -= {"webrag/postgres/embedded/cluster.py", "webrag/process_pool/pool.py"}
    # They set a variable that other packages read, before any of them is imported.
    readers -= {"webrag/__init__.py", "webrag/cli/main.py"}

    assert {path for path in readers if not path.startswith("webrag/settings/")} == set()


def test_every_folder_of_tests_is_named_like_the_package_it_tests() -> None:
    strays = [
        test.relative_to(ROOT).as_posix()
        for package, tests in TESTS_OF.items()
        for test in tests.rglob("test_*.py")
        if not (package / test.parent.relative_to(tests)).is_dir()
    ]

    assert strays == []


def test_no_docstring_begins_with_a_question_word() -> None:
    words = {"What", "Whether", "Those", "Which", "Who", "How", "Where", "When", "Why"}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    begun = [
        f"{path.relative_to(ROOT)}:{node.body[0].lineno} {said.splitlines()[0]}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, documented) and (said := ast.get_docstring(node))
        if re.split(r"\W", said, maxsplit=1)[0] in words
    ]

    assert begun == []
