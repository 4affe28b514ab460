"""The whole configuration, and the configurations of the layers below made from it."""

import inspect
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from pydantic import Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from typing_extensions import override

from webrag.answering.models import AnswerConfig
from webrag.checked_model import allowed_text
from webrag.errors import ConfigurationError, file_trouble
from webrag.frozen import FrozenModel
from webrag.ingestion.models import FIRECRAWL_CLOUD_URL, FetchConfig, FirecrawlConfig
from webrag.orchestration.models import ExpansionConfig, OrchestrationConfig, ScoreProfile
from webrag.postgres.config import DatabaseConfig
from webrag.presentation.brief.models import BriefConfig, Caller
from webrag.redaction import remember_secrets
from webrag.retrieval.models import RetrievalConfig
from webrag.settings.values import LOCAL_EMBEDDING_MODEL, LOCAL_RERANKER_MODEL, PARTS, Values
from webrag.settings.variables import (
    HOSTS_TEXT,
    MASK,
    Found,
    Variables,
    checked_hosts,
    extra_of,
    filling,
    hidden_parts,
    is_secret,
    mask_url,
    nearest,
    user_folder,
    variable_names,
)

if TYPE_CHECKING:
    from webrag.ingestion.logins.session import Login
    from webrag.settings import given

_MAX_SHOWN = 80


def explain(
    error: ValidationError,
    fields: dict[str, FieldInfo],
    given: dict[str, Any],
    found: dict[str, Found],
) -> str:
    """Name each wrong setting, its value, unless that is a secret, and what is allowed."""
    parts: dict[str, str] = {}
    for item in error.errors(include_url=False, include_input=False, include_context=True):
        field, *inner = map(str, item["loc"] or ("",))
        if inner and "part" in extra_of(fields.get(field, FieldInfo())):
            part = ".".join((field, *inner))
            parts.setdefault(part, f"{part}: {item['msg'].removeprefix('Value error, ')}")
        elif field in fields:
            origin = None if field in given else found.get(field)
            parts.setdefault(field, _wrong(field, fields[field], given.get(field), origin))
        elif field:
            meant = nearest(field, fields)
            hint = f"; did you mean {meant}?" if meant else ""
            parts.setdefault(field, f"{field} is not a setting{hint}")
        else:
            parts.setdefault(field, str(item.get("ctx", {}).get("error", item["msg"])))
    said = "; ".join(parts.values())
    return said if said.endswith("?") else f"{said}."


def _wrong(field: str, info: FieldInfo, value: Any, found: Found | None) -> str:
    name = found.name if found else field
    where = f" (in {found.file})" if found and found.file else ""
    allowed = allowed_text(info)
    if is_secret(info):
        return f"{name}{where} must be {allowed}; its value is not shown"
    shown = repr(mask_url(str(found.value if found else value)))
    if len(shown) > _MAX_SHOWN:
        shown = shown[: _MAX_SHOWN - 4] + "...'"
    return f"{name}{where} is {shown} but must be {allowed}"


# docs/guide/providers.md lists their size, licence and quality.
COMBINATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "bundled": {"embedding_provider": "bundled", "reranker_provider": "local"},
    "small": {
        "embedding_provider": "fastembed",
        "embedding_model": "sentence-transformers/all-MiniLM-L6-v2",
        "reranker_provider": "local",
    },
    "medium": {
        "embedding_provider": "fastembed",
        "embedding_model": LOCAL_EMBEDDING_MODEL,
        "reranker_provider": "cross_encoder",
        "reranker_model": LOCAL_RERANKER_MODEL,
    },
}
"""Settings of an embedding and a reranker by the name that `WEBRAG_MODELS` has for them."""


def settings_of(name: str, given: Collection[str]) -> dict[str, str]:
    """The settings that a combination stands for, without those that were given.

    A provider that was given replaces its whole part of the combination; a model alone is looked
    for at the combination's provider.
    """
    meant = COMBINATIONS[name].items()
    providers = {field: f"{field.partition('_')[0]}_provider" for field, _ in meant}
    return {field: value for field, value in meant if not {field, providers[field]} & set(given)}


# Shown with what is secret in them masked.
_SECRET_URLS = frozenset({"database_url", "proxy"})
_NO_WORD = re.compile(r"[0-9]")
C = TypeVar("C", bound=FrozenModel)


class Settings(Values):
    """Every setting, validated; cannot be changed after it is made.

    Values passed by field name win over variables of the environment, those over the settings
    file, and that over the defaults. Secrets are masked when printed.

    Raises:
        ConfigurationError: A value is wrong; the message names it and what is allowed.
    """

    model_config = SettingsConfigDict(hide_input_in_errors=True, defer_build=False)

    origins: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    _file: Path | None = PrivateAttr(default=None)

    def __init__(self, _env_file: Path | str | None = None, **values: Any) -> None:
        fields = type(self).model_fields
        variables = Variables(_env_file)
        found = variables.find(fields)
        given = {name: each.value for name, each in found.items()} | values
        origins = {name: each.origin for name, each in found.items()}
        origins |= dict.fromkeys(values, "argument")
        chosen = str(given.get("models"))
        if chosen in COMBINATIONS:
            meant = settings_of(chosen, given)
            given |= meant
            origins |= dict.fromkeys(meant, f"WEBRAG_MODELS={chosen}")
        try:
            super().__init__(**{"origins": origins, **given})
        except ValidationError as error:
            # The original error is dropped because it can hold the value of a secret.
            raise ConfigurationError(
                explain(error, fields, values, found),
                hint="docs/configuration.md lists every setting.",
            ) from None
        self._file = variables.file
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
        # `Variables` reads the environment, as it tells where each value comes from.
        return (init_settings,)

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        parts = {name: getattr(self, name) for name in PARTS}
        parts["orchestration.expansion"] = self.orchestration.expansion
        for part, config in parts.items():
            for name, field in filling(type(self), type(config)):
                if field in config.model_fields_set:
                    raise ValueError(f"{part} names {field}, which is the setting {name}")
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
        """True if requests over HTTP must carry a token."""
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

    @property
    def file(self) -> Path:
        """The settings file that was read, or would be if it were there."""
        return self._file or user_folder("config") / ".env"

    def origin(self, field: str) -> str:
        """Tell a value's source: `default`, a variable and its place, or `argument`."""
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
        """Give these settings with more hosts allowed although their address may be private."""
        if not hosts:
            return self
        try:
            allowed = checked_hosts((*self.allow_hosts, *hosts))
        except ValueError as error:
            raise ConfigurationError(f"{error}; allowed are {HOSTS_TEXT}.") from None
        origins = self.origins | {"allow_hosts": "argument"}
        return self.model_copy(update={"allow_hosts": allowed, "origins": origins})

    def database_config(self) -> DatabaseConfig:
        """The configuration of the database."""
        url = self.database_url.get_secret_value() if self.database_url else None
        return self._filled(DatabaseConfig(data_dir=self.data_dir), url=url)

    def fetch_config(self) -> FetchConfig:
        """The configuration of the built-in fetcher and the extraction."""
        return self._filled(self.fetching)

    def firecrawl_config(self) -> FirecrawlConfig | None:
        """That of the Firecrawl client; None when pages are not fetched through Firecrawl."""
        if self.firecrawl_api_key is None and self.firecrawl_api_url == FIRECRAWL_CLOUD_URL:
            return None
        return self._filled(
            FirecrawlConfig(),
            api_url=self.firecrawl_api_url,
            api_key=self.firecrawl_api_key,
            proxy=self.proxy,
            max_age_s=self.recrawl_after,
            max_chars=self.fetching.max_decoded_bytes,
        )

    def retrieval_config(self) -> RetrievalConfig:
        """The configuration of retrieval."""
        return self._filled(self.retrieval)

    def expansion_config(self) -> ExpansionConfig:
        """The configuration of link following."""
        return self._filled(self.orchestration.expansion)

    def thresholds(self, profile: ScoreProfile) -> ScoreProfile:
        """Give a profile with the thresholds that the user set in place of its own."""
        return profile.model_copy(update=self.score_thresholds)

    def orchestration_config(self, *, soft_deadline_s: float | None = None) -> OrchestrationConfig:
        """The loop's configuration; at `soft_deadline_s` a partial result is assembled."""
        if soft_deadline_s is None:
            soft_deadline_s = self.orchestration.soft_deadline_s
        return self._filled(
            self.orchestration, soft_deadline_s=soft_deadline_s, expansion=self.expansion_config()
        )

    def answer_config(self) -> AnswerConfig:
        """The configuration of the answer manager."""
        return self._filled(self.answering)

    def brief_config(self, *, caller: Caller = "mcp") -> BriefConfig:
        """The layout of a brief; its suggestions use the words of `caller`."""
        return BriefConfig(
            token_budget=self.mcp_response_token_budget,
            full_context_threshold=min(
                self.retrieval_full_context_threshold, self.retrieval_context_budget
            ),
            caller=caller,
        )

    def _filled(self, config: C, **more: Any) -> C:
        """The configuration with the values of the settings that fill its fields."""
        values = {field: getattr(self, name) for name, field in filling(type(self), type(config))}
        return config.model_copy(update={**values, **more})


def sections() -> dict[str, list[str]]:
    """The settings that are variables, by the title of their section of the reference."""
    found: dict[str, list[str]] = {}
    title = ""
    for name, info in Settings.model_fields.items():
        if variable_names(name, info):
            title = extra_of(info)["begins"] or title
            found.setdefault(title, []).append(name)
    return found


def load_settings(
    env_file: Path | str | None = None, **overrides: "Unpack[given.Given]"
) -> Settings:
    """Read the environment and the settings file.

    Args:
        env_file: Settings file; None for `WEBRAG_ENV_FILE`, else `.env` in the user's
            configuration folder when it exists. The current directory is never searched.
        overrides: Values by field name, which win over everything.

    Raises:
        ConfigurationError: A value is wrong or the file cannot be read.
    """
    return Settings(_env_file=env_file, **overrides)


# For notebooks; type checkers read the stub.
load_settings.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *list(inspect.signature(load_settings).parameters.values())[:1],
        *list(inspect.signature(Settings).parameters.values())[1:],
    ]
)


# What `WEBRAG_MODELS` stands for.
_MODELS = ("embedding_provider", "embedding_model", "reranker_provider", "reranker_model")


@contextmanager
def changed_settings(settings: Settings, values: Mapping[str, str | None]) -> Iterator[Settings]:
    """Write settings into their file for good, if the block does not fail; gives the new ones.

    By field, values are what a variable holds; None takes one out. What the settings in use were
    given in the program or environment still wins.
    """
    path, fields = settings.file, Settings.model_fields
    before = path.read_bytes() if path.exists() else None
    names = {name: variable_names(name, fields[name])[-1] for name in values}
    write_settings(path, {names[name]: value for name, value in values.items()})
    try:
        fields_read = {*values, *_MODELS}
        fixed = {name for name in (*fields_read, "models") if is_fixed(settings, name)}
        given: Any = {name: getattr(settings, name) for name in fixed}
        read = load_settings(path, **given)
        changed = {name: getattr(read, name) for name in fields_read}
        origins = {name: read.origin(name) for name in fields_read - fixed}
        yield settings.model_copy(update={**changed, "origins": {**settings.origins, **origins}})
    except BaseException:
        path.unlink() if before is None else path.write_bytes(before)
        raise


def is_fixed(settings: Settings, field: str) -> bool:
    """Tell if a setting comes from what wins over the settings file."""
    origin = settings.origin(field)
    return origin == "argument" or origin.endswith("in the environment")


def write_settings(path: Path, values: Mapping[str, str | None]) -> None:
    """Set variables in a settings file, which nobody else may read; None takes one out."""
    names = "|".join(map(re.escape, values))
    ours = re.compile(rf"\A\s*+(?:export\s++)?(?:WEBRAG_)?(?:{names})\s*+=")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = path.read_text("utf-8-sig").splitlines() if path.exists() else []
        kept = [line for line in before if not ours.match(line)]
        added = [f"{name}={_quoted(value)}" for name, value in values.items() if value is not None]
        target = path.resolve()  # those who keep such files elsewhere have a link here
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        partial.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        partial.write_text("".join(f"{line}\n" for line in (*kept, *added)), "utf-8")
        partial.replace(target)
    except (OSError, UnicodeDecodeError) as error:
        said = f"The settings file {path} cannot be written: {file_trouble(error)}."
        raise ConfigurationError(said) from error


def _quoted(value: str) -> str:
    if "\n" in value:
        raise ConfigurationError("A value of a settings file is one line.")
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
