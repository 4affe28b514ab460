"""Pages that frameworks draw: how many can be read without and with a browser, and at what cost.

    uv run --group dev benchmarks/script_pages.py FOLDER [RENDERS]

FOLDER gets the frameworks by npm, once. RENDERS more pages are drawn at the end to watch memory.
"""

import asyncio
import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from webrag import WebRAG
from webrag.settings import Settings

PACKAGES = [
    "esbuild",
    "react",
    "react-dom",
    "vue",
    "preact",
    "solid-js",
    "lit",
    "mithril",
    "alpinejs",
    "svelte",
    "docsify",
    "swagger-ui-dist",
    "redoc",
]
SENTENCE = "A Dadant hive weighs about forty kilograms when it is full of honey."
ROW = ("Frames", "twelve")
LIST = json.dumps([SENTENCE, *(f"{a} in a hive: {b}." for a, b in [ROW])])

API = {
    "openapi": "3.0.0",
    "info": {"title": "Hives", "version": "1", "description": SENTENCE},
    "paths": {"/hives": {"get": {"summary": "Lists hives", "responses": {"200": {
        "description": "All hives of the apiary"}}}}},
}  # fmt: skip

# What each framework is given: a heading, a paragraph and a list that come from data.
SOURCES = {
    "react": f"""import React, {{useState, useEffect}} from 'react';
import {{createRoot}} from 'react-dom/client';
function App() {{ const [rows, set] = useState([]); useEffect(() => {{ set({LIST}) }}, []);
return React.createElement('main', null, React.createElement('h1', null, 'Hives'),
 rows.map((r, i) => React.createElement('p', {{key: i}}, r))) }}
createRoot(document.getElementById('app')).render(React.createElement(App));""",
    "vue": f"""import {{createApp}} from 'vue/dist/vue.esm-bundler.js';
createApp({{data: () => ({{rows: {LIST}}}),
 template: '<main><h1>Hives</h1><p v-for="r in rows">{{{{r}}}}</p></main>'}}).mount('#app');""",
    "preact": f"""import {{h, render}} from 'preact';
render(h('main', null, h('h1', null, 'Hives'), {LIST}.map(r => h('p', null, r))),
 document.getElementById('app'));""",
    "solid": f"""import h from 'solid-js/h'; import {{render}} from 'solid-js/web';
render(() => h('main', h('h1', 'Hives'), {LIST}.map(r => h('p', r))),
 document.getElementById('app'));""",
    "lit": f"""import {{LitElement, html}} from 'lit';
class Hives extends LitElement {{ render() {{ return html`<h1>Hives</h1>
 ${{{LIST}.map(r => html`<p>${{r}}</p>`)}}` }} }}
customElements.define('my-hives', Hives);
document.getElementById('app').append(document.createElement('my-hives'));""",
    "mithril": f"""import m from 'mithril'; m.mount(document.getElementById('app'),
 {{view: () => m('main', m('h1', 'Hives'), {LIST}.map(r => m('p', r)))}});""",
    "alpine": f"""import Alpine from 'alpinejs'; window.rows = {LIST};
document.getElementById('app').innerHTML = '<main x-data="{{rows}}"><h1>Hives</h1>' +
 '<template x-for="r in rows"><p x-text="r"></p></template></main>'; Alpine.start();""",
    "svelte": "import {mount} from 'svelte'; import App from './svelte_app.js';"
    " mount(App, {target: document.getElementById('app')});",
}
SVELTE = f"<script>let rows = $state({LIST})</script><main><h1>Hives</h1>" \
    "{#each rows as r}<p>{r}</p>{/each}</main>"  # fmt: skip
FRAME = '<!doctype html><title>Hives</title><div id="app"></div>'


def build(folder: Path, site: Path) -> list[str]:
    """Write one page a framework below `site`; give their names."""
    modules = folder / "node_modules"
    if not all((modules / name).is_dir() for name in PACKAGES):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        run(folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *PACKAGES)
    compile_svelte = (
        "const {compile} = require('svelte/compiler');"
        f"console.log(compile({json.dumps(SVELTE)}, {{generate: 'client'}}).js.code)"
    )
    source = folder / "src"
    source.mkdir(exist_ok=True)
    (source / "svelte_app.js").write_text(run(folder, "node", "-e", compile_svelte))
    for name, code in SOURCES.items():
        (source / f"{name}.js").write_text(code)
        run(
            folder, str(modules / ".bin/esbuild"), f"src/{name}.js", "--bundle", "--minify",
            "--define:process.env.NODE_ENV='production'", "--conditions=browser",
            f"--outfile={site / name}.js",
        )  # fmt: skip
        (site / f"{name}.html").write_text(f'{FRAME}<script src="{name}.js"></script>')
    for name, built in {
        "docsify.js": "docsify/lib/docsify.min.js",
        "swagger.js": "swagger-ui-dist/swagger-ui-bundle.js",
        "redoc.js": "redoc/bundles/redoc.standalone.js",
    }.items():
        found = modules / built
        if not found.exists():
            found = next((modules / built.partition("/")[0]).rglob("docsify*.min.js"))
        shutil.copy(found, site / name)
    (site / "README.md").write_text(f"# Hives\n\n{SENTENCE}\n")
    (site / "api.json").write_text(json.dumps(API))
    (site / "docsify.html").write_text(f'{FRAME}<script src="docsify.js"></script>')
    (site / "swagger.html").write_text(
        f'{FRAME}<script src="swagger.js"></script>'
        "<script>SwaggerUIBundle({url: 'api.json', dom_id: '#app'})</script>"
    )
    (site / "redoc.html").write_text(
        f'{FRAME}<redoc spec-url="api.json"></redoc><script src="redoc.js"></script>'
    )
    return sorted([*SOURCES, "docsify", "swagger", "redoc"])


def run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


async def read(
    base: str, names: list[str], browser: str, data: Path
) -> dict[str, tuple[str, float]]:
    """For each page what came of it, and the seconds it took."""
    settings = Settings(
        allow_hosts=("127.0.0.1",), data_dir=data, collection=f"scripts_{browser}", browser=browser
    )
    outcome = {}
    async with WebRAG(settings) as rag:
        for name in names:
            started = time.perf_counter()
            await rag.ingest(f"{base}/{name}.html")
            # What several pages say alike is returned once, so one page is asked for.
            found = await rag.search(
                "How much does a full hive weigh?", source_urls=f"{base}/{name}.html"
            )
            texts = [each.chunk.text for each in found.chunks]
            word = "complete" if any(SENTENCE in text for text in texts) else "read"
            outcome[name] = (word if texts else "nothing", time.perf_counter() - started)
    return outcome


def resident_mb() -> float:
    """Of this process and all below it."""
    rows = [
        tuple(map(int, line.split()))
        for line in run(Path("/"), "ps", "-eo", "pid=,ppid=,rss=").splitlines()
    ]
    below = {os.getpid()}
    for _ in range(6):
        below |= {pid for pid, parent, _ in rows if parent in below}
    return sum(rss for pid, _, rss in rows if pid in below) / 1024


async def endure(base: str, names: list[str], renders: int, data: Path) -> None:
    settings = Settings(
        allow_hosts=("127.0.0.1",), data_dir=data, collection="scripts_endure", browser="always",
        recrawl_after=0.0,
    )  # fmt: skip
    async with WebRAG(settings) as rag:
        for done in range(renders + 1):
            if done % max(1, renders // 5) == 0:
                print(f"{done:6} pages drawn, {resident_mb():6.0f} MB in all processes")
            await rag.ingest(f"{base}/{names[done % len(names)]}.html", refresh=True)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        site.mkdir()
        names = build(folder, site)
        handler = functools.partial(Quiet, directory=str(site))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        data = Path(temporary) / "data"
        without = asyncio.run(read(base, names, "never", data))
        drawn = asyncio.run(read(base, names, "auto", data))
        print("page        without a browser   with one   seconds")
        for name in names:
            print(f"{name:12}{without[name][0]:20}{drawn[name][0]:11}{drawn[name][1]:7.1f}")
        if len(sys.argv) > 2:
            asyncio.run(endure(base, names, int(sys.argv[2]), data))
        server.shutdown()
    if unread := [name for name, (outcome, _) in drawn.items() if outcome != "complete"]:
        raise SystemExit(f"not read whole with a browser: {', '.join(unread)}")


if __name__ == "__main__":
    main()
