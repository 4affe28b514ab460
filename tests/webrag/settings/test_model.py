# ruff: noqa: E501 - the table below has one line per setting
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from webrag.errors import ConfigurationError
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.models import (
    ExpansionConfig,
    OrchestrationConfig,
    ScoreProfile,
)
from webrag.postgres.config import DatabaseConfig
from webrag.presentation.brief.models import BriefConfig
from webrag.redaction import redacted
from webrag.retrieval.models import RetrievalConfig
from webrag.settings import Settings, load_settings
from webrag.settings.model import changed_settings
from webrag.settings.variables import variable_names

SECRET = "sk-very-secret"

# variable, field, a value that fits, what it becomes, a value that does not, the range
TABLE: list[tuple[str, str, str, Any, Any, str]] = [
    ("WEBRAG_DATA_DIR", "data_dir", "/srv/corpus", Path("/srv/corpus"), ..., "a path"),
    ("WEBRAG_COLLECTION", "collection", "my_docs2", "my_docs2", 'a"; DROP', "1 to 48 lower-case letters"),
    ("WEBRAG_ALLOW_HOSTS", "allow_hosts", "LocalHost:8000, [::1]:80,10.0.0.1,", ("localhost:8000", "[::1]:80", "10.0.0.1"), "http://localhost", "comma-separated `host`"),
    ("WEBRAG_ALLOW_DIRS", "allow_dirs", "/srv/docs, /srv/notes", ("/srv/docs", "/srv/notes"), "docs", "comma-separated absolute paths"),
    ("WEBRAG_ALLOW_LOGINS", "allow_logins", "wiki.example, docs.example:8443", ("wiki.example", "docs.example:8443"), "https://wiki.example", "comma-separated `host`"),
    ("WEBRAG_RECRAWL_AFTER", "recrawl_after", "never", None, "-1", "a number of seconds from 0"),
    ("WEBRAG_KEEP_VERSIONS", "keep_versions", "3", 3, "1001", "from 0 to 1000"),
    ("WEBRAG_USER_AGENT", "user_agent", "Me/1 (me@example.com)", "Me/1 (me@example.com)", "a\tb", "printable ASCII"),
    ("WEBRAG_BROWSER", "browser", "never", "never", "sometimes", "auto, always, never"),
    ("WEBRAG_MODELS", "models", "small", "small", "smal", "one of bundled, small, medium"),
    ("EMBEDDING_PROVIDER", "embedding_provider", "bundled", "bundled", "magic", "one of auto, bundled, openai, openai_compatible"),
    ("EMBEDDING_MODEL", "embedding_model", "text-embedding-3-large", "text-embedding-3-large", "m" * 1001, "a model name"),
    ("EMBEDDING_DIMENSIONS", "embedding_dimensions", "4000", 4000, "4001", "from 1 to 4000"),
    ("EMBEDDING_BASE_URL", "embedding_base_url", "http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1", "localhost:11434", "an http:// or https:// URL"),
    ("RETRIEVAL_FULL_CONTEXT_THRESHOLD", "retrieval_full_context_threshold", "0", 0, "-1", "from 0 to"),
    ("RETRIEVAL_CONTEXT_BUDGET", "retrieval_context_budget", "1", 1, "0", "from 1 to"),
    ("RETRIEVAL_TOP_K_CHILDREN_LIMIT", "retrieval_top_k_children_limit", "60", 60, "1001", "from 1 to 1000"),
    ("RETRIEVAL_SIMILARITY_FLOOR", "retrieval_similarity_floor", "1", 1.0, "1.1", "a number from 0 to 1"),
    ("RETRIEVAL_DEPTH_DECAY_RATE", "retrieval_depth_decay_rate", "0", 0.0, "-0.01", "a number from 0 to 1"),
    ("RETRIEVAL_DEPTH_FLOOR", "retrieval_depth_floor", "0.5", 0.5, "2", "a number from 0 to 1"),
    ("RETRIEVAL_HNSW_EF_SEARCH", "retrieval_hnsw_ef_search", "1000", 1000, "1001", "from 1 to 1000"),
    ("RERANKER_PROVIDER", "reranker_provider", "none", "none", "openai", "one of auto, zeroentropy, cohere, jina, local, cross_encoder, none"),
    ("RERANKER_MODEL", "reranker_model", "zerank-1", "zerank-1", "z" * 1001, "a model name"),
    ("ORCHESTRATION_LLM_BASE_URL", "orchestration_llm_base_url", "http://localhost:8000/v1", "http://localhost:8000/v1", "http://me:pw@h/", "an http:// or https:// URL"),
    ("ORCHESTRATION_LLM_MODEL", "orchestration_llm_model", "qwen3", "qwen3", "q" * 201, "a model name"),
    ("ORCHESTRATION_TIMEOUT", "orchestration_timeout", "60", 60.0, "0", "from 0.1 to 3600 seconds"),
    ("MAX_EXPANSION_DEPTH", "max_expansion_depth", "0", 0, "21", "from 0 to 20"),
    ("MAX_CANDIDATES_PER_ITERATION", "max_candidates_per_iteration", "3", 3, "0", "from 1 to 25"),
    ("MAX_PAGES_PER_RUN", "max_pages_per_run", "100", 100, "101", "from 0 to 100"),
    ("EXPANSION_SCOPE", "expansion_scope", "any", "any", "world", "one of same_site, allow_list, any"),
    ("EXPANSION_ALLOWED_DOMAINS", "expansion_allowed_domains", "a.example,b.example", ("a.example", "b.example"), "a.example/x", "comma-separated"),
    ("MAX_BYTES_PER_RUN", "max_bytes_per_run", "1", 1, "0", "from 1 to"),
    ("EXPANSION_ITERATION_TIMEOUT", "expansion_iteration_timeout", "10", 10.0, "3601", "from 0.1 to 3600 seconds"),
    ("TOKEN_BUDGET_SATURATION_RATIO", "token_budget_saturation_ratio", "1", 1.0, "0", "above 0 and at most 1"),
    ("REDUNDANCY_CEILING", "redundancy_ceiling", "0.9", 0.9, "1.5", "a number from 0 to 1"),
    ("WEBRAG_MCP_TRANSPORT", "mcp_transport", "streamable-http", "streamable-http", "sse", "one of stdio, streamable-http"),
    ("WEBRAG_MCP_HOST", "mcp_host", "0.0.0.0", "0.0.0.0", "a b", "a host name or address"),
    ("WEBRAG_MCP_PORT", "mcp_port", "65535", 65535, "65536", "from 1 to 65535"),
    ("MCP_STATELESS", "mcp_stateless", "1", True, "2", "true or false"),
    ("MCP_PUBLIC_URL", "mcp_public_url", "https://rag.example.com/", "https://rag.example.com", "rag.example.com", "an http:// or https:// URL"),
    ("MCP_ALLOWED_HOSTS", "mcp_allowed_hosts", "rag.example.com", ("rag.example.com",), "https://rag.example.com", "comma-separated `host`"),
    ("MCP_ALLOWED_ORIGINS", "mcp_allowed_origins", "https://a.example, https://b.example/", ("https://a.example", "https://b.example"), "a.example", "comma-separated origins"),
    ("MCP_RESPONSE_TOKEN_BUDGET", "mcp_response_token_budget", "1000", 1000, "999", "from 1000 to"),
    ("WEBRAG_MCP_TOOL_TIMEOUT", "mcp_tool_timeout", "90", 90.0, "60000", "from 0.1 to 3600 seconds"),
    ("MCP_SOFT_DEADLINE", "mcp_soft_deadline", "20", 20.0, "0", "from 0.1 to 3600 seconds"),
    ("WEBRAG_MCP_LOG_LEVEL", "mcp_log_level", "error", "ERROR", "verbose", "one of DEBUG, INFO"),
    ("MCP_STRUCTURED_OUTPUT", "mcp_structured_output", "1", True, "2", "true or false"),
    ("MCP_ENABLE_FORGET", "mcp_enable_forget", "true", True, "please", "true or false"),
    ("MCP_TOKENS_FILE", "mcp_tokens_file", "/srv/tokens", Path("/srv/tokens"), ..., "a path"),
    ("MCP_OAUTH_ISSUER", "mcp_oauth_issuer", "https://a.example/", "https://a.example/", "http://a.example", "an https:// URL"),
    ("MCP_OAUTH_AUDIENCE", "mcp_oauth_audience", "a, https://b.example/mcp", ("a", "https://b.example/mcp"), ..., ""),
    ("WEBRAG_COLLECTION_CLAIM", "collection_claim", "https://a.example/team", "https://a.example/team", "a b", "the name of a claim"),
    ("MCP_CALLS_PER_MINUTE", "mcp_calls_per_minute", "1", 1, "0", "a whole number from 1"),
    ("MCP_CALLS_PER_DAY", "mcp_calls_per_day", "9", 9, "-1", "a whole number from 1"),
    ("MCP_BYTES_PER_DAY", "mcp_bytes_per_day", "1000", 1000, "1k", "a whole number from 1"),
    ("MCP_OAUTH_JWKS_URL", "mcp_oauth_jwks_url", "https://a.example/keys", "https://a.example/keys", "http://a.example", "an https:// URL"),
    ("MCP_PAGES_PER_DAY", "mcp_pages_per_day", "1", 1, "many", "a whole number from 1"),
    ("AGENT_RERANK_RECENCY_BOOST", "agent_rerank_recency_boost", "0", 0.0, "2", "a number from 0 to 1"),
    ("AGENT_REFLECTION_TEMPERATURE", "agent_reflection_temperature", "0.7", 0.7, "2.1", "from 0 to 2"),
    ("WEBRAG_TRACING", "tracing", "both", "both", "on", "one of off, langsmith, opentelemetry, both"),
    ("WEBRAG_OTEL_EXPORTER_OTLP_ENDPOINT", "otel_exporter_otlp_endpoint", "http://localhost:4318", "http://localhost:4318", "localhost:4318", "an http:// or https:// URL"),
    ("WEBRAG_FIRECRAWL_API_URL", "firecrawl_api_url", "http://127.0.0.1:3002", "http://127.0.0.1:3002", "127.0.0.1:3002", "an http:// or https:// URL"),
]  # fmt: skip
SECRETS = [
    ("WEBRAG_FIRECRAWL_API_KEY", "firecrawl_api_key"),
    ("EMBEDDING_API_KEY", "embedding_api_key"),
    ("WEBRAG_OPENAI_API_KEY", "openai_api_key"),
    ("RERANKER_API_KEY", "reranker_api_key"),
    ("WEBRAG_ZEROENTROPY_API_KEY", "zeroentropy_api_key"),
    ("WEBRAG_COHERE_API_KEY", "cohere_api_key"),
    ("WEBRAG_JINA_API_KEY", "jina_api_key"),
    ("ORCHESTRATION_LLM_API_KEY", "orchestration_llm_api_key"),
    ("MCP_AUTH_TOKEN", "mcp_auth_token"),
    ("WEBRAG_LANGSMITH_API_KEY", "langsmith_api_key"),
]
IDS = [row[0] for row in TABLE]


@pytest.fixture(scope="module")
def defaults() -> Settings:
    return Settings()


def test_table_of_this_test_names_every_setting() -> None:
    tested = {row[1] for row in TABLE} | {field for _, field in SECRETS}
    tested |= {"database_url", "proxy", "login_headers"}

    assert tested == {
        name for name, info in Settings.model_fields.items() if variable_names(name, info)
    }


def test_login_headers_are_logins_whose_values_are_shown_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = '{"wiki.example": {"Authorization": "Bearer t0ken-9876543210"}}'
    monkeypatch.setenv("WEBRAG_LOGIN_HEADERS", text)

    settings = load_settings()

    (login,) = settings.header_logins
    assert (login.host, login.headers) == (
        "wiki.example",
        (("Authorization", "Bearer t0ken-9876543210"),),
    )
    assert "t0ken" not in f"{settings!r} {settings.shown('login_headers')}"
    assert redacted("it said t0ken-9876543210") == "it said ***"


@pytest.mark.parametrize("text", ["t0ken-98765", '{"wiki.example": "t0ken-98765"}'])
def test_wrong_login_headers_are_refused_without_their_value(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_LOGIN_HEADERS", text)

    with pytest.raises(ConfigurationError, match="a JSON object of hosts") as caught:
        load_settings()

    assert "t0ken" not in str(caught.value)


def test_no_key_is_set_by_default(defaults: Settings) -> None:
    assert {getattr(defaults, field) for _, field in SECRETS} == {None}


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_setting_takes_a_fitting_value_from_its_variable(
    row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(row[0], row[2])

    assert getattr(load_settings(), row[1]) == row[3]


@pytest.mark.parametrize("row", [row for row in TABLE if row[4] is not ...], ids=lambda r: r[0])
def test_wrong_value_is_refused_with_variable_value_and_range(
    row: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable, wrong, allowed = row[0], row[4], row[5]
    monkeypatch.setenv(variable, wrong)

    with pytest.raises(ConfigurationError) as caught:
        load_settings()

    message = str(caught.value)
    shown = wrong.replace(":pw@", ":********@")
    assert message.startswith(f"{variable} is ")
    assert repr(shown)[:70] in message
    assert allowed in message
    assert message.count("\n") == 0


@pytest.mark.parametrize(("variable", "field"), SECRETS)
def test_key_is_read_and_masked(variable: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, f" {SECRET} ")

    settings = load_settings()

    assert getattr(settings, field).get_secret_value() == SECRET
    assert settings.shown(field) == "********"
    assert SECRET not in repr(settings) + str(settings) + settings.model_dump_json()


@pytest.mark.parametrize(("variable", "field"), SECRETS)
def test_unusable_key_is_refused_without_showing_it(
    variable: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"{SECRET} with spaces")

    with pytest.raises(ConfigurationError) as caught:
        load_settings()

    assert variable in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_database_url_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"postgresql://me:{SECRET}@db.example:5432/rag")

    settings = load_settings()

    assert settings.database_config().url == f"postgresql://me:{SECRET}@db.example:5432/rag"
    assert settings.shown("database_url") == "postgresql://me:********@db.example:5432/rag"
    assert SECRET not in repr(settings)


def test_wrong_database_url_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEBRAG_DATABASE_URL", f"mysql://me:{SECRET}@db/rag")

    with pytest.raises(ConfigurationError, match=r"^WEBRAG_DATABASE_URL must be") as caught:
        load_settings()

    assert SECRET not in str(caught.value)


def test_every_wrong_value_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_PAGES_PER_RUN", "many")
    monkeypatch.setenv("WEBRAG_BROWSER", "magic")

    with pytest.raises(ConfigurationError) as caught:
        load_settings()

    assert str(caught.value).count(";") == 1
    assert {"MAX_PAGES_PER_RUN", "WEBRAG_BROWSER"} <= set(str(caught.value).split())


def test_allow_list_scope_without_hosts_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="EXPANSION_ALLOWED_DOMAINS names no host"):
        load_settings(expansion_scope="allow_list")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fetching": {"timeout_s": -1}}, "fetching.timeout_s: Input should be greater than 0"),
        ({"fetching": {"tiemout_s": 1}}, "fetching.tiemout_s: Extra inputs are not permitted"),
        ({"fetching": 3}, "fetching is '3' but must be a FetchConfig, or a dictionary"),
        ({"score_thresholds": {"fame": 1}}, "score_thresholds.* must be names of thresholds"),
    ],
)
def test_wrong_field_of_a_part_is_refused_by_its_name(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        load_settings(**arguments)


@pytest.mark.parametrize(
    ("arguments", "setting"),
    [
        ({"fetching": {"user_agent": "Me/1"}}, "user_agent"),
        ({"retrieval": RetrievalConfig(context_budget=9)}, "retrieval_context_budget"),
        ({"orchestration": {"expansion": {"max_depth": 1}}}, "max_expansion_depth"),
    ],
)
def test_field_that_a_setting_fills_has_one_name(arguments: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigurationError, match=f"which is the setting {setting}"):
        load_settings(**arguments)


@pytest.mark.parametrize("variable", ["RERANKER_TIMEOUT", "WEBRAG_RERANKER_TIMEOUT"])
def test_variable_of_what_is_set_in_python_only_is_told_so(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, "1")

    assert load_settings() == Settings()
    assert [record.getMessage() for record in caplog.records][:1] == [
        f"{variable} is ignored: in Python load_settings(reranker_timeout=...) sets it."
    ]


def test_unknown_argument_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="colection is not a setting"):
        load_settings(colection="x")


def test_settings_cannot_be_changed(defaults: Settings) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        defaults.collection = "other"  # type: ignore[misc]


def test_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBRAG_COLLECTION", "from_environment")

    settings = load_settings(collection="from_argument")

    assert (settings.collection, settings.origin("collection")) == ("from_argument", "argument")


def test_origin_names_the_variable_that_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_PORT", "1000")

    settings = load_settings()

    assert settings.origin("mcp_port") == "MCP_PORT in the environment"
    assert settings.origin("mcp_host") == "default"


def test_data_folder_follows_the_user_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert load_settings().data_dir == tmp_path / "webrag"


def test_relative_user_folder_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")

    assert load_settings().data_dir.is_absolute()


def test_data_folder_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    assert load_settings(data_dir="corpus").data_dir == tmp_path / "corpus"


@pytest.mark.parametrize(
    ("token", "host", "bound"),
    [
        pytest.param(None, None, "127.0.0.1", id="no-token-stays-local"),
        pytest.param("t", None, "0.0.0.0", id="token-allows-public"),
        pytest.param("t", "127.0.0.1", "127.0.0.1", id="explicit-wins-with-token"),
        pytest.param(None, "0.0.0.0", "0.0.0.0", id="explicit-wins-without-token"),
    ],
)
def test_http_server_is_public_only_with_a_token_or_by_wish(
    token: str | None, host: str | None, bound: str
) -> None:
    assert load_settings(mcp_auth_token=token, mcp_host=host).mcp_bind_host == bound


def test_more_hosts_can_be_allowed() -> None:
    settings = load_settings(allow_hosts="a.example").allowing(["B.example:80", "a.example"])

    assert settings.allow_hosts == ("a.example", "b.example:80")
    assert settings.origin("allow_hosts") == "argument"


@pytest.mark.parametrize("host", ["http://a.example", "a.example:", "a.example:080", "*", "[::1]:"])
def test_allowing_something_else_than_a_host_is_refused(defaults: Settings, host: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{re.escape(repr(host))} is not a host"):
        defaults.allowing([host])


def test_an_ipv6_address_can_be_allowed_without_brackets(defaults: Settings) -> None:
    assert defaults.allowing(["FD00:0::1", "[fd00::1]", "[fd00::2]:80"]).allow_hosts == (
        "[fd00::1]",
        "[fd00::2]:80",
    )


def test_default_configurations_are_those_of_the_layers(defaults: Settings) -> None:
    assert defaults.fetch_config() == FetchConfig()
    assert defaults.retrieval_config() == RetrievalConfig()
    assert defaults.expansion_config() == ExpansionConfig()
    assert defaults.orchestration_config() == OrchestrationConfig()
    assert defaults.brief_config() == BriefConfig()
    assert defaults.database_config() == DatabaseConfig(data_dir=defaults.data_dir)


def test_threshold_set_by_the_user_replaces_the_profiles_one() -> None:
    profile = ScoreProfile(name="local", mediocre_score_floor=0.1, near_top_delta=0.2)

    thresholds = load_settings(score_thresholds={"mediocre_score_floor": 0.0}).thresholds(profile)

    assert thresholds == profile.model_copy(update={"mediocre_score_floor": 0.0})


def test_pages_are_offered_whole_only_when_they_fit_the_context_budget() -> None:
    settings = load_settings(retrieval_full_context_threshold=9_000, retrieval_context_budget=7_000)

    assert settings.brief_config().full_context_threshold == 7_000


def test_configurations_carry_the_users_values() -> None:
    settings = load_settings(
        allow_hosts="localhost:8000",
        user_agent="Me/1",
        retrieval={"fusion_method": "rrf"},
        max_pages_per_run=3,
        orchestration=OrchestrationConfig(reranker_top_n=7),
        mcp_response_token_budget=5000,
        database_url=SecretStr("postgresql://db/x"),
        collection="mine",
    )

    assert settings.fetch_config().allowed_hosts == ("localhost:8000",)
    assert settings.fetch_config().user_agent == "Me/1"
    assert settings.retrieval_config().fusion_method == "rrf"
    assert settings.expansion_config().max_pages_per_run == 3
    assert settings.orchestration_config().reranker_top_n == 7
    assert settings.brief_config(caller="cli") == BriefConfig(token_budget=5000, caller="cli")
    assert settings.database_config().url == "postgresql://db/x"
    assert settings.database_config().collection == "mine"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mcp_oauth_issuer": "http://login.example"}, "must be an https:// URL"),
        ({"mcp_oauth_issuer": "https://login.example?x"}, "must be an https:// URL"),
        ({"mcp_oauth_issuer": "https://a@login.example"}, "must be an https:// URL"),
        ({"mcp_oauth_issuer": "login.example"}, "must be an https:// URL"),
        ({"collection_claim": "a b", "mcp_auth_token": "x"}, "the name of a claim"),
        ({"mcp_calls_per_minute": 0}, "a whole number from 1"),
    ],
)
def test_settings_about_callers_that_do_not_fit_are_refused(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_settings(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"mcp_auth_token": "x"},
        {"mcp_tokens_file": "tokens"},
        {"mcp_oauth_issuer": "https://login.example/"},
        {"mcp_oauth_issuer": "http://localhost:9000"},
    ],
)
def test_server_is_public_only_when_requests_must_carry_a_token(values: dict[str, str]) -> None:
    assert load_settings().mcp_bind_host == "127.0.0.1"
    assert load_settings(**values).mcp_bind_host == "0.0.0.0"


def test_issuer_keeps_its_last_slash() -> None:
    assert load_settings(mcp_oauth_issuer="https://a.example/").mcp_oauth_issuer == (
        "https://a.example/"
    )


def test_change_of_the_file_keeps_what_the_program_gave(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("COLLECTION=theirs\n", encoding="utf-8")
    given = load_settings(file, collection="mine", models="small", reranker_provider="none")

    with changed_settings(given, {"recrawl_after": "100", "collection": "others"}) as changed:
        pass

    assert changed.recrawl_after == 100
    kept = ("collection", "models", "reranker_provider", "embedding_provider", "embedding_model")
    for name in kept:
        assert getattr(changed, name) == getattr(given, name)
        assert changed.origin(name) == given.origin(name)


def test_setting_taken_out_of_the_file_is_the_default_again(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("RECRAWL_AFTER=100\n", encoding="utf-8")

    with changed_settings(load_settings(file), {"recrawl_after": None}) as changed:
        pass

    assert (changed.recrawl_after, changed.origin("recrawl_after")) == (86_400, "default")


def test_settings_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "settings"
    kept.write_text("RECRAWL_AFTER=100\n", encoding="utf-8")
    link.symlink_to(kept)

    with changed_settings(load_settings(link), {"recrawl_after": "200"}):
        pass

    assert link.is_symlink()
    assert load_settings(kept).recrawl_after == 200
