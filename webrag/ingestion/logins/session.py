"""Decides what a login sends to whom; it asks nobody."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ada_url import URL
from pydantic import TypeAdapter
from typing_extensions import override

from webrag.errors import InputError, UnusablePageError

_MAX_FILE_BYTES: Final = 5_000_000
_LEAST_SECRET: Final = 16
_FIELDS: Final = ("domain", "subdomains", "path", "secure", "expires", "name", "value")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?\Z")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
# Links to it are on every page behind a login.
_SIGNS_OUT: Final = re.compile(
    r"[/?&=:](?:user)?(?:log|sign)[-_]?(?:out|off)(?:[/?&.]|\Z)", re.IGNORECASE
)
# They say what is asked of whom, which is not for a login to say.
_NOT_GIVEN: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_HEADERS: Final = TypeAdapter(dict[str, dict[str, str]])
_SECONDS: Final = re.compile("[0-9]+")
# The last day that the calendar can say.
_LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Cookie:
    """A cookie as a browser keeps it, with seconds after 1970; its `repr` shows no value.

    Hosts below its domain get it too where that begins with a dot.
    """

    name: str
    value: str
    domain: str
    path: str = "/"
    expires: float | None = None

    @override
    def __repr__(self) -> str:
        return f"<Cookie {self.name} of {self.domain}>"

    def goes_to(self, path: str) -> bool:
        """Tell whether a browser would send it with a request for a path of its host now."""
        is_below = path.startswith(self.path.removesuffix("/") + "/") or path == self.path
        return is_below and (self.expires is None or self.expires > time.time())


@dataclass(frozen=True)
class Login:
    """Cookies and headers for one host, with a port where it is not 443; it shows no value.

    It was saved by the user at some time, or is one of the settings.
    """

    host: str
    cookies: tuple[Cookie, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    saved_at: datetime | None = None

    @override
    def __repr__(self) -> str:
        return f"<Login {self.host}: {len(self.cookies)} cookies, {len(self.headers)} headers>"

    @property
    def expires_at(self) -> datetime | None:
        """The end of the last of the cookies; None when one of them names none."""
        known = [each.expires for each in self.cookies if each.expires is not None]
        is_known = known and len(known) == len(self.cookies)
        return datetime.fromtimestamp(max(known), UTC) if is_known else None

    @property
    def secrets(self) -> Iterator[str]:
        """Every value that must not be shown; short cookies are words, and identify nobody."""
        yield from (each.value for each in self.cookies if len(each.value) >= _LEAST_SECRET)
        for name, value in self.headers:
            has_scheme = name.lower() == "authorization" and " " in value
            yield value.partition(" ")[2] if has_scheme else value


class Logins:
    """The sessions of a user, each for one host; its `repr` shows hosts alone.

    Of several logins for one host, cookies of the last one and headers of all are sent.
    """

    def __init__(self, logins: Iterable[Login] = ()) -> None:
        self._cookies: dict[str, dict[tuple[str, str, str], Cookie]] = {}
        self._headers: dict[str, dict[str, str]] = {}
        for login in logins:
            headers = self._headers.setdefault(login.host, {})
            headers.update(login.headers)
            if login.cookies:
                cookies = cookies_for(login.host, login.cookies)
                self._cookies[login.host] = {(c.domain, c.path, c.name): c for c in cookies}

    @override
    def __repr__(self) -> str:
        return f"<Logins {', '.join(self._headers) or 'none'}>"

    def host_of(self, url: str) -> str | None:
        """The host of a login that goes with an address; None where none does.

        Only https, the very host and the very port count. An address that signs out gets none, so
        that following links does not end the session.
        """
        if not self._headers:
            return None
        target = URL(url)
        is_plain = target.protocol == "https:" and not (target.username or target.password)
        if not is_plain or _SIGNS_OUT.search(target.pathname + target.search):
            return None
        return target.host if target.host in self._headers else None

    def headers_for(self, url: str) -> dict[str, str]:
        """Give what is sent with a request for an address: nothing but to the login's own host."""
        host = self.host_of(url)
        if host is None:
            return {}
        headers = dict(self._headers[host])
        path = URL(url).pathname
        sent = [each for each in self._cookies.get(host, {}).values() if each.goes_to(path)]
        if sent:
            sent.sort(key=lambda each: len(each.path), reverse=True)
            headers["Cookie"] = "; ".join(f"{each.name}={each.value}" for each in sent)
        return headers


def login_expired(url: str, host: str, status: int | None) -> UnusablePageError:
    """Give the error for a page that wants a login although one was sent."""
    code = f" (HTTP {status})" if status in (401, 403) else ""
    # The command is in the message, as reports of several pages keep only that.
    said = f"The page {url} cannot be read: {host} does not accept the stored login{code}; it has"
    said += f" expired, or may not see this page. Renew it with `webrag login {host}`."
    return UnusablePageError(said, url=url, status=status, kind="login_expired")


def checked_host(text: str) -> str:
    """A host as logins are kept under, of a name, `host:port` or an https address."""
    given = text.strip()
    try:
        url = URL(given if "://" in given else f"https://{given}")
    except ValueError:
        url = None
    if url is None or not url.host or url.username or url.password or " " in given:
        raise InputError(f"{given!r} is not a host such as wiki.example.com.")
    if url.protocol != "https:":
        raise InputError(
            f"A login is only ever sent over https, and {given!r} is not such an address."
        )
    return url.host


def checked_header(name: str, value: str) -> tuple[str, str]:
    """A header that may be sent, or ValueError; the message does not hold the value."""
    if not _HEADER_NAME.match(name) or name.lower() in _NOT_GIVEN:
        raise ValueError(f"{name[:50]!r} is not a header that can be given")
    if not _PRINTABLE.match(value):
        raise ValueError(f"the value of {name!r} is empty or holds more than printable ASCII")
    return name, value


def cookies_for(host: str, cookies: Iterable[Cookie]) -> tuple[Cookie, ...]:
    """Choose the cookies that can be sent, and that a browser would send to a host on some path."""
    name = URL(f"https://{host}").hostname
    own = (each for each in cookies if _belongs(each, name) and _HEADER_NAME.match(each.name))
    printable = (each for each in own if not each.value or _PRINTABLE.match(each.value))
    return tuple(each for each in printable if ";" not in each.value)


def _belongs(cookie: Cookie, host: str) -> bool:
    domain = cookie.domain.lower()
    if not domain.startswith("."):
        return domain == host
    return host == domain[1:] or host.endswith(domain)


def read_cookie_file(path: Path) -> tuple[Cookie, ...]:
    """Read a cookies.txt as browsers' extensions and curl write it; errors show nothing of it."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"The file {path} cannot be read: {reason}.") from error
    if len(content) > _MAX_FILE_BYTES:
        raise InputError(f"The file {path} is too large for a cookies.txt.")
    # The standard library's reader wants a dot wherever the second field says TRUE, which some
    # extensions leave out, and prints what it cannot read.
    lines = content.decode("utf-8", errors="replace").splitlines()
    cookies = (line.removeprefix("#HttpOnly_") for line in lines)
    fields = [line.split("\t") for line in cookies if line.strip() and not line.startswith("#")]
    if not fields or any(
        len(each) != len(_FIELDS) or not _SECONDS.fullmatch(each[4]) for each in fields
    ):
        raise InputError(
            f"The file {path} is not a cookies.txt in Netscape's format: lines of"
            f" {len(_FIELDS)} fields between tabs ({', '.join(_FIELDS)})."
        )
    return tuple(_cookie(each) for each in fields)


def _cookie(fields: Sequence[str]) -> Cookie:
    domain, below, path, _, expires, name, value = fields
    if below.upper() == "TRUE":
        domain = f".{domain.lstrip('.')}"
    ends = min(float(expires), _LATEST) or None
    return Cookie(name, value, domain, path, ends)


def read_headers(text: str) -> tuple[Login, ...]:
    """Read the headers of hosts, a JSON object of objects; ValueError holds no value of one."""
    given = None
    with suppress(ValueError):
        given = _HEADERS.validate_json(text, strict=True)
    if given is None:  # raised here, without the error that holds what was given
        raise ValueError("is not a JSON object of hosts, each with an object of texts")
    try:
        hosts = [checked_host(host) for host in given]
    except InputError as error:
        raise ValueError(str(error).rstrip(".")) from None
    return tuple(
        Login(host, headers=tuple(checked_header(*each) for each in headers.items()))
        for host, headers in zip(hosts, given.values(), strict=True)
    )
