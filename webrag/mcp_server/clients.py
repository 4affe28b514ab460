"""Tells MCP clients how to start the server, where they keep that, and tries it."""

import json
import os
import re
import shlex
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from webrag.errors import InputError, WebRAGError, file_trouble
from webrag.settings.variables import desktop_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from webrag.app import WebRAG
    from webrag.evaluation.runner import Tools

NAME: Final = "webrag"
_LOG_LINES: Final = 8


@dataclass(frozen=True)
class McpClient:
    """A program that starts MCP servers, and how its settings file lists them.

    The file is below the home folder, or else below that of desktop programs.
    """

    title: str
    home: bool
    file: str
    key: str = "mcpServers"
    extra: tuple[tuple[str, str | int], ...] = ()

    @property
    def path(self) -> Path:
        """Its settings file on this machine."""
        return (Path.home() if self.home else desktop_folder()) / self.file

    @property
    def is_toml(self) -> bool:
        """Its file is TOML; else it is JSON."""
        return self.file.endswith(".toml")


_STDIO: Final = (("type", "stdio"),)
# Both give up sooner than a slow page may take.
_CODEX: Final = (("startup_timeout_sec", 30), ("tool_timeout_sec", 120))
_GEMINI: Final = (("timeout", 120_000),)

CLIENTS: Final[Mapping[str, McpClient]] = {
    "claude-desktop": McpClient("Claude Desktop", False, "Claude/claude_desktop_config.json"),
    "claude-code": McpClient("Claude Code", True, ".claude.json", extra=_STDIO),
    "cursor": McpClient("Cursor", True, ".cursor/mcp.json"),
    "vscode": McpClient("VS Code", False, "Code/User/mcp.json", "servers", _STDIO),
    "codex": McpClient("Codex", True, ".codex/config.toml", "mcp_servers", _CODEX),
    "gemini": McpClient("Gemini CLI", True, ".gemini/settings.json", extra=_GEMINI),
    "windsurf": McpClient("Windsurf", True, ".codeium/windsurf/mcp_config.json"),
    "zed": McpClient("Zed", True, ".config/zed/settings.json", "context_servers"),
}


def block(client: McpClient, command: Sequence[str]) -> str:
    """The lines that the client's file needs."""
    entry = _entry(client, command)
    if not client.is_toml:
        return json.dumps({client.key: {NAME: entry}}, indent=2, ensure_ascii=False)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items()]
    return "\n".join([f"[{client.key}.{NAME}]", *lines])


def with_block(client: McpClient, text: str, command: Sequence[str]) -> str:
    """Put our lines into a client's file, refused where it is none or has comments to lose."""
    if client.is_toml:
        return _in_toml(client, text, block(client, command))
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise InputError(f"it is not plain JSON ({error}), and comments would be lost") from None
    servers = settings.setdefault(client.key, {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise InputError(f"its {client.key!r} is no object")
    servers[NAME] = _entry(client, command)
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def install(client: McpClient, command: Sequence[str]) -> Path:
    """Write the lines into the client's file and give its path, unless no program may change it."""
    path = client.path
    try:
        before = path.read_text("utf-8-sig") if path.exists() else ""
        after = with_block(client, before, command)
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        partial.write_text(after, "utf-8")
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be written: {file_trouble(error)}.") from error
    except InputError as error:
        raise InputError(
            f"{path} was left as it is: {error}.",
            hint=f"Put this there by hand:\n{block(client, command)}",
        ) from None
    return path


async def check(command: Sequence[str]) -> tuple[float, list[str], str]:
    """Start the server as a client does; give the seconds it took, its tools, and its `status`."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    began = time.monotonic()
    server = StdioServerParameters(command=command[0], args=list(command[1:]))
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            async with Client(stdio_client(server, errlog=log)) as client:
                tools = [tool.name for tool in (await client.list_tools()).tools]
                took = time.monotonic() - began
                status = await client.call_tool("status", {})
        # Whatever a server that does not start makes of the client's tasks, in groups or alone.
        except Exception as error:
            inner: BaseException = error
            while isinstance(inner, BaseExceptionGroup):
                inner = inner.exceptions[0]
            what = str(inner).rstrip(".") or type(inner).__name__
            log.seek(0)
            said = "".join(log.readlines()[-_LOG_LINES:]).rstrip()
            raise WebRAGError(
                f"The server did not answer: {what}.",
                hint=said or f"Try: {shlex.join(command)}",
            ) from error
    text = "\n".join(each.text for each in status.content if each.type == "text")
    if status.is_error:
        raise WebRAGError(f"The server answers with an error: {text}")
    return took, tools, text


@asynccontextmanager
async def mcp_tools(memory: "WebRAG") -> "AsyncIterator[Tools]":
    """Open a server over an open memory, which stays open, with its settings, and a session."""
    from mcp import Client

    from webrag.evaluation.runner import Tools, tool
    from webrag.mcp_server.server import assemble_server

    settings = memory.settings.model_copy(update={"mcp_transport": "stdio"})
    server = assemble_server(settings, load=lambda: nullcontext(memory)).server
    async with Client(server) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments)
            return "\n".join(part.text for part in result.content if part.type == "text")

        listed = (await client.list_tools()).tools
        described = [tool(each.name, each.description or "", each.input_schema) for each in listed]
        yield Tools("WebRAG", described, call, client.instructions or "")


def _entry(client: McpClient, command: Sequence[str]) -> dict[str, Any]:
    return {"command": command[0], "args": list(command[1:]), **dict(client.extra)}


def _in_toml(client: McpClient, text: str, lines: str) -> str:
    """Replace our table, tables below it included, or add it at the end."""
    header = re.escape(f"{client.key}.{NAME}")
    ours = re.compile(
        rf"^\[{header}(?:\.[^\]]*)?\][^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*", re.MULTILINE
    )
    kept = ours.sub("", text).rstrip()
    after = f"{kept}\n\n{lines}\n" if kept else f"{lines}\n"
    try:
        before, then = tomllib.loads(text), tomllib.loads(after)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"it is not TOML that can be added to ({error})") from None
    for each in (before, then):
        each.get(client.key, {}).pop(NAME, None)
    if {**before, client.key: before.get(client.key, {})} != then:
        raise InputError("its lines cannot be told apart")
    return after
