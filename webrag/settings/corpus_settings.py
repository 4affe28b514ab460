"""Settings of what the corpus is made of: storage, fetching, embedding. Values only, no I/O."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel

from webrag.errors import ConfigurationError
from webrag.ingestion.firecrawl.models import FIRECRAWL_CLOUD_URL
from webrag.settings.fields import (
    HOSTS_TEXT,
    HTTP_URL_TEXT,
    KEY_TEXT,
    LEVELS_TEXT,
    HostList,
    HttpUrl,
    LogLevel,
    PostgresUrl,
    ProxyUrl,
    Seconds,
    SecondsOrNever,
    Secret,
    setting,
)

__all__ = ["EmbeddingSettings", "FetchSettings", "StorageSettings", "user_folder"]


def user_folder(kind: Literal["data", "config"]) -> Path:
    """The user's folder for WebRAG, by the platform's convention; it may not exist.

    Raises:
        ConfigurationError: The user has no home folder.
    """
    xdg = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / "webrag"
    try:
        home = Path.home()
    except RuntimeError:
        raise ConfigurationError(
            "This user has no home folder, so WEBRAG_DATA_DIR must name the folder to use."
        ) from None
    if sys.platform == "win32":
        variable = "LOCALAPPDATA" if kind == "data" else "APPDATA"
        return Path(os.environ.get(variable) or home / "AppData" / "Local") / "webrag"
    if kind == "config":
        return home / ".config" / "webrag"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "webrag"
    return home / ".local" / "share" / "webrag"


def _absolute(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("holds a NUL")
    return path.expanduser().absolute()


class StorageSettings(BaseModel):
    """Storage and logging."""

    database_url: PostgresUrl | None = setting(
        None,
        "Postgres 15 or newer with pgvector 0.8 or newer to use instead of the embedded server.",
        read_by="database",
        allowed="a URL that starts with postgresql:// or postgres://",
        default_text="not set: embedded server",
        shared=True,
    )
    database_pool_size: int = setting(
        10,
        "Connections kept at most per event loop.",
        env="WEBRAG_DATABASE_POOL_SIZE",
        read_by="database",
        unit="connections",
        ge=1,
        le=100,
    )
    database_acquire_timeout: Seconds = setting(
        10.0,
        "Longest wait for a free database connection.",
        env="WEBRAG_DATABASE_ACQUIRE_TIMEOUT",
        read_by="database",
        unit="seconds",
    )
    database_statement_timeout: Seconds = setting(
        60.0,
        "Longest time of one read or write, half of it waiting for others; what the server sets "
        "for the user or the database wins.",
        env="WEBRAG_DATABASE_STATEMENT_TIMEOUT",
        read_by="database",
        unit="seconds",
    )
    data_dir: Annotated[Path, AfterValidator(_absolute)] = setting(
        None,
        "Folder of the embedded server's files.",
        env="WEBRAG_DATA_DIR",
        read_by="database",
        allowed="a path",
        default_factory=lambda: user_folder("data"),
        default_text="the user's data folder, `$XDG_DATA_HOME/webrag` on Linux",
    )
    collection: str = setting(
        "webrag",
        "Corpus to work on; each collection is a schema of its own.",
        env="WEBRAG_COLLECTION",
        read_by="database",
        allowed="1 to 48 lower-case letters, digits and underscores, not starting with a digit",
        pattern=r"^[a-z_][a-z0-9_]{0,47}$",
    )
    log_level: LogLevel = setting(
        "WARNING",
        "Least severe message that the command line prints on standard error.",
        env="WEBRAG_LOG_LEVEL",
        read_by="command line",
        allowed=LEVELS_TEXT,
    )


class FetchSettings(BaseModel):
    """Fetching."""

    allow_hosts: HostList = setting(
        (),
        "Hosts that may be contacted although their address is private; no politeness delays.",
        env="WEBRAG_ALLOW_HOSTS",
        read_by="fetcher",
        allowed=HOSTS_TEXT,
    )
    recrawl_after: SecondsOrNever = setting(
        86_400.0,
        "Age from which a stored page is checked with its site before it is used.",
        env="WEBRAG_RECRAWL_AFTER",
        read_by="page acquirer",
        unit="seconds",
        allowed="a number of seconds from 0, or `never`",
        ge=0,
        allow_inf_nan=False,
    )
    user_agent: str = setting(
        "WebRAG/0.1 (+https://github.com/webrag/webrag)",
        "Sent with every request; name a contact of yours when you fetch much.",
        env="WEBRAG_USER_AGENT",
        read_by="fetcher",
        allowed="1 to 256 printable ASCII characters",
        pattern=r"^[ -~]{0,255}[!-~]$",
    )
    fetch_timeout: Seconds = setting(
        20.0,
        "Whole fetch of one page, redirects included.",
        env="WEBRAG_FETCH_TIMEOUT",
        read_by="fetcher",
        unit="seconds",
    )
    fetch_max_bytes: int = setting(
        5_000_000,
        "Read from the network at most for one page.",
        env="WEBRAG_FETCH_MAX_BYTES",
        read_by="fetcher",
        unit="bytes",
        ge=1024,
        le=1_000_000_000,
    )
    fetch_max_decoded_bytes: int = setting(
        10_000_000,
        "Size of one page at most after decompression.",
        env="WEBRAG_FETCH_MAX_DECODED_BYTES",
        read_by="fetcher",
        unit="bytes",
        ge=1024,
        le=1_000_000_000,
    )
    fetch_max_redirects: int = setting(
        5,
        "Redirects followed for one page; each is checked like a first request.",
        env="WEBRAG_FETCH_MAX_REDIRECTS",
        read_by="fetcher",
        unit="redirects",
        ge=0,
        le=20,
    )
    fetch_prefer_markdown: bool = setting(
        False,
        "Whether the Markdown version that a page names is read in its place, at the cost of one "
        "more request.",
        env="WEBRAG_FETCH_PREFER_MARKDOWN",
        read_by="fetcher",
    )
    fetch_host_concurrency: int = setting(
        4,
        "Requests under way at once to one host.",
        env="WEBRAG_FETCH_HOST_CONCURRENCY",
        read_by="fetcher",
        unit="requests",
        ge=1,
        le=64,
    )
    fetch_host_delay: float = setting(
        0.2,
        "Least time between two requests to one host; robots.txt may ask for more.",
        env="WEBRAG_FETCH_HOST_DELAY",
        read_by="fetcher",
        unit="seconds",
        ge=0,
        le=3600,
        allow_inf_nan=False,
    )
    extraction_timeout: Seconds = setting(
        10.0,
        "Converting one page to text, in a worker process.",
        env="WEBRAG_EXTRACTION_TIMEOUT",
        read_by="extraction",
        unit="seconds",
    )
    firecrawl_api_key: Secret | None = setting(
        None,
        "Fetches through Firecrawl; the built-in fetcher serves while Firecrawl cannot.",
        read_by="Firecrawl client",
        allowed=KEY_TEXT,
        shared=True,
    )
    firecrawl_api_url: HttpUrl = setting(
        FIRECRAWL_CLOUD_URL,
        "Firecrawl server; another one than the default is used also without a key.",
        read_by="Firecrawl client",
        allowed=HTTP_URL_TEXT,
        shared=True,
    )
    firecrawl_timeout: Seconds = setting(
        30.0,
        "Whole fetch of one page through Firecrawl, retries included.",
        env="WEBRAG_FIRECRAWL_TIMEOUT",
        read_by="Firecrawl client",
        unit="seconds",
    )
    proxy: ProxyUrl | None = setting(
        None,
        "Proxy for every service that gets a key (Firecrawl, embeddings, language models, "
        "rerankers, tracing), but not for servers on this machine; `environment` takes what "
        "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say. Pages are always fetched directly.",
        env="WEBRAG_PROXY",
        read_by="clients of services",
        allowed="`environment`, or a URL that starts with http:// or https://",
        default_text="not set: direct connections, whatever the environment says",
    )


class EmbeddingSettings(BaseModel):
    """Embedding and token counting."""

    embedding_provider: Literal[
        "auto", "bundled", "openai", "openai_compatible", "huggingface", "fastembed"
    ] = setting(
        "auto",
        "Where vectors come from; `auto` is OpenAI with a key, else the bundled model, and keeps "
        "to what an existing corpus was made with; `huggingface` and `fastembed` need the extra of "
        "that name.",
        read_by="embedder",
    )
    embedding_model: str | None = setting(
        None,
        "Model name at the provider; for `huggingface` and `fastembed` also a folder.",
        read_by="embedder",
        allowed="a model name",
        default_text="the provider's: `text-embedding-3-small` for OpenAI and servers, "
        "`BAAI/bge-small-en-v1.5` for models of this process",
        min_length=1,
        max_length=1000,
    )
    embedding_dimensions: int | None = setting(
        None,
        "Vector size to ask for.",
        read_by="embedder",
        unit="dimensions",
        default_text="the model's own",
        ge=1,
        le=4000,
    )
    embedding_base_url: HttpUrl | None = setting(
        None,
        "OpenAI-compatible server, such as Ollama, vLLM or TEI, for `openai_compatible`.",
        read_by="embedder",
        allowed=HTTP_URL_TEXT,
    )
    embedding_api_key: Secret | None = setting(
        None,
        "Key for the embedding server.",
        read_by="embedder",
        allowed=KEY_TEXT,
        default_text="`OPENAI_API_KEY`",
    )
    openai_api_key: Secret | None = setting(
        None,
        "Key for OpenAI, used wherever no narrower key is set.",
        read_by="embedder",
        allowed=KEY_TEXT,
        shared=True,
    )
    embedding_tokenizer_kind: Literal["tiktoken", "huggingface"] = setting(
        "tiktoken",
        "Library that counts tokens for chunks, budgets and requests.",
        read_by="node parser, embedder, brief",
    )
    embedding_tokenizer_name: str = setting(
        "cl100k_base",
        "For tiktoken `cl100k_base` or `o200k_base`, which need no download; for Hugging Face a "
        "tokenizer.json, its folder, or a name at the hub.",
        read_by="node parser, embedder, brief",
        allowed="a tokenizer name",
        min_length=1,
        max_length=1000,
    )
