"""How one setting is declared: its type, range, unit and reader. It reads no environment."""

import ipaddress
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from webrag.ingestion.http.hosts import host_and_port

if TYPE_CHECKING:
    from pydantic.config import JsonDict

DIRECTORIES_TEXT = "comma-separated absolute paths of folders, other than `/`"
HOSTS_TEXT = "comma-separated `host` or `host:port` entries without a scheme or path"
HTTP_URL_TEXT = "an http:// or https:// URL without a user name or password"
KEY_TEXT = "printable ASCII characters without spaces"
LOGIN_HEADERS_TEXT = (
    "a JSON object of hosts, each with an object of headers, such as"
    ' `{"wiki.example.com": {"Authorization": "Bearer ..."}}`'
)
LEVELS_TEXT = "one of DEBUG, INFO, WARNING, ERROR, CRITICAL"
MASK = "********"
SECURE_URL_TEXT = (
    "an https:// URL without a user name, query or fragment (http:// on a loopback host only)"
)
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

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def setting(
    default: Any,
    description: str,
    *,
    read_by: str,
    env: str | None = None,
    unit: str = "",
    allowed: str | None = None,
    default_text: str | None = None,
    shared: bool = False,
    default_factory: Callable[[], Any] | None = None,
    begins: str | None = None,
    **limits: Any,
) -> Any:
    """Declare one setting.

    Args:
        default: Used when no source gives a value.
        description: One line for the reference table.
        read_by: Component that acts on it.
        env: Variable name; None means the field's name in capitals. A name without the prefix
            `WEBRAG_` can also be given with it, and then wins.
        unit: Of the number, for people.
        allowed: What a value must be, as it reads after "must be"; None derives it from the type.
        default_text: What the reference shows when the default depends on something.
        shared: Other software reads the unprefixed variable too, so that a value which does not
            fit is ignored with a warning.
        default_factory: Computes the default; `default` is then ignored.
        begins: Title of the section of the reference that this setting is the first of.
        limits: `ge`, `gt`, `le`, `lt`, `pattern`, as for pydantic's Field.
    """
    extra: JsonDict = {
        "env": env,
        "unit": unit,
        "read_by": read_by,
        "allowed": allowed,
        "default_text": default_text,
        "shared": shared,
        "begins": begins,
    }
    if default_factory is not None:
        return Field(
            default_factory=default_factory,
            description=description,
            json_schema_extra=extra,
            **limits,
        )
    return Field(default, description=description, json_schema_extra=extra, **limits)


def checked_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts in lower case, each once, IPv6 addresses in brackets.

    Raises:
        ValueError: One of them is not `host` or `host:port`.
    """
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
    """What `mask_url` hides of a URL because it is a password or a key, decoded."""
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


def _weights(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in _split(value)]
    names = [name.strip() for name, _, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("names something twice")
    return {name: weight.strip() for name, (_, _, weight) in zip(names, pairs, strict=True)}


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    origins = [checked_http_url(value) for value in values]
    if any(urlsplit(origin).path or urlsplit(origin).query for origin in origins):
        raise ValueError("holds more than scheme, host and port")
    return tuple(dict.fromkeys(origins))


def checked_http_url(value: str) -> str:
    """The address without slashes at its end.

    Raises:
        ValueError: It is not http(s), names no host or a user, or holds white space.
    """
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
    """Whether a name or address, with or without brackets, means this machine alone."""
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


def _level(value: Any) -> Any:
    level = value.strip().upper() if isinstance(value, str) else value
    if level not in _LEVELS:
        raise ValueError("not a level")
    return level


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


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
CommaList = Annotated[tuple[str, ...], BeforeValidator(_split)]
DirectoryList = Annotated[CommaList, AfterValidator(_directories)]
HostList = Annotated[CommaList, AfterValidator(checked_hosts)]
HttpUrl = Annotated[str, AfterValidator(checked_http_url)]
LoginHeaders = Annotated[SecretStr, AfterValidator(_login_headers)]
LogLevel = Annotated[str, BeforeValidator(_level)]
OriginList = Annotated[CommaList, AfterValidator(_origins)]
PostgresUrl = Annotated[SecretStr, AfterValidator(_postgres_url)]
ProxyUrl = Annotated[SecretStr, AfterValidator(_proxy)]
Seconds = Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
SecureUrl = Annotated[str, AfterValidator(_secure_url)]
SecondsOrNever = Annotated[float | None, BeforeValidator(_never)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weights = Annotated[
    dict[str, Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]], BeforeValidator(_weights)
]
