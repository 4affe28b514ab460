import hashlib
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from webrag.errors import ConfigurationError
from webrag.mcp_server.authorization.callers import StaticTokens, parse_tokens, read_tokens

ALICE, BOB, CAROL = ("alice-" * 6, "bob-" * 8, "carol-" * 6)
TABLE = f"""
# name scopes token collection
alice  read,write,forget  {ALICE}
bob    read               sha256:{hashlib.sha256(BOB.encode()).hexdigest()}   red
  carol\twebrag:read,write\t{CAROL}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(TABLE)
    return path


@pytest.mark.parametrize(
    ("token", "name", "scopes"),
    [
        (ALICE, "token alice", {"webrag:read", "webrag:write", "webrag:forget"}),
        (BOB, "token bob", {"webrag:read"}),
        (CAROL, "token carol", {"webrag:read", "webrag:write"}),
        ("the-shared-one", "the shared token", {"webrag:read", "webrag:write", "webrag:forget"}),
    ],
)
async def test_token_stands_for_its_line(token: str, name: str, scopes: set[str]) -> None:
    tokens = StaticTokens(parse_tokens(TABLE), shared="the-shared-one")

    found = await tokens.caller(token)

    assert found is not None
    assert (found.name, found.scopes) == (name, scopes)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "alice",
        ALICE[:-1],
        f"{ALICE} ",
        ALICE.upper(),
        "s\udcffcret",
        f"sha256:{hashlib.sha256(BOB.encode()).hexdigest()}",
        hashlib.sha256(BOB.encode()).hexdigest(),
    ],
)
async def test_other_text_stands_for_nobody(token: str) -> None:
    assert await StaticTokens(parse_tokens(TABLE), shared="secret").caller(token) is None


@pytest.mark.parametrize("token", ["secret", "secret ", "", "Secret", "s\udcffcret"])
async def test_only_the_shared_token_itself_is_accepted(token: str) -> None:
    found = await StaticTokens(shared="secret").caller(token)

    assert (found is not None) == (token == "secret")


async def test_collections_are_those_of_the_claim() -> None:
    tokens = StaticTokens(parse_tokens(TABLE), shared="x", base="base", claim="team")

    found = {each: await tokens.caller(each) for each in (ALICE, BOB, CAROL, "x")}

    named = [caller.collection for caller in found.values() if caller and caller.collection]
    assert len(set(named)) == 3
    assert named[1].startswith("base_red_")
    assert found["x"] is not None
    assert found["x"].collection is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("alice read", "Line 1 of MCP_TOKENS_FILE has 2 columns"),
        (f"alice read {ALICE} red blue", "has 5 columns"),
        (f"al/ice read {ALICE}", "has a name with other characters"),
        (f"alice admin {ALICE}", "has the scope 'admin' but allowed are read, write, forget"),
        (f"alice read, {ALICE}", "has the scope ''"),
        (f"alice {ALICE} read", "has scopes but allowed are"),
        ("alice read too-short", "has a token that is neither"),
        ("alice read sha256:abc", "has a token that is neither"),
        (f"alice read sha256:{'A' * 64}", "has a token that is neither"),
        (f"alice read {'é' * 20}", "has a token that is neither"),
        (f"alice read {ALICE}\nalice read {BOB}", "Line 2 .* a second time"),
        (f"alice read {ALICE}\nbob read {ALICE}", "Line 2 of .* gives a token a second time"),
        ("", "holds no token"),
        ("# alice read x", "holds no token"),
    ],
)
def test_table_that_is_not_right_is_refused_without_showing_a_token(
    line: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as refusal:
        parse_tokens(line)

    assert ALICE not in str(refusal.value)


def test_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.*cannot be read: No such file"):
        read_tokens(tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * 1_000_001])
def test_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokens").write_bytes(content)

    with pytest.raises(ConfigurationError, match="MCP_TOKENS_FILE names"):
        read_tokens(tmp_path / "tokens")


async def test_names_of_the_table_may_do_what_their_scopes_say(
    serving_mcp: Any, connecting: Any, load: Any, file: Path, memory: Any
) -> None:
    async with serving_mcp(load, mcp_tokens_file=file, mcp_auth_token="shared") as base:
        async with connecting(base, CAROL) as client:
            await client.call_tool("ingest", {"url": "https://docs.example.org/"})
        async with connecting(base, "shared") as client:
            await client.call_tool("search", {"query": "What?"})
        async with httpx2.AsyncClient(base_url=base) as http:
            headers = {"Accept": "application/json, text/event-stream"}
            params = {"name": "ingest", "arguments": {"url": "https://docs.example.org/"}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            refused = [
                await http.post(
                    "/mcp", json=message, headers=headers | {"Authorization": f"Bearer {token}"}
                )
                for token in (BOB, "unknown")
            ]

    assert [name for name, _ in memory.calls] == ["ingest", "search"]
    assert [each.status_code for each in refused] == [403, 401]
    assert 'scope="webrag:read webrag:write"' in refused[0].headers["WWW-Authenticate"]


async def test_reader_is_listed_what_it_may_call_and_told_why_the_rest_is_refused(
    serving_mcp: Any, connecting: Any, load: Any, file: Path
) -> None:
    async with (
        serving_mcp(load, mcp_tokens_file=file, mcp_enable_forget=True) as base,
        connecting(base, BOB) as reader,
        connecting(base, ALICE) as owner,
    ):
        listed = {
            name: {tool.name for tool in (await client.list_tools()).tools}
            for name, client in (("reader", reader), ("owner", owner))
        }
        with pytest.raises(MCPError, match=r"\[ERROR\]\nThe token lacks webrag:write\."):
            await reader.call_tool("ingest", {"url": "https://docs.example.org/"})

    assert listed["owner"] - listed["reader"] == {"answer", "ingest", "forget"}
    assert listed["reader"] == {"search", "read", "status", "verify"}


async def test_session_of_one_name_is_nothing_to_another(
    serving_mcp: Any, load: Any, file: Path
) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with (
        serving_mcp(load, mcp_tokens_file=file) as base,
        httpx2.AsyncClient(base_url=base, headers=accept) as http,
    ):
        alice, bob = ({"Authorization": f"Bearer {each}"} for each in (ALICE, BOB))
        opened = await http.post("/mcp", json=opening, headers=alice)
        session = {"Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
        answers = [await http.post("/mcp", json=listing, headers=h | session) for h in (bob, alice)]

    assert [each.status_code for each in answers] == [404, 200]


def test_example_of_the_documentation_is_a_table() -> None:
    page = (Path(__file__).parents[3] / "docs/clients.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```text\n(# name.*?)```", page, re.S)

    table = parse_tokens(example)

    assert [(entry.name, entry.value) for entry in table] == [
        ("alice", "red"),
        ("bob", "red"),
        ("auditor", "blue"),
    ]
