"""Variables that were settings once, each with what a user who has set it does now."""

from collections.abc import Iterator
from typing import Final

_ARGUMENTS: Final = """
DECOMPOSITION_MODE                  decomposition_mode
EMBEDDING_TOKENIZER_KIND            embedding_tokenizer_kind
EMBEDDING_TOKENIZER_NAME            embedding_tokenizer_name
LANGSMITH_ENDPOINT                  langsmith_endpoint
LANGSMITH_PROJECT                   langsmith_project
MCP_BYTES_PER_DAY                   mcp_bytes_per_day
MCP_CALLS_PER_DAY                   mcp_calls_per_day
MCP_MAX_OPEN_COLLECTIONS            mcp_max_open_collections
MCP_OAUTH_JWKS_URL                  mcp_oauth_jwks_url
RERANKER_TIMEOUT                    reranker_timeout
WEBRAG_BROWSER_PATH                 browser_path
WEBRAG_DATABASE_ACQUIRE_TIMEOUT     database_acquire_timeout
WEBRAG_DATABASE_POOL_SIZE           database_pool_size
WEBRAG_DATABASE_STATEMENT_TIMEOUT   database_statement_timeout
WEBRAG_EXTRACTION_TIMEOUT           fetching.extraction_timeout_s
WEBRAG_FETCH_HOST_CONCURRENCY       fetching.host_concurrency
WEBRAG_FETCH_HOST_DELAY             fetching.host_delay_s
WEBRAG_FETCH_MAX_BYTES              fetching.max_wire_bytes
WEBRAG_FETCH_MAX_DECODED_BYTES      fetching.max_decoded_bytes
WEBRAG_FETCH_MAX_REDIRECTS          fetching.max_redirects
WEBRAG_FETCH_PREFER_MARKDOWN        fetching.prefer_markdown
WEBRAG_FETCH_TIMEOUT                fetching.timeout_s
DIMINISHING_RETURN_DELTA            orchestration.diminishing_return_delta
LOCALITY_EXPANSION_ENABLED          orchestration.locality_enabled
LOCALITY_EXPANSION_RADIUS           orchestration.locality_radius
PLATEAU_TOP_N                       orchestration.plateau_top_n
RERANKER_TOP_N                      orchestration.reranker_top_n
SCORE_CLIFF_RANK_K                  orchestration.score_cliff_rank_k
CANDIDATES_TO_SCORE_PER_ITERATION   orchestration.expansion.candidates_to_score_per_iteration
EXPANSION_MAP_LIMIT                 orchestration.expansion.map_limit
SITE_MAP_ENABLED                    orchestration.expansion.site_map.enabled
SITE_MAP_MAX_BYTES                  orchestration.expansion.site_map.max_bytes
SITE_MAP_RECRAWL_AFTER              orchestration.expansion.site_map.fresh_s
SITE_MAP_TIMEOUT                    orchestration.expansion.site_map.timeout_s
ANSWERED_SCORE                      score_thresholds.answered_score
CONFIDENCE_FLOOR                    score_thresholds.confidence_floor
MEDIOCRE_SCORE_FLOOR                score_thresholds.mediocre_score_floor
NEAR_TOP_DELTA                      score_thresholds.near_top_delta
PLATEAU_VARIANCE_THRESHOLD          score_thresholds.plateau_variance_threshold
SCORE_CLIFF_THRESHOLD               score_thresholds.score_cliff_threshold
"""


def _argument(path: str) -> str:
    first, *inner = path.split(".")
    value = "..."
    for name in reversed(inner):
        value = f"{{{name!r}: {value}}}"
    return f"in Python load_settings({first}={value}) sets it"


def _removed() -> Iterator[tuple[str, str]]:
    for line in _ARGUMENTS.strip().splitlines():
        variable, path = line.split()
        yield variable, _argument(path)
    yield "EXPANSION_SIGNAL_WEIGHTS", "the weights of links are fitted by benchmarks/fit_links.py"
    yield "WEBRAG_FIRECRAWL_TIMEOUT", "a FirecrawlSource of your own is passed as page_source"
    yield "WEBRAG_LOG_LEVEL", "--quiet prints errors only"


REMOVED: Final[dict[str, str]] = dict(_removed())
