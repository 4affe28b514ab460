"""Loads a model folder through `EMBEDDING_PROVIDER` and checks what is promised of it.

Usage: EMBEDDING_PROVIDER=huggingface|fastembed EMBEDDING_MODEL=FOLDER
           python benchmarks/local_models_check.py

Any folder will do, random weights included. Tests cannot do this for huggingface, which needs
PyTorch. Checked: no address is looked up, nothing is printed to standard output, vectors have the
size the corpus would record and do not depend on their batch, six threads at once get the same
vectors, the event loop is not held up while texts are embedded, and loading leaves progress bars as
they were.
"""

import asyncio
import io
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from webrag.embedding.bundled import BundledEmbedding
from webrag.embedding.embedder import Embedder
from webrag.settings import load_settings
from webrag.wiring.embeddings import choose_embedding

TEXTS = [f"Replica {n} follows its primary. " * (1 + 7 * (n % 4)) for n in range(64)]
LONGEST_GAP_S = 0.5

looked_up: list[Any] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        looked_up.append(arguments[0])


async def embed(embedder: Embedder) -> tuple[np.ndarray, float]:
    """Vectors of all texts, and the longest time another task waited for its turn."""
    work = asyncio.create_task(embedder.embed_documents(TEXTS))
    longest, last = 0.0, time.perf_counter()
    while not work.done():
        await asyncio.sleep(0.01)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return await work, longest


def progress_bars() -> tuple[bool, ...]:
    """Whether downloading and reading weights show their progress, as far as packages are here."""
    try:
        from huggingface_hub.utils.tqdm import are_progress_bars_disabled
        from transformers.utils.logging import is_progress_bar_enabled
    except ImportError:
        return ()
    return not are_progress_bars_disabled(), is_progress_bar_enabled()


def main() -> None:
    sys.addaudithook(watch)
    bars = progress_bars()
    printed = io.StringIO()
    with redirect_stdout(printed):
        choice = choose_embedding(load_settings(), None, BundledEmbedding())
        model = choice.load()
        together, gap = asyncio.run(embed(Embedder(model, choice.dimensions, limits=choice.limits)))
        with ThreadPoolExecutor(6) as threads:
            alone = np.array(list(threads.map(model.get_text_embedding, TEXTS)))
        question = model.get_query_embedding("What does a replica follow?")
    held = {
        "no address is looked up": not looked_up,
        "nothing goes to standard output": not printed.getvalue(),
        "vectors have the recorded size": together.shape == (len(TEXTS), choice.dimensions),
        "questions have it too": len(question) == choice.dimensions,
        "batches and threads change nothing": bool(np.allclose(together, alone, atol=1e-3)),
        "progress bars are left as they were": progress_bars() == bars,
        f"the event loop waits less than {LONGEST_GAP_S} s ({gap:.2f} s)": gap < LONGEST_GAP_S,
    }
    print(f"{choice.name}, {choice.dimensions} dimensions")
    for promise, holds in held.items():
        print(f"{'holds ' if holds else 'BROKEN'}  {promise}")
    sys.exit(not all(held.values()))


if __name__ == "__main__":
    main()
