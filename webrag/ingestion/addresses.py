"""One canonical address for each page, file and repository, and those in what a user typed."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

from ada_url import URL, join_url, normalize_url

from webrag.errors import InputError
from webrag.ingestion.formats.kinds import kind_of_name

MAX_URL_CHARS = 2_000

BARE_URL = re.compile(r"https?://[^\s<>\"'`]+[^\s<>\"'`.,;:!?)\]}*_]")
"""An address as it stands in a text, without the punctuation behind it."""

FILES = "file:"
"""What `site_of` gives for every file of this machine; no host has that name."""

DOCUMENTS = "document:"
"""The same for every document that a program brought."""

_EXPECTED = "give a full web address such as https://example.com/page"
_TRACKING_PREFIXES = ("utm_", "hsa_", "mtm_", "piwik_", "matomo_")
_TRACKING_WORDS = """
_bta_c _bta_tid _ga _gac _gl _hsenc _hsmi _ke _openstat dclid dm_i ef_id epik fbclid fb_action_ids
fb_action_types fb_ref fb_source gbraid gclid gclsrc hsctatracking igsh igshid li_fat_id mc_cid
mc_eid mkt_tok msclkid oly_anon_id oly_enc_id rb_clickid s_kwcid sc_campaign srsltid trk_contact
trk_msg ttclid twclid vero_conv vero_id wbraid wickedid wt_mc wt_zmc yclid ysclid zanpid
"""
_TRACKING_NAMES = frozenset(_TRACKING_WORDS.split())
_PERCENT_TRIPLET = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HREF_NOISE = re.compile(r"[\t\n\r]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# Browsers read these, other parsers differ on where the host ends: not worth the doubt.
_DOUBTFUL_AUTHORITY = re.compile(r"(?:[a-z]+:)?[/\\]*[^/?#]*[\\ ]", re.IGNORECASE)
# Of an address that is normalised. Asking the parser for each part takes twice as long.
_HTTP = re.compile(
    r"(https?://)(?:[^/?#@]*+@)?(\[[^\]]*+\]|[^/?#:]*+)(:\d++)?([^?#]*+)(?:\?([^#]*+))?(#.*)?",
    re.DOTALL,
)
_HTTP_AUTHORITY = re.compile(r"https?:[/\\]{2}", re.IGNORECASE)


def canonical_url(href: str, base: str | None = None, *, keep_tracking: bool = False) -> str:
    """Return the one form under which a page is known.

    The fragment (except `#!`), user name and password, default port and tracking parameters
    (without `keep_tracking`, as following a redirect needs) are dropped; percent-encoding is
    normalised. The query's order and slashes mean something to servers and stay. Applying it twice
    changes nothing. Only a file may link to files from its `base`.

    Raises:
        InputError: Not an http(s) address; the message names the value and what is allowed.
    """
    text = _checked_text(href, is_link=base is not None)
    try:
        # `URL(text, base).href` takes four times as long.
        whole = join_url(base, text) if base is not None else normalize_url(text)
    except ValueError as error:
        raise InputError(f"The URL {_shown(href)} cannot be read; {_EXPECTED}.") from error
    if whole.startswith("file:") and base is not None and is_file(base):
        return _file_address(URL(whole))
    if base is not None and is_git(base):
        repository = base[: base.index("/", base.index(".git@")) + 1]
        if whole.startswith(repository):
            return parse_git(whole.partition("#")[0].partition("?")[0]).url
    found = _HTTP.fullmatch(whole)
    if found is None:
        raise InputError(
            f"The URL {_shown(href)} uses '{URL(whole).protocol[:20]}'; only http and https are"
            " allowed."
        )
    scheme, host, port, path, search, fragment = found.groups(default="")
    if port == ":0":
        raise InputError(f"The URL {_shown(href)} names port 0; allowed are 1 to 65535.")
    parts = (part for part in search.split("&") if keep_tracking or not _is_tracking(part))
    query = _normal_percent("&".join(parts)) if search else ""
    end = fragment if fragment.startswith("#!") else ""
    return _bounded(
        f"{scheme}{host}{port}{_normal_percent(path)}{f'?{query}' if query else ''}{end}"
    )


def link_target(href: str, base: str | None = None, *, keep_tracking: bool = False) -> str | None:
    """Return the canonical form of a link, None for what is blank or no web address."""
    try:
        return canonical_url(href, base, keep_tracking=keep_tracking) if href.strip() else None
    except InputError:
        return None


def same_site(href: str, base: str) -> str | None:
    """Return the canonical form of a link; None for another site and for what is no address."""
    url = link_target(href, base)
    return url if url and site_of(url) == site_of(base) else None


def port_of(url: URL) -> int:
    """Return the port of a web address, as it is stated or by its scheme."""
    return int(url.port) if url.port else (443 if url.protocol == "https:" else 80)


def page_address(address: str) -> str:
    """Return the canonical form of any address a page can be stored under, or raise InputError.

    Beside what is on the web these are files of this machine, as `file:///folder/page.md`, and
    documents that a program brought, as `document:name`. Naming a file allows nobody to read it.
    """
    text = address.strip(" \t\n\r\f") if isinstance(address, str) else ""
    is_document, is_repository = text.startswith(DOCUMENTS), is_git(text)
    if not (is_document or is_repository or text.lower().startswith("file:")):
        return canonical_url(address)
    if _FORBIDDEN.search(text):
        raise InputError(f"The address {_shown(text)} holds a control character.")
    if is_document or is_repository:
        return _bounded(text) if is_document else parse_git(_bounded(text)).url
    try:
        return _file_address(URL(_bounded(text)))
    except ValueError as error:
        raise InputError(f"The address {_shown(text)} cannot be read.") from error


def has_scheme(text: str) -> bool:
    """Tell a text that begins as an address, or with a Windows drive, from a path."""
    return _SCHEME.match(text) is not None


def is_file(url: str) -> bool:
    """Tell canonical addresses of files of this machine."""
    return url.startswith("file:")


def is_local(url: str) -> bool:
    """Tell canonical addresses of files, of this machine or of a clone on it."""
    return is_file(url) or is_git(url)


def file_url(path: Path) -> str:
    """Return the canonical address of a file by its absolute path, unless that is too long."""
    return page_address(path.as_uri())


def file_path(url: str) -> Path:
    """Return the path that a canonical `file:` address names; it need not exist."""
    path = os.fsdecode(unquote_to_bytes(url.removeprefix("file://")))
    return Path(path[1:] if _DRIVE.match(path) else path)


def place_in_file(url: str, link: str) -> str | None:
    """The path of a file, with the line a link leads to; None for what is no file.

    `docs/guide.md:42` for `file:///home/me/docs/guide.md#L42`; of a path on this machine the last
    two names, of one in a repository all.
    """
    if not is_local(url):
        return None
    name = parse_git(url).name if is_git(url) else "/".join(file_path(url).parts[-2:]).lstrip("/")
    found = _LINE.fullmatch(link.rpartition("#")[2])
    return f"{name}:{found[1]}" if found else name


_LINE = re.compile(r"(?:L|lines-)(\d+)")
_DRIVE = re.compile(r"/[A-Za-z]:")


def _file_address(url: URL) -> str:
    if url.host:
        raise InputError(
            f"The address {_shown(url.href)} names a file of another machine, '{url.host[:80]}';"
            " only those of this one are read."
        )
    name = unquote_to_bytes(url.pathname)
    if b"\x00" in name:
        raise InputError(f"The address {_shown(url.href)} holds a NUL character.")
    # Encoded one way, whoever wrote it: an index may say `%28` where a link says `(`.
    return _bounded(f"file://{quote(name, safe='/~:@!$&()*+,;=')}")


_PREFIXES: Final = ("git+https://", "git+http://")
_REPOSITORY: Final = re.compile(
    r"git\+(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?)"
    r"/(?P<path>[\w.~/+-]+?)(?:\.git)?/?(?:@(?P<ref>[^@#]+?))?(?:#(?P<folder>.*))?"
)
_FILE: Final = re.compile(
    r"git\+(?P<scheme>https?)://(?P<host>[^/@#]+)/(?P<path>[\w.~/+-]+?)\.git@(?P<ref>[^/@#]+)"
    r"/(?P<folder>[^#]*)"
)
_REF: Final = re.compile(r"[A-Za-z0-9_][\w.+/-]{0,199}")


@dataclass(frozen=True)
class GitFile:
    """A file of a repository, or a folder when `name` is empty or ends with a slash.

    The scheme is `http` only where the host may be private, the path that of the repository, and
    the ref a branch, tag or commit, `HEAD` for what the host shows first.
    """

    scheme: str
    host: str
    path: str
    ref: str
    name: str = ""

    @property
    def repository(self) -> str:
        """The address that git asks for."""
        return f"{self.scheme}://{self.host}/{self.path}"

    @property
    def site(self) -> str:
        """Host, repository and ref, as filters name them."""
        return f"{self.host}/{self.path}@{self.ref}"

    @property
    def url(self) -> str:
        """The canonical address."""
        ref = quote(self.ref, safe="")
        return f"git+{self.scheme}://{self.host}/{self.path}.git@{ref}/{quote(self.name, safe='/')}"


def is_git(address: str) -> bool:
    """Tell addresses of repositories and of files in one."""
    return address.startswith(_PREFIXES)


def parse_git(address: str) -> GitFile:
    """Read the address of a repository, `git+https://host/owner/repo@ref#folder`, or of a file.

    InputError where it is neither says how one is written.
    """
    found = _FILE.fullmatch(address)
    name = unquote(found["folder"]) if found else ""
    ref = unquote(found["ref"]) if found else ""
    if found is None:
        found = _REPOSITORY.fullmatch(address)
        if found is not None:
            folder = (found["folder"] or "").strip("/")
            name, ref = f"{folder}/" if folder else "", found["ref"] or "HEAD"
    parts = [] if found is None else [*found["path"].split("/"), *name.rstrip("/").split("/")]
    is_ref = _REF.fullmatch(ref) and ".." not in ref and not ref.endswith((".lock", "/"))
    if found is None or ".." in parts or "." in parts or "\0" in name or not is_ref:
        raise InputError(
            f"{address[:200]!r} is no address of a repository; write"
            " git+https://host/owner/repository, with @ and a branch, tag or commit, and # and a"
            " folder behind it where you want one."
        )
    path = "/".join(part for part in found["path"].split("/") if part)
    return GitFile(found["scheme"], found["host"].lower(), path, ref, name)


def web_link(file: GitFile, commit: str, line: int | None = None) -> str:
    """Give the address at which the host shows a file as it was at a commit.

    Hosts that are not GitHub, GitLab or Bitbucket by name mostly run Gitea or Forgejo.
    """
    root, name = f"{file.scheme}://{file.host}/{file.path}", quote(file.name, safe="/")
    host = file.host.partition(":")[0]
    at = "" if line is None else f"#L{line}"
    if "gitlab" in host:
        return f"{root}/-/blob/{commit}/{name}{at}"
    if "bitbucket" in host:
        return f"{root}/src/{commit}/{name}{at.replace('#L', '#lines-')}"
    if "github" in host:
        return f"{root}/blob/{commit}/{name}{at}"
    return f"{root}/src/commit/{commit}/{name}{at}"


@lru_cache(maxsize=8_192)  # each round asks about every link again
def site_of(url: str) -> str:
    """The `host` or `host:port` of a canonical URL, in lower case, without a leading `www.`.

    `FILES` for a file of this machine, `host/owner/repository@ref` for one of a repository,
    `DOCUMENTS` for a program's own document.
    """
    if is_file(url):
        return FILES
    if is_git(url):
        return parse_git(url).site
    return DOCUMENTS if url.startswith(DOCUMENTS) else URL(url).host.removeprefix("www.")


def parent_urls(url: str) -> list[str]:
    """Return the folders above a canonical URL, nearest first, without the site's root."""
    if not url.startswith("http"):
        return []
    parsed = URL(url)
    segments = [part for part in parsed.pathname.split("/") if part][:-1]
    origin = f"{parsed.protocol}//{parsed.host}"
    return [f"{origin}/{'/'.join(segments[:count])}/" for count in range(len(segments), 0, -1)]


def content_hash(markdown: str) -> str:
    """Return the SHA-256 of a document's markdown, in hex."""
    return hashlib.sha256(markdown.encode()).hexdigest()


def _checked_text(href: str, *, is_link: bool) -> str:
    if not isinstance(href, str):
        raise InputError(f"The URL is of type {type(href).__name__}; it must be text.")
    text = href.strip(" \t\n\r\f")
    if is_link:
        text = _HREF_NOISE.sub("", text)
    elif not text:
        raise InputError(f"The URL is empty; {_EXPECTED}.")
    elif not _HTTP_AUTHORITY.match(text):
        raise InputError(_not_absolute(text))
    if _FORBIDDEN.search(text):
        raise InputError(
            f"The URL {_shown(text)} holds a control character; remove it or percent-encode it."
        )
    if _HTTP_AUTHORITY.match(text) and _DOUBTFUL_AUTHORITY.match(text):
        raise InputError(
            f"The URL {_shown(text)} has a space or backslash in its host; {_EXPECTED}."
        )
    return _bounded(text)


_LOCAL_PATH = re.compile(
    r"(?:file:|~?/(?!/)|\.{1,2}/|[A-Za-z]:[\\/])|[^/:?]+\.(?:html?|md|txt|pdf)\Z", re.IGNORECASE
)


def _not_absolute(text: str) -> str:
    scheme = _SCHEME.match(text)
    is_host_and_port = re.match(r"[\w.-]+:\d+(/|$)", text)
    if _LOCAL_PATH.match(text):
        return (
            f"The URL {_shown(text)} is a path of this machine; files are named as"
            " file:///folder/page.md where they may be read; only pages of the web are crawled."
        )
    if scheme and not is_host_and_port and not scheme.group().lower().startswith("http"):
        name = scheme.group()[:20]
        return f"The URL {_shown(text)} uses '{name}'; only http and https are allowed."
    return f"The URL {_shown(text)} does not start with http:// or https://; {_EXPECTED}."


def _bounded(text: str) -> str:
    if len(text) <= MAX_URL_CHARS:
        return text
    raise InputError(
        f"The URL {_shown(text)} has {len(text):,} characters; "
        f"at most {MAX_URL_CHARS:,} are allowed."
    )


def _shown(text: str) -> str:
    clean = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
    return f"'{clean[:80]}...'" if len(clean) > 80 else f"'{clean}'"


def _is_tracking(part: str) -> bool:
    name = unquote(part.partition("=")[0]).lower()
    return name in _TRACKING_NAMES or name.startswith(_TRACKING_PREFIXES)


def _normal_percent(text: str) -> str:
    def normal(match: re.Match[str]) -> str:
        char = chr(int(match[0][1:], 16))
        return char if char in _UNRESERVED else match[0].upper()

    return _PERCENT_TRIPLET.sub(normal, text) if "%" in text else text


_ENTRY = re.compile(r"(\[[^\]]*\]|[^\s/:@\[\]?#,*\\\x00-\x1f]+)(?::([1-9][0-9]{0,4}))?", re.ASCII)
_MAX_PORT = 65_535


def host_and_port(entry: str) -> tuple[str, int | None]:
    """The host, an IPv6 address without its brackets, and the port where one is named.

    An IPv6 address with a port needs brackets; without them, all of it is the host. ValueError for
    what is neither `host` nor `host:port`.
    """
    if entry.count(":") > 1 and not entry.startswith("["):
        return _ipv6(entry, entry), None
    found = _ENTRY.fullmatch(entry)
    if found is None or not found[1].strip("."):
        raise ValueError(f"{entry!r} is not a host, or a host and a port")
    host, port = found[1], found[2] and int(found[2])
    if port and port > _MAX_PORT:
        raise ValueError(f"{entry!r} names an impossible port")
    return _ipv6(host[1:-1], entry) if host.startswith("[") else host, port or None


def _ipv6(text: str, entry: str) -> str:
    try:
        # One of a link alone has its name behind a percent sign.
        return str(IPv6Address(text.replace("%", " ")))
    except ValueError:
        raise ValueError(f"{entry!r} is not a host, or a host and a port") from None


_NAME = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}\.?"
_PRIVATE = r"localhost|(?:\d{1,3}\.){3}\d{1,3}|\[[0-9a-f:.]+\]"
_HOST = re.compile(rf"(?:(?P<private>{_PRIVATE})|{_NAME})(?::\d{{1,5}})?", re.IGNORECASE)
_PATH = re.compile(r"(?:\.{1,2}|~)/.")
_TYPED_SCHEME = re.compile(r"(?:https?|file|git\+[a-z]+):", re.IGNORECASE)


def host_of(word: str, *, takes_paths: bool = True) -> str | None:
    """Give the `host` or `host:port` that a word without a scheme is; None for everything else."""
    host = _HOST.fullmatch(word)
    if host is None or kind_of_name(word) is not None or (takes_paths and os.path.lexists(word)):
        return None
    return word.lower()


def as_address(word: str, *, takes_paths: bool = True) -> str:
    """Put the scheme before a word that begins with a host; everything else stays as it is.

    With `takes_paths` a file of this machine stays a path; a server does not look for it.
    """
    found = _HOST.fullmatch(word.partition("/")[0])
    is_host = "/" in word or host_of(word, takes_paths=False)
    if found is None or not is_host or (takes_paths and os.path.lexists(word)):
        return word
    return f"{'http' if found['private'] else 'https'}://{word}"


def sites_and_addresses(
    words: Sequence[str], *, takes_paths: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what is named among stored pages: a host alone, as `status` prints it, is a site."""
    hosts = [host_of(word, takes_paths=takes_paths) for word in words]
    pages = (word for word, host in zip(words, hosts, strict=True) if host is None)
    addresses = (as_address(word, takes_paths=takes_paths) for word in pages)
    return tuple(filter(None, hosts)), tuple(addresses)


def split_words(words: Sequence[str], *, takes_paths: bool = True) -> tuple[tuple[str, ...], str]:
    """Split what was typed into addresses and hosts, at its beginning or end, and a question.

    A host alone, such as `python.org`, counts beside a question in quotation marks only: without
    them it may be what is asked about. Within the same quotation marks as a question only an
    address with its scheme counts, as paths and names may be what is asked about. A path with
    blanks counts where it is there.
    """
    is_one = len(words) == 1
    left = words[0].split() if is_one else list(words)
    is_quoted = any(len(word.split()) > 1 for word in left)

    def names(word: str) -> bool:
        if is_one:
            return _TYPED_SCHEME.match(word) is not None and "://" in word
        return _is_address(word, takes_host=is_quoted, takes_paths=takes_paths)

    first, end = 0, len(left)
    while first < end - 1 and names(left[first]):
        first += 1
    while first < end - 1 and names(left[end - 1]):
        end -= 1
    found = (*left[:first], *left[end:])
    hosts = (host_of(word, takes_paths=takes_paths) for word in found)
    named = (
        word if host else as_address(word, takes_paths=takes_paths)
        for word, host in zip(found, hosts, strict=True)
    )
    return tuple(named), " ".join(left[first:end] if found else words)


def _is_address(word: str, *, takes_host: bool, takes_paths: bool) -> bool:
    if len(word.split()) != 1:
        return takes_paths and os.path.lexists(word)
    if _TYPED_SCHEME.match(word):
        return True
    is_path = takes_paths and (os.path.lexists(word) or _PATH.match(word) is not None)
    is_there = is_path or as_address(word, takes_paths=takes_paths) != word
    return is_there and (takes_host or re.search(r"[/:]", word) is not None)
