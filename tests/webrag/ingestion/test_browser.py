import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.conftest import Route, StaticSite
from tests.tls_hosts import tls_hosts
from webrag.errors import FetchError, SourceUnavailableError
from webrag.ingestion.browser import BrowserRenderer
from webrag.ingestion.fetch_context import metered
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.logins.session import Cookie, Login, Logins
from webrag.ingestion.models import FetchConfig, FetchedPage

FRAME = '<!doctype html><title>Hives</title><div id="app"></div><script src="{}"></script>'
WRITES = 'document.getElementById("app").innerHTML = "<h1>Hives</h1><p>A hive weighs 40 kg.</p>"'

# One browser serves them all.
pytestmark = pytest.mark.asyncio(loop_scope="module")

Start = Callable[..., StaticSite]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def fetcher() -> AsyncIterator[HttpFetcher]:
    opened = HttpFetcher(FetchConfig(allowed_hosts=("127.0.0.1",)))
    yield opened
    await opened.aclose()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def renderer(fetcher: HttpFetcher, chromium: Path) -> AsyncIterator[BrowserRenderer]:
    opened = BrowserRenderer(fetcher, chromium)
    yield opened
    await opened.aclose()


def page_of(url: str, html: str) -> FetchedPage:
    return FetchedPage(
        requested_url=url, url=url, status=200, kind="html", text=html, etag='"shell"',
        fetched_at=datetime.now(UTC), source="builtin",
    )  # fmt: skip


async def drawn(
    renderer: BrowserRenderer, site: StaticSite, html: str, *, other_sites: bool = False
) -> str:
    rendering = await renderer.render(page_of(f"{site}/", html), other_sites=other_sites)
    return rendering.page.text


def serve(start: Start, scripts: Mapping[str, Route]) -> StaticSite:
    return start({path: _script(code) for path, code in scripts.items()})


def _script(code: Route) -> Route:
    if not isinstance(code, str):
        return code
    return lambda _: (200, {"Content-Type": "text/javascript"}, code)


async def test_text_that_a_script_writes_is_in_the_page(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(static_site, {"/app.js": WRITES})
    assert "A hive weighs 40 kg." in await drawn(renderer, site, FRAME.format("/app.js"))


async def test_text_that_comes_later_from_an_interface_is_waited_for(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    code = """setTimeout(async () => {
      const said = await (await fetch('/api/hive.json')).json();
      document.getElementById('app').textContent = said.weight; }, 300)"""
    answer = '{"weight": "Forty kilograms, says the interface."}'
    site = serve(
        static_site,
        {"/app.js": code, "/api/hive.json": lambda _: (200, {"Content-Type": "text/json"}, answer)},
    )
    assert "says the interface" in await drawn(renderer, site, FRAME.format("/app.js"))


async def test_open_shadow_trees_are_part_of_the_page(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    code = """customElements.define('hive-card', class extends HTMLElement { connectedCallback() {
      this.attachShadow({mode: 'open'}).innerHTML = '<p>Before</p><slot></slot><p>After</p>'; } });
      document.getElementById('app').innerHTML = '<hive-card>the <b>middle</b></hive-card>'"""
    html = await drawn(renderer, serve(static_site, {"/a.js": code}), FRAME.format("/a.js"))
    assert html.index("Before") < html.index("<b>middle</b>") < html.index("After")


async def test_notice_to_readers_without_scripts_is_gone(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    html = FRAME.format("/app.js") + "<noscript>Please enable JavaScript.</noscript>"
    assert "enable JavaScript" not in await drawn(
        renderer, serve(static_site, {"/app.js": WRITES}), html
    )


async def test_drawn_page_has_no_validators_of_its_empty_frame(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(static_site, {"/app.js": WRITES})
    page = page_of(f"{site}/", FRAME.format("/app.js"))
    rendering = await renderer.render(page, other_sites=False)
    assert (rendering.page.etag, rendering.page.source) == (None, "browser")


async def test_page_itself_is_not_asked_for_twice(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(static_site, {"/app.js": WRITES})
    await drawn(renderer, site, FRAME.format("/app.js"))
    assert site.paths == ["/app.js"]


async def test_files_that_robots_txt_forbids_are_not_fetched(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = static_site({"/robots.txt": "User-agent: *\nDisallow: /app.js", "/app.js": WRITES})
    html = await drawn(renderer, site, FRAME.format("/app.js"))
    assert (site.paths, "40 kg" in html) == ([], False)


@pytest.mark.parametrize(
    "code",
    [
        "fetch('{other}/secret')",
        "new Image().src = '{other}/secret'",
        "navigator.sendBeacon('{other}/secret', 'x')",
        "new WebSocket('{other}/secret'.replace('http', 'ws'))",
        "new EventSource('{other}/secret')",
        "new Worker(URL.createObjectURL(new Blob([`fetch('{other}/secret')`])))",
        "location.href = '{other}/secret'",
        "window.open('{other}/secret')",
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " {src: '{other}/secret'}))",
    ],
)
async def test_no_script_reaches_a_host_that_is_not_open_to_the_fetcher(
    code: str, renderer: BrowserRenderer, static_site: Start
) -> None:
    other = static_site({"/secret": "<p>private</p>"})
    address = other.url.replace("127.0.0.1", "localhost")
    site = serve(static_site, {"/app.js": WRITES + ";" + code.replace("{other}", address)})
    try:
        html = await drawn(renderer, site, FRAME.format("/app.js"), other_sites=True)
    except FetchError:
        html = ""
    assert (other.requests, "private" in html) == ([], False)


async def test_no_page_has_the_browser_dial_a_host(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    dialled: list[str] = []

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dialled.append("once")
        writer.close()

    listener = await asyncio.start_server(note, "127.0.0.1")
    port = listener.sockets[0].getsockname()[1]
    hints = [
        f"<link rel={rel} href=http://localhost:{port}/>"
        for rel in ("preconnect", "dns-prefetch", "prefetch", "preload")
    ]
    code = (
        f"document.head.insertAdjacentHTML('beforeend', {''.join(hints)!r});"
        "const call = new RTCPeerConnection({iceServers: [{username: 'a', credential: 'b',"
        f" urls: 'turn:localhost:{port}?transport=tcp'}}]}});"
        "call.createDataChannel('x');"
        "call.createOffer().then((offer) => call.setLocalDescription(offer));"
        f"setTimeout(() => {{ {WRITES} }}, 1000)"
    )
    site = serve(static_site, {"/app.js": code})
    async with listener:
        html = await drawn(renderer, site, FRAME.format("/app.js"), other_sites=True)
        before, (reader, writer) = len(dialled), await asyncio.open_connection("localhost", port)
        await reader.read()
        writer.close()
    assert ("40 kg" in html, before, dialled) == (True, 0, ["once"])


async def test_files_of_other_sites_are_counted_when_they_are_left_out(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    library = serve(static_site, {"/app.js": WRITES})
    port = library.url.rpartition(":")[2]
    site = static_site({})
    page = page_of(f"{site}/", FRAME.format(f"http://localhost:{port}/app.js"))
    rendering = await renderer.render(page, other_sites=False)
    assert (rendering.left_out, library.requests) == (1, [])


async def test_page_that_is_never_done_is_taken_as_it_is_when_the_time_is_up(
    fetcher: HttpFetcher, static_site: Start, chromium: Path
) -> None:
    code = WRITES + ";setInterval(() => document.body.append('tick '), 20)"
    site = serve(static_site, {"/app.js": code})
    renderer = BrowserRenderer(fetcher, chromium, timeout_s=4)
    try:
        assert "40 kg" in await drawn(renderer, site, FRAME.format("/app.js"))
    finally:
        await renderer.aclose()


async def test_script_without_end_is_given_up_and_the_next_page_drawn(
    fetcher: HttpFetcher, static_site: Start, chromium: Path
) -> None:
    site = serve(static_site, {"/endless.js": "for (;;) {}", "/app.js": WRITES})
    renderer = BrowserRenderer(fetcher, chromium, timeout_s=2)
    try:
        with pytest.raises(FetchError, match=r"drawn|draw"):
            await drawn(renderer, site, FRAME.format("/endless.js"))
        assert "40 kg" in await drawn(renderer, site, FRAME.format("/app.js"))
    finally:
        await renderer.aclose()


async def test_files_beyond_the_bytes_of_a_page_do_not_reach_it(
    fetcher: HttpFetcher, static_site: Start, chromium: Path
) -> None:
    site = serve(static_site, {"/app.js": WRITES})
    renderer = BrowserRenderer(fetcher, chromium, max_bytes=10)
    try:
        assert "40 kg" not in await drawn(renderer, site, FRAME.format("/app.js"))
    finally:
        await renderer.aclose()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def small_renderer(fetcher: HttpFetcher, chromium: Path) -> AsyncIterator[BrowserRenderer]:
    opened = BrowserRenderer(fetcher, chromium, max_memory=500_000_000)
    yield opened
    await opened.aclose()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("for (;;) kept.push(new Array(100000).fill(1.5))", id="heap"),
        pytest.param("for (;;) kept.push(new Uint8Array(2e7).fill(1))", id="buffers"),
        pytest.param("for (;;) kept.push(new Blob([new Uint8Array(2e7).fill(1)]))", id="blobs"),
        pytest.param(
            "for (;;) new Uint8Array(kept[kept.push(new WebAssembly.Memory({initial: 300})) - 1]"
            ".buffer).fill(1)",
            id="wasm",
        ),
        pytest.param(
            "const copy = 'const kept = []; for (;;) kept.push(new Uint8Array(2e7).fill(1))';"
            "for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob([copy])))",
            id="workers",
        ),
        pytest.param(
            "setInterval(() => { const canvas = document.createElement('canvas');"
            "canvas.width = canvas.height = 3000; kept.push(canvas);"
            "const pen = canvas.getContext('2d'); pen.fillRect(0, 0, 3000, 3000);"
            "pen.getImageData(0, 0, 1, 1); }, 5)",
            id="canvas",
        ),
        pytest.param(
            "setInterval(() => { const frame = document.createElement('iframe');"
            "frame.srcdoc = '<script>held = new Uint8Array(2e7).fill(1)</' + 'script>';"
            "document.body.append(frame); }, 5)",
            id="frames",
        ),
        pytest.param(
            "setInterval(() => document.body.insertAdjacentHTML('beforeend',"
            "'<p><b>x</b></p>'.repeat(100000)), 5)",
            id="elements",
        ),
    ],
)
async def test_page_that_fills_memory_is_ended_and_the_next_one_drawn(
    code: str, small_renderer: BrowserRenderer, static_site: Start
) -> None:
    grows = f"const kept = []; setInterval(() => document.body.append('x'), 50); {code}"
    site = serve(static_site, {"/app.js": WRITES, "/grows.js": grows})

    with pytest.raises(FetchError, match="would need more than 500,000,000 bytes of memory"):
        await drawn(small_renderer, site, FRAME.format("/grows.js"))

    assert "40 kg" in await drawn(small_renderer, site, FRAME.format("/app.js"))


async def test_page_beside_one_that_fills_memory_is_drawn(
    small_renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(
        static_site,
        {
            "/app.js": f"setTimeout(() => {{ {WRITES} }}, 1500)",
            "/grows.js": "const kept = []; for (;;) kept.push(new Uint8Array(2e7).fill(1))",
        },
    )
    beside = asyncio.create_task(drawn(small_renderer, site, FRAME.format("/app.js")))

    with pytest.raises(FetchError, match="bytes of memory"):
        await drawn(small_renderer, site, FRAME.format("/grows.js"))

    assert "40 kg" in await beside


async def test_page_that_becomes_too_long_is_not_taken(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(static_site, {"/app.js": "document.body.dataset.x = 'x'.repeat(2.1e7)"})

    with pytest.raises(FetchError, match="more than 20,000,000 characters once it is drawn"):
        await drawn(renderer, site, FRAME.format("/app.js"))


class Meter:
    def __init__(self) -> None:
        self.bytes = 0

    def refusal(self) -> str | None:
        return None

    def received(self, size: int) -> None:
        self.bytes += size


async def test_bytes_of_the_files_count_for_the_run(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    meter = Meter()
    with metered(meter):
        await drawn(renderer, serve(static_site, {"/app.js": WRITES}), FRAME.format("/app.js"))
    assert meter.bytes == len(WRITES)


async def test_killed_browser_is_started_again(
    renderer: BrowserRenderer, static_site: Start
) -> None:
    site = serve(static_site, {"/app.js": WRITES})
    await drawn(renderer, site, FRAME.format("/app.js"))
    for pid in children_named("chrom"):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await asyncio.sleep(0.5)
    assert "40 kg" in await drawn(renderer, site, FRAME.format("/app.js"))


async def test_cancelled_drawing_leaves_no_page_and_closing_no_process(
    fetcher: HttpFetcher, static_site: Start, chromium: Path
) -> None:
    site = serve(static_site, {"/app.js": "setInterval(() => document.body.append('x'), 20)"})
    before = set(children_named("chrom"))
    renderer = BrowserRenderer(fetcher, chromium)
    task = asyncio.create_task(drawn(renderer, site, FRAME.format("/app.js")))
    async with asyncio.timeout(30):
        while "/app.js" not in site.paths:
            await asyncio.sleep(0.05)
    started = set(children_named("chrom")) - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await renderer.aclose()
    assert started
    async with asyncio.timeout(20):
        while set(children_named("chrom")) - before:
            await asyncio.sleep(0.1)


async def test_start_that_is_cancelled_leaves_no_driver(
    fetcher: HttpFetcher, static_site: Start, chromium: Path
) -> None:
    before = set(children_named("node"))
    renderer = BrowserRenderer(fetcher, chromium)
    task = asyncio.create_task(drawn(renderer, static_site({}), FRAME.format("/app.js")))
    async with asyncio.timeout(30):
        while not set(children_named("node")) - before:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.1)  # it runs, and has not yet said that it is ready
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set(children_named("node")) <= before


async def test_browser_that_cannot_be_started_is_named(
    fetcher: HttpFetcher, static_site: Start, tmp_path: Path
) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    renderer = BrowserRenderer(fetcher, program)
    with pytest.raises(SourceUnavailableError, match=str(program)):
        await drawn(renderer, static_site({}), FRAME.format("/app.js"))
    await renderer.aclose()


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/node"])
async def test_driver_that_cannot_be_started_is_named(
    fetcher: HttpFetcher,
    static_site: Start,
    chromium: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", program)
    before = set(psutil.Process().children())
    renderer = BrowserRenderer(fetcher, chromium)
    with pytest.raises(SourceUnavailableError, match="Playwright, which drives the browser"):
        await drawn(renderer, static_site({}), FRAME.format("/app.js"))
    await renderer.aclose()
    await left_alone(before)


async def left_alone(before: set[psutil.Process]) -> None:
    """Wait until programs started since have ended and the loop, which may end too, has seen it."""
    async with asyncio.timeout(20):
        while set(psutil.Process().children()) - before:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.05)


def children_named(part: str) -> list[int]:
    """Processes below this one whose program has `part` in its name."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended since it was listed
            if part in child.name() and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child.pid)
    return found


WIKI = "https://wiki.example"
LEAVES = "<script>location = 'https://evil.example/'</script>"
STEALS = f"""<body><p>Evil</p><script src="{WIKI}/secret.js"></script></body>"""
READS = """<script>fetch('/data').then(answer => answer.text())
.then(text => document.body.innerText = text)</script>"""


@pytest.mark.parametrize(
    ("html", "asked", "has_login"),
    [
        pytest.param(READS, f"{WIKI}/data", True, id="its-own-script"),
        pytest.param(LEAVES, f"{WIKI}/secret.js", False, id="the-site-it-left-for"),
    ],
)
async def test_login_goes_with_what_its_own_page_asks_for(
    html: str, asked: str, has_login: bool, chromium: Path
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    login = Login("wiki.example", (Cookie("session", "s3cret-0123456789", "wiki.example"),))
    with tls_hosts() as hosts:
        hosts.replies = {
            f"{WIKI}/data": (200, {}, "A hive weighs 40 kg."),
            f"{WIKI}/secret.js": (200, {}, ""),
            "https://evil.example/": (200, {}, STEALS),
        }
        config = FetchConfig(allowed_hosts=("wiki.example", "evil.example"))
        parts = HttpFetcher(config, resolver=resolve, dialer=hosts.dialer, logins=Logins([login]))
        renderer = BrowserRenderer(parts, chromium)
        page = page_of(f"{WIKI}/", f"<body>{html}</body>").model_copy(update={"with_login": True})
        try:
            await renderer.render(page, other_sites=True)
        finally:
            await renderer.aclose()
            await parts.aclose()

    assert [each.cookie is not None for each in hosts.sent_to(asked)] == [has_login]
