"""A host of repositories, on loopback."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import CGIHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class Host:
    """Where repositories are served, and what it was asked for."""

    address: str = ""
    asked: list[str] = field(default_factory=list)
    is_down: bool = False

    def __str__(self) -> str:
        return self.address


def git(folder: Path, *arguments: str, given: str = "") -> str:
    """What git prints, run in a folder without the user's configuration."""
    who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        env=environment,
        input=given.encode(),
        check=True,
        capture_output=True,
    )
    return done.stdout.decode().strip()


@contextmanager
def served_repositories(served: Path) -> Iterator[Host]:
    """Serve the repositories of a folder by git's own server program, over loopback."""
    host = Host()
    program = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip())

    class Handler(CGIHTTPRequestHandler):
        have_fork = False

        def is_cgi(self) -> bool:
            self.cgi_info = "", self.path.removeprefix("/")
            return True

        def run_cgi(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            host.asked.append("commits" if b"command=fetch" in body else "names")
            if host.is_down:
                self.send_error(503)
                return
            done = subprocess.run(
                [str(program / "git-http-backend")],
                input=body,
                capture_output=True,
                check=True,
                env={
                    "GIT_PROJECT_ROOT": str(served),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_COUNT": "1",
                    "GIT_CONFIG_KEY_0": "safe.directory",
                    "GIT_CONFIG_VALUE_0": "*",
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                },
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200")[:3]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    host.address = f"127.0.0.1:{server.server_address[1]}"
    yield host
    server.shutdown()
    thread.join()
    server.server_close()
