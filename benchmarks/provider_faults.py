"""Six providers behind their real clients, each with thirteen faults, again and again.

uv run python benchmarks/provider_faults.py [--rounds 3]

Prints what every fault ends in, what does not end in one named error, what shows the key, and the
process's memory after each round.
"""

import argparse
import asyncio
import resource
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from llama_index.postprocessor.webrag import RerankError

from tests.webrag.wiring.provider_faults import (
    FAULTS,
    KEY,
    PROVIDERS,
    REFUSED,
    faulty_server,
)
from webrag.errors import WebRAGError
from webrag.redaction import redacted

NOBODY = "http://127.0.0.1:9"


async def outcome(provider: str, fault: str) -> tuple[str, str]:
    """A verdict, and what was said."""
    with faulty_server(FAULTS[fault]) as url:
        try:
            said = await PROVIDERS[provider](NOBODY if fault == REFUSED else url, 0.8)
        except (WebRAGError, RerankError) as error:
            shown = "".join(traceback.format_exception(error, limit=0))
            leaks = KEY in shown or redacted(shown) != shown
            return "KEY SHOWN" if leaks else "error", f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - what it looks for
            return "UNNAMED", f"{type(error).__name__}: {error}"
    return "NO ERROR", said[:100]


def main() -> int:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description="What faults of services end in.")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    bad = 0
    for number in range(rounds):
        started = time.monotonic()
        for provider in PROVIDERS:
            for fault in FAULTS:
                verdict, said = asyncio.run(outcome(provider, fault))
                bad += verdict != "error"
                if number == 0 or verdict != "error":
                    print(f"{provider:15} {fault:21} {verdict:9} {said}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = time.monotonic() - started
        print(f"round {number + 1}: {seconds:.0f} s, peak memory {peak:.0f} MB, {bad} bad so far")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
