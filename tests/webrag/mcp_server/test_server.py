import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from pydantic import SecretStr

from tests.webrag.ingestion.firecrawl.fake_firecrawl import KEY, FakeFirecrawl, document
from webrag.mcp_server.server import assemble_server
from webrag.postgres.database import Database
from webrag.settings import Settings

Load = Callable[[], Any]
BUILD = """
import sys
from webrag.mcp_server.server import assemble_server
from webrag.settings import Settings
assemble_server(Settings()).server
heavy = {"llama_index", "psycopg", "numpy", "selectolax"} & {n.split(".")[0] for n in sys.modules}
print(sorted(heavy))
"""


def test_building_the_server_imports_nothing_heavy() -> None:
    built = subprocess.run(
        [sys.executable, "-c", BUILD], capture_output=True, text=True, check=True, timeout=60
    )

    assert built.stdout.strip() == "[]"


CALLERS = """
import sys
from webrag.mcp_server.server import assemble_server
from webrag.settings import load_settings
assemble_server(load_settings(**{settings})).server
ours = ("authorization", "authorization_server", "callers", "gate", "limits", "memories", "oauth",
        "static_tokens")
found = [name for name in ours if f"webrag.mcp_server.{{name}}" in sys.modules]
print(*found, *({{"jwt", "httpx2"}} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("settings", "absent"),
    [
        pytest.param(
            {}, {"authorization", "callers", "gate", "oauth", "static_tokens", "jwt"}, id="stdio"
        ),
        pytest.param(
            {"mcp_transport": "streamable-http", "mcp_auth_token": "x"},
            {"authorization_server", "oauth", "jwt"},
            id="a token",
        ),
    ],
)
def test_what_checks_tokens_is_imported_only_where_tokens_are_checked(
    settings: dict[str, str], absent: set[str]
) -> None:
    code = CALLERS.format(settings=settings)

    built = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert absent & set(built.stdout.split()) == set()


async def test_server_introduces_itself(load: object) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        assert client.server_info is not None
        assert client.server_info.name == "webrag"
        assert len(client.instructions or "") < 512


async def test_tools_are_listed_while_the_memory_is_still_being_opened(load: Load) -> None:
    opening = threading.Event()

    def slow() -> Any:
        opening.wait(30)
        return load()

    async with Client(assemble_server(Settings(), load=slow).server) as client:
        tools = (await client.list_tools()).tools
        was_waiting = not opening.is_set()
        opening.set()
        status = await client.call_tool("status", {})

    assert (len(tools), was_waiting, status.is_error) == (6, True, False)


async def test_memory_is_open_while_a_client_is_served(load: object, memory: object) -> None:
    async with Client(assemble_server(Settings(), load=load).server) as client:
        await client.call_tool("status", {})
        assert memory.is_open

    assert not memory.is_open


@pytest.fixture
def site(static_site: Callable[..., Any]) -> str:
    return str(static_site({"/": "<p>A page.</p>", "/logo.png": b"\x89PNG\r\n\x1a\n\x00\x00"}))


@pytest.fixture
def real_settings(
    site: str, postgres_dir: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    monkeypatch.setenv("WEBRAG_DATA_DIR", str(postgres_dir))
    monkeypatch.setenv("WEBRAG_COLLECTION", database.config.collection)
    monkeypatch.setenv("WEBRAG_ALLOW_HOSTS", site.removeprefix("http://"))
    return Settings()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"url": "ftp://example.org/"}, "http", id="other scheme"),
        pytest.param({"url": "http://10.0.0.1/"}, "10.0.0.1", id="private address"),
        pytest.param({"url": "http://no-such-host.invalid/"}, "no-such-host", id="dead host"),
        pytest.param({"url": "{site}/missing"}, "404", id="missing page"),
        pytest.param({"url": "{site}/logo.png"}, "logo.png", id="binary"),
        pytest.param({"query": " "}, "empty", id="empty question"),
        pytest.param({"query": "x" * 100_000}, "100,000 characters", id="long question"),
        pytest.param({"query": "a\x00b"}, "NUL", id="NUL"),
    ],
)
async def test_bad_input_is_an_error_result_and_stores_nothing(
    real_settings: Settings, site: str, arguments: dict[str, str], words: str
) -> None:
    given = {"url": f"{site}/", "query": "What is it?"} | arguments
    given["url"] = given["url"].replace("{site}", site)
    async with Client(assemble_server(real_settings).server) as client:
        result = await client.call_tool("answer", given)
        after = await client.call_tool("status", {})

    assert result.is_error
    assert words in str(result.content)
    assert "Documents indexed: 0" in str(after.content)


@pytest.mark.parametrize(("allowed", "read_by"), [((), "firecrawl"), (("127.0.0.1",), "builtin")])
async def test_pages_that_clients_name_are_read_with_the_logins_that_are_lent(
    real_settings: Settings, allowed: tuple[str, ...], read_by: str
) -> None:
    fake = FakeFirecrawl()
    url = "https://127.0.0.1/limits"
    fake.pages[url] = document("<h1>Limits</h1><p>A connection is closed after 95 s.</p>")
    # Firecrawl is told of no page that is asked for with a login.
    update = {
        "allow_hosts": ("127.0.0.1",),
        "allow_logins": allowed,
        "login_headers": SecretStr('{"127.0.0.1": {"Authorization": "Bearer s3cret-0123456789"}}'),
        "firecrawl_api_key": SecretStr(KEY),
        "firecrawl_api_url": fake.url,
    }

    async with Client(assemble_server(real_settings.model_copy(update=update)).server) as client:
        result = await client.call_tool("ingest", {"url": url})
    fake.stop()

    assert len(fake.asked("scrape")) == (read_by == "firecrawl")
    assert (f"{url}\n  (stored)" in str(result.content[0].text)) == (read_by == "firecrawl")
    assert url in str(result.content)
