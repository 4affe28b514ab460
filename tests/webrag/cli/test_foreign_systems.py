"""Systems without Unix' own modules, and installations without the extra of the workers."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import Result
from psycopg.conninfo import conninfo_to_dict

from webrag.errors import how_to_install

ROOT = Path(__file__).parents[3]

WITHOUT = """
import sys
for name in ("fcntl", "pwd", "grp", "termios", "resource", "uvloop"):
    sys.modules[name] = None
from webrag.cli import main
site, place = sys.argv[1], sys.argv[2:]
for command in (
    ["ingest", f"{site}/", *place],
    ["search", "How is the filter cleaned?", *place],
    ["ingest", f"{site}/other", "--queue", *place],
    ["jobs", "work", "--until-empty", *place],
    ["jobs", "list", *place],
):
    try:
        main(command, prog_name="webrag")
    except SystemExit as end:
        assert not end.code, command
"""

PAGE = """<html><head><title>Kettle</title></head><body><main><h1>Kettle</h1>
<p>Clean the filter of the kettle every three weeks with citric acid.</p></main></body></html>"""


def test_server_of_ones_own_needs_no_module_of_unix(
    server: Any, static_site: Callable[..., Any], tmp_path: Any
) -> None:
    site = static_site({"/": PAGE, "/other": PAGE.replace("Kettle", "Pot")})
    place = conninfo_to_dict(server.embedded.conninfo)
    url = f"postgresql://postgres@/{server.name}?host={quote(str(place['host']))}"
    if "port" in place:
        url += f"&port={place['port']}"

    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, site, "--allow-host", site.removeprefix("http://"), "-q"],
        env={**os.environ, "WEBRAG_DATABASE_URL": url, "WEBRAG_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert ran.returncode == 0, ran.stderr
    assert "every three weeks with citric acid" in ran.stdout
    assert f"1: {site}/other\n  (done)" in ran.stdout


def test_modules_of_unix_are_imported_where_they_are_used_only() -> None:
    unix = {"fcntl", "grp", "pwd", "resource", "termios"}
    importing = {
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "webrag").rglob("*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Import) and unix & {each.name for each in node.names}
    }

    # Loaded only when the embedded server is asked for.
    embedded = "webrag/postgres/embedded/"
    assert importing == {f"{embedded}{name}.py" for name in ("cluster", "server", "watcher")}


@pytest.mark.parametrize(
    "command",
    [
        ("jobs", "work"),
        ("jobs", "list"),
        ("jobs", "show", "1"),
        ("jobs", "cancel", "1"),
        ("jobs", "retry", "1"),
        ("jobs", "schedule"),
        ("ingest", "https://docs.test/", "--queue"),
    ],
)
def test_command_of_a_missing_extra_says_how_to_get_it(
    webrag: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "procrastinate", None)

    ran = webrag(*command)

    assert ran.exit_code == 2
    assert how_to_install("workers") in ran.stderr.replace("\n", " ")
