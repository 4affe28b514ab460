"""The process that works for a pool: reads requests from stdin, writes results to stdout.

Started as `python -m webrag.process_pool.process`. What it does is named by each request; it
keeps no state between them but what a job prepared, and ends when its parent does.
"""

import contextlib
import json
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

LENGTH = struct.Struct(">I")
READY = b"\x00ready"
# First byte of a request, whose second one is the job's number; a piece of work's seconds follow.
PREPARE, WORK = 0, 1
# First byte of a result, to which RETIRING is added by a process that ends after it.
DONE, FAILED, RETIRING = 1, 2, 4

# Address space, not resident memory: the interpreter and its libraries map about 250 MB.
_MEMORY_LIMIT_BYTES = 1_500_000_000
# A process that once held this much may not give it back; a new one starts in half a second.
_RETIRES_AT_BYTES = 500_000_000
_GRACE_S = 5
_MAX_TRACEBACK_CHARS = 8_000

Work = Callable[[bytes], bytes]


def main() -> int:
    """Serve until stdin ends; return the process's exit status."""
    _limit_process()
    requests, results = sys.stdin.buffer, sys.stdout.buffer
    # Whatever a library prints must not mix with the results.
    sys.stdout = sys.stderr
    # A parent that was killed reads nothing any more, and nobody else wants to hear of it.
    with contextlib.suppress(BrokenPipeError):
        _serve(requests, results)
    return 0


def _serve(requests: BinaryIO, results: BinaryIO) -> None:
    _send(results, READY)
    jobs: dict[int, Work] = {}
    while (request := _receive(requests)) is not None:
        kind, number = request[0], request[1]
        if kind == PREPARE:
            jobs[number] = _prepared(request[2:])
            _send(results, READY)
            continue
        (limit_s,) = LENGTH.unpack_from(request, 2)
        payload = request[2 + LENGTH.size :]
        del request
        # The parent kills a late worker; the alarm does it when the parent is gone.
        _alarm(limit_s + _GRACE_S)
        status, result = _result(jobs[number], payload)
        _alarm(0)
        del payload
        retires = status == FAILED or _peak_bytes() > _RETIRES_AT_BYTES
        _send(results, bytes([status + (RETIRING if retires else 0)]), result)
        if retires:
            return


def _prepared(request: bytes) -> Work:
    """What a job's factory, named as `module:function`, makes of the job's set-up."""
    length = LENGTH.unpack_from(request)[0]
    name = request[LENGTH.size : LENGTH.size + length].decode()
    module, _, function = name.partition(":")
    work: Work = getattr(import_module(module), function)(request[LENGTH.size + length :])
    return work


def _result(work: Work, payload: bytes) -> tuple[int, bytes]:
    try:
        return DONE, work(payload)
    except MemoryError:
        return FAILED, json.dumps({"kind": "memory"}).encode()
    except Exception as error:  # noqa: BLE001 - the parent says what becomes of the page
        return FAILED, json.dumps(
            {
                "kind": "unexpected",
                "reason": f"{type(error).__name__}: {error}"[:300],
                "traceback": traceback.format_exc()[-_MAX_TRACEBACK_CHARS:],
            }
        ).encode()


def _limit_process() -> None:
    # Ctrl-C goes to the whole process group; the parent decides when workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))


def _peak_bytes() -> int:
    if sys.platform == "linux":
        # What getrusage tells there begins with the size of the process that started this one.
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


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


def _send(stream: BinaryIO, *parts: bytes) -> None:
    stream.write(LENGTH.pack(sum(map(len, parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
