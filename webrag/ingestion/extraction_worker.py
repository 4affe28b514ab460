"""The process that converts pages: reads requests from stdin, writes results to stdout.

Started as `python -m webrag.ingestion.extraction_worker SECONDS` by the extraction pool. It keeps
no state between pages and ends when its parent does.
"""

import contextlib
import importlib
import json
import signal
import struct
import sys
from typing import BinaryIO

from webrag.errors import UnusablePageError
from webrag.ingestion.extract import extract
from webrag.ingestion.models import FetchedPage

__all__ = ["LENGTH", "READY", "main"]

LENGTH = struct.Struct(">I")
READY = b"\x00ready"
# Address space, not resident memory: the interpreter and its libraries map about 200 MB.
_MEMORY_LIMIT_BYTES = 1_500_000_000
_GRACE_S = 5


def main() -> int:
    """Serve until stdin ends; return the process's exit status."""
    allowed_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    _limit_process()
    importlib.import_module("htmldate")
    requests, results = sys.stdin.buffer, sys.stdout.buffer
    # Whatever a library prints must not mix with the results.
    sys.stdout = sys.stderr
    # A parent that was killed reads nothing any more, and nobody else wants to hear of it.
    with contextlib.suppress(BrokenPipeError):
        _serve(requests, results, int(allowed_s) + _GRACE_S)
    return 0


def _serve(requests: BinaryIO, results: BinaryIO, limit_s: int) -> None:
    _send(results, READY)
    while (payload := _receive(requests)) is not None:
        # The parent kills a late worker; the alarm does it when the parent is gone.
        _alarm(limit_s)
        result = _convert(payload)
        _alarm(0)
        _send(results, result)


def _convert(payload: bytes) -> bytes:
    page = FetchedPage.model_validate_json(payload)
    failure: dict[str, str | None]
    try:
        return b"\x01" + extract(page).model_dump_json().encode()
    except UnusablePageError as error:
        failure = {
            "message": str(error),
            "hint": error.hint,
            "kind": error.kind,
            "alternative_url": error.alternative_url,
        }
    except MemoryError:
        failure = {"message": f"Converting {page.url} takes too much memory."}
    except Exception as error:  # noqa: BLE001 - one page must not end the worker
        reason = f"{type(error).__name__}: {error}"[:300]
        failure = {"message": f"{page.url} cannot be converted ({reason})."}
    return b"\x02" + json.dumps(failure).encode()


def _limit_process() -> None:
    # Ctrl-C goes to the whole process group; the parent decides when workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))


def _alarm(seconds: int) -> None:
    if sys.platform != "win32":
        signal.alarm(seconds)


def _receive(stream: BinaryIO) -> bytes | None:
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    payload = stream.read(length)
    return payload if len(payload) == length else None


def _send(stream: BinaryIO, payload: bytes) -> None:
    stream.write(LENGTH.pack(len(payload)))
    stream.write(payload)
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
