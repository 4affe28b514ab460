"""The process that works for a pool: reads requests from stdin, writes results to stdout.

Started as `python -m webrag.process_pool.process`. What it does is named by each request; it
keeps no state between them but what a job prepared, and ends when its parent does. Requests are
pickled; results are JSON, because a process that hostile input took over must not be able to run
anything in its parent.
"""

import contextlib
import gc
import json
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Generator
from importlib import import_module
from inspect import isgenerator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import to_json

LENGTH = struct.Struct(">I")
READY = b"\x00ready"
# First byte of a request, whose second one is the job's number; a piece of work's seconds follow.
PREPARE, WORK = 0, 1
# First byte of a result, to which RETIRING is added by a process that ends after it; after a PART
# more of the same result follows.
DONE, FAILED, RETIRING, PART = 1, 2, 4, 8

# Address space, not resident memory: the interpreter and its libraries map about 250 MB.
_MEMORY_LIMIT_BYTES = 1_500_000_000
# A process that once held this much may not give it back; a new one starts in half a second.
_RETIRES_AT_BYTES = 500_000_000
_GRACE_S = 5
# Seconds on the clock for each of processor time: the machine may be busy, but nothing is stuck.
# Only Linux tells the parent of processor time.
PATIENCE = 6 if sys.platform == "linux" else 1
_MAX_TRACEBACK_CHARS = 8_000

Work = Callable[[Any], object]


def main() -> int:
    """Serve until stdin ends; return the process's exit status."""
    # Ctrl-C goes to the whole process group; the parent decides when workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
    gc.set_threshold(20_000)  # looking through what stays was a fifteenth of a page's time
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
        # The parent kills a late worker; alarms do it when the parent is gone.
        _alarm(limit_s + _GRACE_S)
        status, result = _result(results, jobs[number], memoryview(request)[2 + LENGTH.size :])
        _alarm(0)
        del request
        retires = status == FAILED or _peak_bytes() > _RETIRES_AT_BYTES
        _send(results, bytes([status + (RETIRING if retires else 0)]), result)
        if retires:
            return


def _prepared(request: bytes) -> Work:
    """Make a job's work: call its factory, named as `module:function`, with the job's set-up."""
    factory, setup = pickle.loads(request)  # noqa: S301 - the parent wrote it
    module, _, function = factory.partition(":")
    work: Work = getattr(import_module(module), function)(setup)
    return work


def _result(results: BinaryIO, work: Work, request: memoryview) -> tuple[int, bytes]:
    """Do a piece of work, sending what a generator yields at once, and give what it returns."""
    try:
        result = work(pickle.loads(request))  # noqa: S301 - the parent wrote it
        if isgenerator(result):
            result = _sent(results, result)
        return DONE, to_json(result)
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


def _sent(results: BinaryIO, parts: Generator[object, Any, object]) -> object:
    while True:
        try:
            part = next(parts)
        except StopIteration as end:
            return end.value
        _send(results, bytes([PART]), to_json(part))


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
    """End this process after so much work, or the time on the clock that it may take; 0 for not."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(seconds * PATIENCE)


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
