"""Declares how a setting is checked, and finds its value in the environment and the settings file.

Nothing else reads the environment.
"""

import difflib
import ipaddress
import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo

from webrag.errors import ConfigurationError, file_trouble
from webrag.frozen import Allowed, FrozenModel
from webrag.ingestion.addresses import host_and_port

HOSTS_TEXT = "comma-separated `host` or `host:port` entries without a scheme or path"
MASK = "********"
# A user with or without a password, one @, hosts with or without ports, a path, a query.
_WITH_USER = re.compile(
    r"([a-z][a-z0-9+.-]{0,30}://)([^:@/?#\s]*)(?::([^:@/?#\s]*))?@"
    r"((?:(?:[\w.-]*|\[[0-9a-f:.]+\])(?::\d{0,5})?)"
    r"(?:,(?:[\w.-]*|\[[0-9a-f:.]+\])(?::\d{0,5})?)*"
    r"(?:/[^@?#\s]*)?(?:\?[^@#?/\s]*)?)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+-]{0,30}://", re.IGNORECASE)
_QUERY_PART = re.compile(r"(?<=[?&;])([^=&;\s#]{0,100})=([^&;\s#]{1,2000})")
_SECRET_NAME = re.compile(
    r"(?i)(?:password|passwd|passphrase|pwd|secret|token|credentials?|key)[\"']?\s{0,4}[=:]\s{0,4}"
)
# Options of libpq and of HTTP endpoints that hold no secret.
_HARMLESS = frozenset(
    {
        "application_name", "channel_binding", "connect_timeout", "dbname", "host", "hostaddr",
        "keepalives", "keepalives_idle", "port", "sslmode", "target_session_attrs", "api-version",
    }
)  # fmt: skip


_RECORDED = {
    "env": None,
    "is_variable": True,
    "allowed": None,
    "default_text": None,
    "shared": False,
    "begins": None,
    "fills": None,
    "of": (),
}


def setting(default: Any, description: str, **more: Any) -> Any:
    """Declare one setting.

    Args:
        default: Used when no source gives a value; a function computes it.
        description: One line for the reference table.
        more: As for pydantic's Field, and `env`, the variable's name, None for the field's in
            capitals: a name without the prefix `WEBRAG_` can also be given with it, and then wins.
            `is_variable`: it can be given by a variable, not only in Python. `allowed`: what a
            value must be, as it reads after "must be"; None derives it from the type.
            `default_text`: what the reference shows when the default depends on something.
            `shared`: other software reads the unprefixed variable too, so that a value which does
            not fit is ignored with a warning. `begins`: title of the section of the reference that
            this setting is the first of. `fills`: field of the configurations `of` that takes the
            value.
    """
    extra: dict[str, Any] = {name: more.pop(name, usual) for name, usual in _RECORDED.items()}
    extra["of"] = [each.__name__ for each in extra["of"]]
    made = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**made, description=description, json_schema_extra=extra, **more)


def taken(field: str, *of: type[FrozenModel], **extra: Any) -> Any:
    """Declare a setting by a field of configurations `of`, the first of which says what it is.

    All of them take its value; more is as for `setting`.
    """
    info = of[0].model_fields[field]
    declared = setting(info.default, info.description or "", fills=field, of=of, **extra)
    declared.metadata = [*info.metadata, *declared.metadata]
    return declared


def filling(settings: type[BaseModel], config: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Each setting that fills a field of a configuration, with that field."""
    for name, info in settings.model_fields.items():
        extra: Any = info.json_schema_extra
        if config.__name__ in (extra or {}).get("of", ()):
            yield name, extra["fills"]


def checked_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts in lower case, each once, IPv6 addresses in brackets."""
    found: dict[str, None] = {}
    for entry in hosts:
        host, port = host_and_port(entry.lower())
        shown = f"[{host}]" if ":" in host else host
        found[shown if port is None else f"{shown}:{port}"] = None
    return tuple(found)


def mask_url(text: str) -> str:
    """The text as it may be shown, when it is or should have been a URL or a connection string.

    A password that was not percent-encoded can end anywhere, so whatever is not written as the
    standard says is hidden from the scheme on. Values in a query are hidden unless they are known
    to be harmless.
    """
    if "://" not in text:
        named = _SECRET_NAME.search(text)
        return (
            text[: named.end()] + MASK if named else re.sub(r":[^:\s]{1,200}@", f":{MASK}@", text)
        )
    if "@" not in text:
        return _mask_queries(text)
    found = _WITH_USER.fullmatch(text)
    if found is None:
        begun = _SCHEME.match(text)
        return (begun[0] if begun else "") + MASK
    scheme, user, password, rest = found.groups()
    return f"{scheme}{user}{'' if password is None else ':' + MASK}@{_mask_queries(rest)}"


def hidden_parts(text: str) -> tuple[str, ...]:
    """Give the passwords and keys that `mask_url` hides of a URL, decoded."""
    found = _WITH_USER.fullmatch(text)
    given = [found[3]] if found and found[3] else []
    given += [value for name, value in _QUERY_PART.findall(text) if name.lower() not in _HARMLESS]
    return tuple(unquote(each) for each in given)


def _mask_queries(text: str) -> str:
    before, mark, _ = text.partition("#")

    def masked(found: re.Match[str]) -> str:
        return found[0] if found[1].lower() in _HARMLESS else found[0][: -len(found[2])] + MASK

    return _QUERY_PART.sub(masked, before) + (mark and mark + MASK)


def _split(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    origins = [checked_http_url(value) for value in values]
    if any(urlsplit(origin).path or urlsplit(origin).query for origin in origins):
        raise ValueError("holds more than scheme, host and port")
    return tuple(dict.fromkeys(origins))


def checked_http_url(value: str) -> str:
    """The address without slashes at its end."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("not an http(s) URL")
    if parts.port == 0:  # reading it refuses what is no number, such as a part of a password
        raise ValueError("names an impossible port")
    if re.search(r"[\s\x00-\x1f\x7f]", value):
        raise ValueError("holds white space")
    return value.rstrip("/")


def _secure_url(value: str) -> str:
    # Kept as written: an issuer is compared character by character, its last slash included.
    checked_http_url(value)
    parts = urlsplit(value)
    if parts.query or parts.fragment:
        raise ValueError("holds a query or a fragment")
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("is neither https nor on this machine")
    return value


def is_loopback(host: str) -> bool:
    """Tell if a name or address, with or without brackets, means this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _postgres_url(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if urlsplit(text).scheme not in ("postgresql", "postgres") or "://" not in text:
        raise ValueError("not a Postgres URL")
    return SecretStr(text)


def _proxy(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    parts = urlsplit(text)
    is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    if text != "environment" and not is_address:
        raise ValueError("not a proxy")
    return SecretStr(text)


def _secret(value: SecretStr) -> SecretStr:
    text = value.get_secret_value().strip()
    if not re.fullmatch(r"[!-~]+", text):
        raise ValueError("cannot be sent in a header")
    return SecretStr(text)


def _login_headers(value: SecretStr) -> SecretStr:
    # Few have any, and who has none need not wait for what reads them.
    from webrag.ingestion.logins.session import read_headers

    read_headers(value.get_secret_value())
    return value


def _absolute(path: Path) -> Path:
    if "\0" in str(path):
        raise ValueError("holds a NUL")
    return path.expanduser().absolute()


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _never(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() == "never" else value


def _directories(paths: Sequence[str]) -> tuple[str, ...]:
    folders = [Path(path).expanduser() for path in paths]
    for given, folder in zip(paths, folders, strict=True):
        if not folder.is_absolute() or "\0" in given:
            raise ValueError(f"{given!r} is not an absolute path")
        if folder == Path(folder.anchor):
            raise ValueError(f"{given!r} is the whole machine")
    return tuple(dict.fromkeys(map(str, folders)))


_A_PATH = Allowed("a path")
_A_URL = Allowed("an http:// or https:// URL without a user name or password")

AbsolutePath = Annotated[Path, AfterValidator(_absolute), _A_PATH]
CommaList = Annotated[tuple[str, ...], BeforeValidator(_split)]
DirectoryList = Annotated[
    CommaList,
    AfterValidator(_directories),
    Allowed("comma-separated absolute paths of folders, other than `/`"),
]
HostList = Annotated[CommaList, AfterValidator(checked_hosts), Allowed(HOSTS_TEXT)]
HttpUrl = Annotated[str, AfterValidator(checked_http_url), _A_URL]
LoginHeaders = Annotated[
    SecretStr,
    AfterValidator(_login_headers),
    Allowed(
        "a JSON object of hosts, each with an object of headers, such as"
        ' `{"wiki.example.com": {"Authorization": "Bearer ..."}}`'
    ),
]
LogLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)
]
ModelName = Annotated[str, Field(min_length=1, max_length=1000), Allowed("a model name")]
ServedModelName = Annotated[str, Field(min_length=1, max_length=200), Allowed("a model name")]
OriginList = Annotated[
    CommaList,
    AfterValidator(_origins),
    Allowed("comma-separated origins such as https://app.example.com"),
]
PathName = Annotated[Path, _A_PATH]
PostgresUrl = Annotated[
    SecretStr,
    AfterValidator(_postgres_url),
    Allowed("a URL that starts with postgresql:// or postgres://"),
]
ProxyUrl = Annotated[
    SecretStr,
    AfterValidator(_proxy),
    Allowed("`environment`, or a URL that starts with http:// or https://"),
]
Secret = Annotated[
    SecretStr, AfterValidator(_secret), Allowed("printable ASCII characters without spaces")
]
SecureUrl = Annotated[
    str,
    AfterValidator(_secure_url),
    Allowed(
        "an https:// URL without a user name, query or fragment (http:// on a loopback host only)"
    ),
]
SecondsOrNever = Annotated[
    float | None, BeforeValidator(_never), Allowed("a number of seconds from 0, or `never`")
]


_LOG = logging.getLogger(__name__)
_PREFIX = "WEBRAG_"
_FILE_VARIABLE = "WEBRAG_ENV_FILE"


class Found(NamedTuple):
    """A variable that is set, in a settings file or else in the process environment."""

    name: str
    value: str
    file: Path | None

    @property
    def origin(self) -> str:
        """The source of the value, for people."""
        return f"{self.name} in {self.file}" if self.file else f"{self.name} in the environment"


def extra_of(info: FieldInfo) -> dict[str, Any]:
    """Give all that `setting` recorded about a field."""
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def variable_names(field: str, info: FieldInfo) -> tuple[str, ...]:
    """Variables a setting is read from, the one that wins first; none if set in Python only."""
    if not extra_of(info).get("is_variable"):
        return ()
    return _spellings(extra_of(info).get("env") or field.upper())


def _spellings(name: str) -> tuple[str, ...]:
    return (name,) if name.startswith(_PREFIX) else (_PREFIX + name, name)


class Variables:
    """The process environment over one settings file; empty values count as not set."""

    def __init__(self, env_file: Path | str | None = None) -> None:
        self.file = _settings_file(env_file)
        self._file_values = _read(self.file) if self.file else {}

    def find(self, fields: Mapping[str, FieldInfo]) -> dict[str, Found]:
        """The variable that wins for each setting that has one, with a warning for the others."""
        found: dict[str, Found] = {}
        known = {_FILE_VARIABLE}
        for field, info in fields.items():
            names = variable_names(field, info)
            known.update(names)
            chosen = next((each for name in names for each in self._lookup(name)), None)
            if chosen and not _is_foreign(info, chosen):
                found[field] = chosen
            for name in () if names else _spellings(field.upper()):
                if any(self._lookup(name)):
                    _LOG.warning(
                        "%s is ignored: in Python load_settings(%s=...) sets it.", name, field
                    )
                    known.add(name)
        self._warn_about_misspelt(known)
        return found

    def _lookup(self, name: str) -> Iterator[Found]:
        for values, file in ((os.environ, None), (self._file_values, self.file)):
            value = values.get(name)
            if value is not None and value.strip():
                yield Found(name, value.strip(), file)

    def _warn_about_misspelt(self, known: set[str]) -> None:
        """Name what a variable resembles that no setting reads.

        Looked at are those with the prefix, and all of the settings file, whose others may belong
        to other programs and have to resemble a name more.
        """
        prefixed = {name for name in os.environ if name.startswith(_PREFIX)}
        for name in sorted({*prefixed, *self._file_values} - known):
            match = nearest(name, known, alike=0.6 if name.startswith(_PREFIX) else 0.85)
            if match is not None:
                _LOG.warning("%s is not a setting and is ignored; did you mean %s?", name, match)


def nearest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """The known name that one resembles most, None when it resembles none."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=alike)
    return close[0] if close else None


def _is_foreign(info: FieldInfo, found: Found) -> bool:
    """Warn if other software has set a variable to a value that does not fit."""
    if found.name.startswith(_PREFIX) or not extra_of(info).get("shared"):
        return False
    kind: Any = Annotated[(info.annotation, *info.metadata, found.name)]
    try:
        TypeAdapter(kind).validate_python(found.value)
    except ValidationError:
        shown = MASK if is_secret(info) else repr(mask_url(found.value)[:80])
        _LOG.warning(
            "%s is %s, which WebRAG cannot use; other software reads that name too, so it is "
            "ignored. Set %s%s for WebRAG.",
            found.name,
            shown,
            _PREFIX,
            found.name,
        )
        return True
    return False


def user_folder(kind: Literal["data", "config"]) -> Path:
    """The user's folder for WebRAG, by the platform's convention; it may not exist."""
    xdg = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
    return Path(xdg) / "webrag" if Path(xdg).is_absolute() else usual_folder(kind)


def usual_folder(kind: Literal["data", "config"]) -> Path:
    """That folder where no variable of the environment names another one."""
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


def desktop_folder() -> Path:
    """The folder below which desktop programs of this user keep their settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return user_folder("config").parent


def is_secret(info: FieldInfo) -> bool:
    """Tell if the value must never be shown."""
    return "SecretStr" in str(info.annotation)


def _settings_file(named: Path | str | None) -> Path | None:
    chosen = named or os.environ.get(_FILE_VARIABLE, "").strip()
    if chosen:
        path = Path(chosen).expanduser()
        if not path.is_file():
            raise ConfigurationError(
                f"The settings file {str(path)!r} does not exist or is not a file.",
                hint=f"Correct --env-file or {_FILE_VARIABLE}, or leave it out.",
            )
        return path
    try:
        path = user_folder("config") / ".env"
    except ConfigurationError:
        return None
    return path if path.is_file() else None


def _read(path: Path) -> Mapping[str, str | None]:
    from dotenv import dotenv_values

    try:
        return dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The settings file {str(path)!r} cannot be read: {file_trouble(error)}."
        ) from error


_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_OPENERS = ("BROWSER", "WSL_DISTRO_NAME")
_lending = threading.Lock()


def forces_terminal() -> bool:
    """Tell if `rich` would take a pipe for a terminal."""
    return any(name in os.environ for name in _FORCED)


def is_run_by_uv() -> bool:
    """Tell whether `uv run` started this process, or the shell that did."""
    return "UV_RUN_RECURSION_DEPTH" in os.environ


def has_display(*, for_addresses: bool = False) -> bool:
    """Tell whether windows open here, or addresses in a browser that the user may have named."""
    names = (*_DISPLAYS, *(_OPENERS if for_addresses else ()))
    return sys.platform != "linux" or any(map(os.environ.get, names))


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables while the block runs, one block at a time; what the user has set stays."""
    with _lending:
        added = {key: value for key, value in variables.items() if key not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:
            for key in added:
                os.environ.pop(key, None)
