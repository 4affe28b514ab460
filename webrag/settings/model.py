"""The whole configuration, and the configurations of the layers below made from it."""

import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from webrag.answering.config import AnswerConfig
from webrag.errors import ConfigurationError
from webrag.ingestion.firecrawl.models import FIRECRAWL_CLOUD_URL, FirecrawlConfig
from webrag.ingestion.models import FetchConfig
from webrag.orchestration.config import (
    LINK_SIGNALS,
    ExpansionConfig,
    OrchestrationConfig,
    SiteMapConfig,
)
from webrag.orchestration.models import ScoreProfile
from webrag.postgres.config import DatabaseConfig
from webrag.presentation.brief.models import BriefConfig
from webrag.redaction import remember_secrets
from webrag.retrieval.models import RetrievalConfig
from webrag.settings.combinations import COMBINATIONS, settings_of
from webrag.settings.explain import explain
from webrag.settings.fields import HOSTS_TEXT, MASK, checked_hosts, hidden_parts, mask_url
from webrag.settings.values import Values
from webrag.settings.variables import ORIGINS, Variables, VariablesSource

if TYPE_CHECKING:
    from webrag.ingestion.logins.session import Login

# pydantic-settings asks a class method for its sources; this tells it which file to read.
_VARIABLES: ContextVar[Variables] = ContextVar("webrag_variables")
# Shown with what is secret in them masked.
_SECRET_URLS = frozenset({"database_url", "proxy"})
_NO_WORD = re.compile(r"[0-9]")
_PROFILE_FIELDS = (
    "score_cliff_threshold",
    "plateau_variance_threshold",
    "mediocre_score_floor",
    "confidence_floor",
    "near_top_delta",
    "answered_score",
)


class Settings(Values):
    """Every setting, validated; cannot be changed after it is made.

    Values passed by field name win over variables of the environment, those over the settings
    file, and that over the defaults. Secrets are masked when printed.

    Raises:
        ConfigurationError: A value is wrong; the message names it and what is allowed.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=False,
        defer_build=False,
    )

    origins: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)

    def __init__(self, _env_file: Path | str | None = None, **values: Any) -> None:
        variables = Variables(_env_file)
        token = _VARIABLES.set(variables)
        try:
            super().__init__(**values)
        except ValidationError as error:
            message = explain(error, type(self).model_fields, values, variables)
            # The original error is dropped because it can hold the value of a secret.
            raise ConfigurationError(
                message, hint="docs/configuration.md lists every setting."
            ) from None
        finally:
            _VARIABLES.reset(token)
        self.origins.update(dict.fromkeys(values, "argument"))
        remember_secrets(*self._secrets())

    @override
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, VariablesSource(settings_cls, _VARIABLES.get())

    @model_validator(mode="before")
    @classmethod
    def _take_models(cls, given: dict[str, Any]) -> dict[str, Any]:
        name = given.get("models")
        if name not in COMBINATIONS:
            return given  # not set, or wrong and refused with the field
        meant = settings_of(name, frozenset(given))
        origins = dict.fromkeys(meant, f"WEBRAG_MODELS={name}")
        return {**given, **meant, ORIGINS: {**given.get(ORIGINS, {}), **origins}}

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.expansion_scope == "allow_list" and not self.expansion_allowed_domains:
            raise ValueError(
                "EXPANSION_SCOPE is 'allow_list' but EXPANSION_ALLOWED_DOMAINS names no host"
            )
        return self

    @property
    def mcp_bind_host(self) -> str:
        """Address that Streamable HTTP listens on: public only with a token, unless set."""
        return self.mcp_host or ("0.0.0.0" if self.mcp_needs_token else "127.0.0.1")  # noqa: S104

    @property
    def mcp_resource_url(self) -> str:
        """Address of the MCP server as clients see it, and the audience of their tokens."""
        return f"{self.mcp_public_url or f'http://localhost:{self.mcp_port}'}/mcp"

    @property
    def mcp_needs_token(self) -> bool:
        """Whether requests over HTTP must carry a token."""
        tokens = (self.mcp_auth_token, self.mcp_tokens_file, self.mcp_oauth_issuer)
        return any(each is not None for each in tokens)

    @property
    def header_logins(self) -> "tuple[Login, ...]":
        """Logins of `WEBRAG_LOGIN_HEADERS`."""
        if self.login_headers is None:
            return ()
        from webrag.ingestion.logins.session import read_headers

        return read_headers(self.login_headers.get_secret_value())

    def _secrets(self) -> Iterator[str]:
        for login in self.header_logins:
            yield from login.secrets
        for field in type(self).model_fields:
            value = getattr(self, field)
            if field == "login_headers":
                continue  # its hosts are no secrets
            if isinstance(value, SecretStr) and field not in _SECRET_URLS:
                yield value.get_secret_value()
            elif isinstance(value, SecretStr | str):
                text = value.get_secret_value() if isinstance(value, SecretStr) else value
                # Passwords of databases are often words such as "postgres".
                yield from (part for part in hidden_parts(text) if _NO_WORD.search(part))

    def origin(self, field: str) -> str:
        """Where a value came from: `default`, a variable and its place, or `argument`."""
        return self.origins.get(field, "default")

    def shown(self, field: str) -> Any:
        """A value as it may be printed: secrets masked, passwords in URLs too."""
        value = getattr(self, field)
        if isinstance(value, SecretStr):
            return mask_url(value.get_secret_value()) if field in _SECRET_URLS else MASK
        return mask_url(value) if isinstance(value, str) and "://" in value else value

    @property
    def service_proxy(self) -> str | None:
        """`WEBRAG_PROXY` as clients of services take it; None for direct connections."""
        return self.proxy.get_secret_value() if self.proxy else None

    def allowing(self, hosts: Sequence[str]) -> Self:
        """These settings with more hosts allowed although their address may be private.

        Raises:
            ConfigurationError: An entry is not `host` or `host:port`.
        """
        if not hosts:
            return self
        try:
            allowed = checked_hosts((*self.allow_hosts, *hosts))
        except ValueError as error:
            raise ConfigurationError(f"{error}; allowed are {HOSTS_TEXT}.") from None
        origins = self.origins | {"allow_hosts": "argument"}
        return self.model_copy(update={"allow_hosts": allowed, "origins": origins})

    def database_config(self) -> DatabaseConfig:
        """What the database layer needs."""
        url = self.database_url.get_secret_value() if self.database_url else None
        return DatabaseConfig(
            url=url,
            data_dir=self.data_dir,
            collection=self.collection,
            pool_max_size=self.database_pool_size,
            acquire_timeout_s=self.database_acquire_timeout,
            statement_timeout_s=self.database_statement_timeout,
        )

    def fetch_config(self) -> FetchConfig:
        """What the built-in fetcher and the extraction need."""
        return FetchConfig(
            user_agent=self.user_agent,
            allowed_hosts=self.allow_hosts,
            timeout_s=self.fetch_timeout,
            max_wire_bytes=self.fetch_max_bytes,
            max_decoded_bytes=self.fetch_max_decoded_bytes,
            max_redirects=self.fetch_max_redirects,
            prefer_markdown=self.fetch_prefer_markdown,
            host_concurrency=self.fetch_host_concurrency,
            host_delay_s=self.fetch_host_delay,
            extraction_timeout_s=self.extraction_timeout,
        )

    def firecrawl_config(self) -> FirecrawlConfig | None:
        """What the Firecrawl client needs; None when pages are not fetched through Firecrawl."""
        if self.firecrawl_api_key is None and self.firecrawl_api_url == FIRECRAWL_CLOUD_URL:
            return None
        return FirecrawlConfig(
            api_url=self.firecrawl_api_url,
            api_key=self.firecrawl_api_key,
            proxy=self.proxy,
            allowed_hosts=self.allow_hosts,
            timeout_s=self.firecrawl_timeout,
            max_age_s=self.recrawl_after,
            max_chars=self.fetch_max_decoded_bytes,
        )

    def retrieval_config(self) -> RetrievalConfig:
        """What retrieval needs."""
        return RetrievalConfig(
            full_context_threshold=self.retrieval_full_context_threshold,
            context_budget=self.retrieval_context_budget,
            children_limit=self.retrieval_top_k_children_limit,
            similarity_floor=self.retrieval_similarity_floor,
            depth_decay_rate=self.retrieval_depth_decay_rate,
            depth_floor=self.retrieval_depth_floor,
            hnsw_ef_search=self.retrieval_hnsw_ef_search,
            fusion_method=self.fusion_method,
        )

    def expansion_config(self) -> ExpansionConfig:
        """What link following needs."""
        return ExpansionConfig(
            max_depth=self.max_expansion_depth,
            max_candidates_per_iteration=self.max_candidates_per_iteration,
            candidates_to_score_per_iteration=self.candidates_to_score_per_iteration,
            map_limit=self.expansion_map_limit,
            min_candidate_score=self.expansion_min_candidate_score,
            scope=self.expansion_scope,
            allowed_domains=self.expansion_allowed_domains,
            max_pages_per_run=self.max_pages_per_run,
            max_bytes_per_run=self.max_bytes_per_run,
            iteration_timeout_s=self.expansion_iteration_timeout,
            signal_weights={**LINK_SIGNALS, **self.expansion_signal_weights},
            site_map=SiteMapConfig(
                enabled=self.site_map_enabled,
                max_bytes=self.site_map_max_bytes,
                timeout_s=self.site_map_timeout,
                fresh_s=self.site_map_recrawl_after,
            ),
        )

    def thresholds(self, profile: ScoreProfile) -> ScoreProfile:
        """What scores are judged by.

        Args:
            profile: Of the scorer that was chosen; thresholds set by the user replace its own.
        """
        chosen = {name: getattr(self, name) for name in _PROFILE_FIELDS}
        return profile.model_copy(
            update={name: value for name, value in chosen.items() if value is not None}
        )

    def orchestration_config(self, *, soft_deadline_s: float | None = None) -> OrchestrationConfig:
        """What the loop needs.

        Args:
            soft_deadline_s: After it a partial result is assembled; None to work to the end.
        """
        return OrchestrationConfig(
            children_limit=self.retrieval_top_k_children_limit,
            similarity_floor=self.retrieval_similarity_floor,
            reranker_top_n=self.reranker_top_n,
            context_budget=self.retrieval_context_budget,
            token_budget_saturation_ratio=self.token_budget_saturation_ratio,
            redundancy_ceiling=self.redundancy_ceiling,
            score_cliff_rank_k=self.score_cliff_rank_k,
            plateau_top_n=self.plateau_top_n,
            diminishing_return_delta=self.diminishing_return_delta,
            locality_enabled=self.locality_expansion_enabled,
            locality_radius=self.locality_expansion_radius,
            timeout_s=self.orchestration_timeout,
            soft_deadline_s=soft_deadline_s,
            expansion=self.expansion_config(),
        )

    def answer_config(self) -> AnswerConfig:
        """What the answer manager needs."""
        return AnswerConfig(
            rerank_recency_boost=self.agent_rerank_recency_boost,
            recent_year_window=self.agent_recent_year_window,
            reflection_temperature=self.agent_reflection_temperature,
        )

    def brief_config(self, *, caller: Literal["mcp", "cli"] = "mcp") -> BriefConfig:
        """How a brief is laid out.

        Args:
            caller: Whose vocabulary its suggestions use.
        """
        return BriefConfig(
            token_budget=self.mcp_response_token_budget,
            full_context_threshold=min(
                self.retrieval_full_context_threshold, self.retrieval_context_budget
            ),
            caller=caller,
        )


def load_settings(env_file: Path | str | None = None, **overrides: Any) -> Settings:
    """Read the environment and the settings file.

    Args:
        env_file: Settings file; None for `WEBRAG_ENV_FILE`, else `.env` in the user's
            configuration folder when it exists. The current directory is never searched.
        overrides: Values by field name, which win over everything.

    Raises:
        ConfigurationError: A value is wrong or the file cannot be read.
    """
    return Settings(_env_file=env_file, **overrides)
