"""What importing costs: nothing of a provider, and of LlamaIndex only what is asked for."""

import json
import subprocess
import sys

FACES = ("webrag", "llama_index.node_parser.webrag", "llama_index.postprocessor.webrag")
PROVIDERS = {
    "cohere", "docutils", "fastembed", "firecrawl", "langsmith", "onnxruntime", "openai",
    "opentelemetry.sdk", "pandas", "playwright", "procrastinate", "torch", "transformers",
    "wordllama", "zeroentropy",
}  # fmt: skip
# Whoever names one of these asks for the package of its provider.
OF_PROVIDERS = ("CohereRerank", "ZeroEntropyRerank")


def loaded(program: str) -> set[str]:
    """Modules that a program has loaded by its end."""
    told = f"{program}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout))


def test_faces_load_neither_llamaindex_nor_numpy() -> None:
    modules = loaded("\n".join(f"import {face}" for face in FACES))

    assert not modules & {"llama_index.core", "numpy", "pydantic", "psycopg"}
    assert len(modules) < 150


def test_no_name_but_a_provider_s_own_loads_its_package() -> None:
    modules = loaded(f"""
from importlib import import_module
for face in map(import_module, {FACES}):
    for name in set(face.__all__) - set({OF_PROVIDERS}):
        getattr(face, name)
""")

    assert not modules & PROVIDERS


def test_stored_logins_load_nothing_that_drives_a_browser() -> None:
    assert "webrag.ingestion.browser" not in loaded("import webrag.ingestion.logins.store")


def test_turns_at_hosts_load_nothing_that_fetches() -> None:
    assert "webrag.ingestion.http.fetcher" not in loaded("import webrag.corpus.host_turns")
