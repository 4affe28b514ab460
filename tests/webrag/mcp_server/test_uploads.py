"""Forms and the export over real connections: who is refused, and how much of it is kept first."""

import asyncio
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from webrag.web.site import FORM_BYTES

Load = Callable[[], Any]
PIECE = b"x" * 65_536
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=limit"
MEBIBYTE = 1_048_576


async def csrf_of(base: str) -> str:
    async with httpx2.AsyncClient(base_url=base) as http:
        found = re.search('name="csrf" content="([^"]+)"', (await http.get("/runs/none")).text)
    assert found
    return found[1]


async def sent(
    base: str,
    path: str,
    beginning: bytes,
    kind: str,
    *,
    pieces: int = 0,
    **headers: str,
) -> str:
    """What the server says to a form that never ends."""
    address = urlsplit(base)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    named = {"Host": address.netloc, "Content-Type": kind, **headers}
    if "Content-Length" not in named:
        named["Transfer-Encoding"] = "chunked"
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    writer.write(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
    if "Content-Length" not in named:
        for piece in [beginning, *[PIECE] * pieces]:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
    async with asyncio.timeout(60):
        answer = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\ncontent-length: (\d+)", answer)
        assert length, answer
        answer += await reader.readexactly(int(length[1]))
    writer.close()
    return answer.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("path", "kind", "length"),
    [
        ("/corpus/add", URLENCODED, FORM_BYTES + 1),
        ("/corpus/add", MULTIPART, FORM_BYTES + 1),
        ("/runs", URLENCODED, 10**15),
    ],
)
async def test_form_that_says_it_is_too_long_is_refused_before_it_comes(
    serving_mcp: Any, load: Load, path: str, kind: str, length: int
) -> None:
    async with serving_mcp(load) as base:
        answer = await sent(base, path, b"", kind, **{"Content-Length": str(length)})

    assert answer.startswith("HTTP/1.1 413")
    assert "is longer than the" in answer


@pytest.mark.parametrize("path", ["/corpus/add", "/corpus/forget", "/runs"])
async def test_form_that_does_not_say_how_long_it_is_is_counted_while_it_comes(
    serving_mcp: Any, load: Load, path: str
) -> None:
    async with serving_mcp(load, mcp_enable_forget=True) as base:
        beginning = f"csrf={await csrf_of(base)}&url=".encode()
        tracemalloc.start()
        answer = await sent(base, path, beginning, URLENCODED, pieces=1_600)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert answer.startswith("HTTP/1.1 413")
    assert peak < 16 * MEBIBYTE  # of 100


SITES = {
    "its own page": ({"sec-fetch-site": "same-origin"}, 200),
    "a typed address": ({"sec-fetch-site": "none"}, 200),
    "a program": ({}, 200),
    "another site": ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
    "another port": ({"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"}, 403),
    "an old browser on another port": ({"origin": "http://localhost:1"}, 403),
    "an image": ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}, 403),
}


@pytest.mark.parametrize("asker", SITES)
async def test_export_goes_to_no_page_of_another_site(
    serving_mcp: Any, connecting: Any, tmp_path: Path, postgres_dir: Path, asker: str
) -> None:
    headers, status = SITES[asker]
    settings = {"data_dir": postgres_dir, "collection": f"export_{tmp_path.name.lower()[-20:]}"}
    async with (
        serving_mcp(None, **settings) as base,
        httpx2.AsyncClient(base_url=base, headers=headers, timeout=60) as http,
    ):
        answer = await http.get("/corpus/export")

    assert answer.status_code == status
    assert ("content-disposition" in answer.headers) is (status == 200)


@pytest.mark.parametrize("path", ["/corpus", "/corpus/export", f"/pages/{'0' * 32}"])
@pytest.mark.parametrize("kind", ["image", "iframe", "script", "empty"])
async def test_nothing_stored_is_read_for_a_part_of_another_sites_page(
    serving_mcp: Any, load: Load, memory: Any, path: str, kind: str
) -> None:
    mode = "navigate" if kind == "iframe" else "no-cors"
    headers = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": mode,
        "sec-fetch-dest": kind,
    }
    async with (
        serving_mcp(load) as base,
        httpx2.AsyncClient(base_url=base, headers=headers) as http,
    ):
        answer = await http.get(path)

    assert answer.status_code == 403
