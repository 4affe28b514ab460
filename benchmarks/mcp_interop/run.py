"""Runs foreign test suites and clients against `webrag mcp`, and fails when one of them does.

    npm install --prefix benchmarks/mcp_interop
    python benchmarks/mcp_interop/run.py

The official conformance suite on two revisions of the protocol (what it may fail are its scenarios
about fixtures that only its own server has, listed in the baseline files: an entry that passes
fails the run), the Inspector's strict listing, calls and load test, and a client made with the
TypeScript SDK over both transports.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
MODULES = Path(os.environ.get("INTEROP_MODULES", HERE / "node_modules"))
NODE = MODULES / ".bin/node"
CONFORMANCE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
INSPECTOR = MODULES / ".bin/mcp-inspector"
PORT = 18766
URL = f"http://127.0.0.1:{PORT}/mcp"
TEXT = "<p>The slow page says that patience is a tool. It says so in two sentences.</p>" * 3


class Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep({"/slow": 7, "/slower": 15}.get(self.path, 0))
        body = f"<html><title>Slow</title><main><h1>Slow</h1>{TEXT}</main>".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Keep the output readable."""


def main() -> int:
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{site.server_port}"
    with tempfile.TemporaryDirectory() as data:
        environment = os.environ | {
            "WEBRAG_DATA_DIR": data,
            "WEBRAG_ALLOW_HOSTS": host,
            "PAGE": f"http://{host}",
        }
        webrag = [str(Path(sys.executable).with_name("webrag")), "mcp"]
        command = [*webrag, "--transport", "http", "--port", str(PORT)]
        server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            wait_until_ready()
            failures = [name for name, args in steps(webrag) if not passes(name, args, environment)]
        finally:
            server.terminate()
            server.wait(30)
    print("failed: " + ", ".join(failures) if failures else "all passed")
    return bool(failures)


def steps(webrag: list[str]) -> list[tuple[str, list[str]]]:
    inspector = [str(NODE), str(INSPECTOR), "--cli"]
    # Starting a process takes long on a busy machine.
    inspector += ["--connect-timeout", "60000"]
    over_http = [*inspector, "--server-url", URL, "--transport", "http", "--method"]
    call = [*over_http, "tools/call", "--tool-name"]
    load = ["--load", "--load-concurrency", "16", "--load-duration", "8"]
    suite = [str(NODE), str(CONFORMANCE), "server", "--url", URL, "--requirements"]
    client = [str(NODE), str(HERE / "client.mjs")]
    return [
        *(
            (
                f"conformance {revision}",
                [*suite, revision, "--expected-failures", baseline(revision)],
            )
            for revision in ("2025-11-25", "2026-07-28")
        ),
        ("inspector strict", [*over_http, "tools/list", "--strict"]),
        ("inspector stdio", [*inspector, *webrag, "--method", "tools/list", "--strict"]),
        *(
            (f"inspector {era}", [*call, "status", "--protocol-era", era, "-q"])
            for era in ("legacy", "auto", "modern")
        ),
        ("typescript http", [*client, "http", URL]),
        ("inspector load", [*call, "search", "--tool-arg", "query=patience", *load]),
        ("typescript stdio", [*client, "stdio", *webrag]),
    ]


def baseline(revision: str) -> str:
    return str(HERE / f"baseline-{revision}.yml")


def passes(name: str, command: list[str], environment: dict[str, str]) -> bool:
    if name == "typescript stdio":
        environment = environment | {"WEBRAG_COLLECTION": "stdio"}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False
        )
    seconds = time.perf_counter() - started
    print(f"{'ok  ' if ran.returncode == 0 else 'FAIL'} {name} ({seconds:.1f} s)")
    lines = (ran.stdout + ran.stderr).splitlines()
    wanted = ("Total:", "stdio: ok", "http: ok", '"requests"', '"errors"', '"p50"', '"p99"')
    if ran.returncode == 0:
        lines = [line for line in lines if any(word in line for word in wanted)]
    print("".join(f"       {line}\n" for line in lines[-30:]), end="", flush=True)
    return ran.returncode == 0


def wait_until_ready() -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=1) as answer:
                if b'"ok"' in answer.read():
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    raise SystemExit(main())
