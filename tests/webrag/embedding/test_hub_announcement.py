"""What is said before sentence-transformers downloads a model; the Hub is a loopback server."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from webrag.embedding.local import announce_hub_download

WHOLE: dict[str, Any] = {
    "siblings": [
        {"rfilename": "model.safetensors", "size": 60_000_000},
        {"rfilename": "2_Dense/model.safetensors", "size": 30_900_000},
        {"rfilename": "pytorch_model.bin", "size": 91_000_000},
        {"rfilename": "onnx/model.safetensors", "size": 5_000_000},
    ],
    "cardData": {"license": "apache-2.0"},
}


class Hub(ThreadingHTTPServer):
    """Answers every question about a model alike."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.told: dict[str, Any] | None = WHOLE
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        self.server.asked.append(self.path.partition("?")[0])
        body = json.dumps({"id": "any/model", **(self.server.told or {})}).encode()
        self.send_response(200 if self.server.told is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        pytest.param(WHOLE, "about 91 MB, licence apache-2.0", id="weights-that-are-read"),
        pytest.param({"siblings": WHOLE["siblings"][2:]}, "about 91 MB, licence unknown", id="bin"),
        pytest.param({"siblings": []}, "of unknown size, licence unknown", id="no-weights"),
        pytest.param(None, "of unknown size, licence unknown", id="no-such-model"),
    ],
)
def test_size_and_licence_are_said_as_far_as_the_hub_knows_them(
    hub: Hub,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    told: dict[str, Any] | None,
    said: str,
) -> None:
    hub.told = told

    announce_hub_download("any/model", tmp_path, endpoint=hub.address)

    assert caplog.messages == [f"Downloading the model any/model once: {said}, kept in {tmp_path}."]


def test_a_hub_that_cannot_be_reached_is_no_error(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hub.shutdown()
    hub.server_close()

    announce_hub_download("any/model", tmp_path, endpoint=hub.address)

    assert "of unknown size, licence unknown" in caplog.text


def test_a_name_without_an_owner_is_asked_for_as_sentence_transformers_reads_it(
    hub: Hub, tmp_path: Path
) -> None:
    announce_hub_download("all-MiniLM-L6-v2", tmp_path, endpoint=hub.address)

    assert hub.asked == ["/api/models/sentence-transformers/all-MiniLM-L6-v2"]


def test_weights_on_disk_are_neither_asked_for_nor_announced(
    hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    snapshot = tmp_path / "models--any--model" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").touch()

    announce_hub_download("any/model", tmp_path, endpoint=hub.address)

    assert (hub.asked, caplog.messages) == ([], [])
