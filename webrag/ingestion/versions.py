"""Tells and orders versions and dates as pages and packages state them; it reads no page."""

import email.utils
import hashlib
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

from webrag.argument_checks import check_text, shown_value
from webrag.errors import InputError
from webrag.frozen import FrozenModel
from webrag.ingestion.addresses import FILES, is_file, is_git, parse_git, site_of
from webrag.ingestion.characters import storable

MAX_NAME_CHARS: Final = 200
"""Of a library's name, and of what its editions have in common."""

_MAX_CHARS: Final = 50
_NUMBER: Final = (
    r"\d{1,8}(?:\.\d{1,8}){0,5}(?:\.x)?(?:[-._+]?[A-Za-z]{1,12}[-._+]?\d{0,8}){0,2}(?:\+\d{1,8})?"
)
_VERSION: Final = re.compile(rf"[vV]?({_NUMBER})", re.ASCII)
# In an address a number alone may be a year, a page or an article; behind these it is a version.
_SEGMENT: Final = re.compile(
    rf"(?:release-|release_|version-|rel-|[vVrR])?(\d{{1,8}}\.{_NUMBER}|\d{{1,8}}\.x)"
    r"|[vV](\d{1,4})",
    re.ASCII,
)
_WHOLE: Final = re.compile(r"[0-9]{1,2}")
_BEFORE_WHOLE: Final = frozenset({"docs", "doc", "documentation", "manual", "api", "en"})
_DOCS_HOST: Final = re.compile(r"(?:docs?|documentation|manual|api)\.")
# Below these a version is what a page is about, and not what the page belongs to.
_NO_EDITION: Final = frozenset(
    """blog changelog changes compare download downloads news release releases release-notes tag
    tags whatsnew""".split()  # noqa: SIM905
)
_LABELS: Final = frozenset(
    """beta canary current dev devel development edge head latest main master next nightly snapshot
    stable trunk unstable""".split()  # noqa: SIM905
)
_HOST: Final = re.compile(r"v(\d{1,3}(?:-\d{1,3})?)\.([^.]{1,63}\.[^/]{1,200})")
_REF: Final = re.compile(
    rf"(?:[A-Za-z][A-Za-z._-]{{0,60}}[-_/@])?[vV]?({_NUMBER}|\d{{1,8}}(?:_\d{{1,8}}){{1,5}})"
)
_AT_END: Final = re.compile(rf"[-_][vV]?(\d{{1,8}}\.{_NUMBER})\Z")


class Edition(FrozenModel):
    """The version of a library that a page belongs to, as people write it, without a `v`.

    Attributes:
        library: Host and address up to the version, the repository, or `file:` and the name of the
            package or folder: it stays the same from version to version.
        root: What the pages of one edition have in common, such as `docs.example.com/en/3.2`.
        is_given: Somebody named the version; it holds until another is named.
    """

    version: str
    library: str
    root: str
    is_given: bool = False


class Manifest(FrozenModel):
    """A package by its metadata, and the folder they lie in."""

    name: str
    version: str
    folder: str = ""


def plain_version(text: str) -> str | None:
    """The version a text consists of, without a `v`; None for any other text."""
    found = _VERSION.fullmatch(text.strip()) if len(text) <= 2 * _MAX_CHARS else None
    return found[1][:_MAX_CHARS] if found else None


def checked_version(version: str) -> str:
    """A version that somebody named, as it is stored; InputError where it is none."""
    plain = plain_version(check_text("version", version))
    if plain is None:
        raise InputError(
            f"The version {shown_value(version)} cannot be used; give one that begins with a"
            " number, such as 3.2 or 1.0rc1."
        )
    return plain


def edition_of(
    url: str,
    *,
    marked: str = "",
    manifest: Manifest | None = None,
    given: str = "",
    folder: str = "",
) -> Edition | None:
    """The edition of a page; None where nothing says its version.

    What was given counts first, then the address, what the page's generator `marked` it with, and
    the metadata of the package that a file belongs to. Of a file, the `folder` is the address of
    the one that was named.
    """
    root, library, addressed = _places(url)
    if manifest is not None and is_file(url) and not addressed:
        root, library = manifest.folder, f"{FILES}{manifest.name}"
    elif folder and not addressed:
        root, library = folder, f"{FILES}{_last_name(folder)}"
    own = manifest.version if manifest is not None else ""
    version = plain_version(given) or addressed or plain_version(marked) or plain_version(own)
    if version is None:
        return None
    return Edition(
        version=version, library=_bounded(library), root=_bounded(root), is_given=bool(given)
    )


def _bounded(text: str) -> str:
    """Entries of the index over them have a limit, and addresses hardly one."""
    if len(text) <= MAX_NAME_CHARS:
        return text
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"{text[: MAX_NAME_CHARS - 17]}~{digest}"


def _places(url: str) -> tuple[str, str, str | None]:
    if is_git(url):
        file = parse_git(url)
        found = _REF.fullmatch(file.ref)
        version = found[1].replace("_", ".")[:_MAX_CHARS] if found else None
        return file.site, file.site.rpartition("@")[0], version
    if is_file(url):
        return _folder_places(url)
    if not url.startswith("http"):
        return site_of(url), site_of(url), None
    host = site_of(url)
    path = url.split("://", 1)[1].partition("/")[2].partition("?")[0]
    segments = [each for each in path.split("/") if each]
    for place, segment in enumerate(segments):
        before = segments[place - 1].lower() if place else ""
        if before in _NO_EDITION:
            break
        version = _segment_version(segment, before, host if place == 0 else "")
        if version or (segment.lower() in _LABELS and place < 4):
            library = "/".join([host, *segments[:place]])
            return f"{library}/{segment}", library, version
    numbered = _HOST.fullmatch(host)
    if numbered:
        return host, numbered[2], numbered[1].replace("-", ".")
    return host, host, None


def _segment_version(segment: str, before: str, host: str) -> str | None:
    found = _SEGMENT.fullmatch(segment)
    if found:
        return (found[1] or found[2])[:_MAX_CHARS]
    if _WHOLE.fullmatch(segment) and (before in _BEFORE_WHOLE or _DOCS_HOST.match(host)):
        return segment
    return None


def _folder_places(url: str) -> tuple[str, str, str | None]:
    segments = url.split("/")
    for place, segment in enumerate(segments[:-1]):
        name = unquote(segment)
        found, plain = _AT_END.search(name[:250]), _SEGMENT.fullmatch(name)
        if found and any(map(str.isalpha, name[: found.start()])):
            library = f"{FILES}{name[: found.start()]}"
            return "/".join(segments[: place + 1]), library, found[1][:_MAX_CHARS]
        if plain and place > 1:
            library = f"{FILES}{unquote(segments[place - 1])}"
            return "/".join(segments[: place + 1]), library, (plain[1] or plain[2])[:_MAX_CHARS]
    folder = "/".join(segments[:-1])
    return folder, f"{FILES}{_last_name(folder)}", None


def _last_name(folder: str) -> str:
    return unquote(folder.rstrip("/").rpartition("/")[2])


MANIFESTS: Final = ("pyproject.toml", "package.json", "Cargo.toml", "composer.json", "pubspec.yaml")
"""Names of the files at a package's root that name it and its version."""

MAX_MANIFEST_BYTES: Final = 200_000
"""Of such a file; those of the largest packages have a tenth of it."""

# A dotted key. Reading one of TOML takes the square of its length.
_LONG_KEY: Final = re.compile(
    r"""(?<![\w\\-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){20}"""
)
_YAML_FIELD: Final = re.compile(r"^(name|version):[ \t]*+([^\s#]++)", re.MULTILINE)


def read_manifest(name: str, text: str, folder: str = "") -> Manifest | None:
    """Read a package's metadata, one of `MANIFESTS` in a folder of this address.

    None when they name no version, or cannot be read.
    """
    try:
        fields = _manifest_fields(name, text)
    except (ValueError, RecursionError):
        return None
    title, version = fields.get("name"), fields.get("version")
    if not isinstance(version, str) or plain_version(version) is None:
        return None
    named = title if isinstance(title, str) and title.strip() else _last_name(folder)
    named = storable(named.replace("\0", "")).strip()
    return Manifest(name=named[:MAX_NAME_CHARS], version=version.strip(), folder=folder)


def _manifest_fields(name: str, text: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        import tomllib

        if _LONG_KEY.search(text):
            return {}
        data = tomllib.loads(text)
        match data:
            case {"project": dict(table)} | {"package": dict(table)}:
                return table
            case {"tool": {"poetry": dict(table)}}:
                return table
        return {}
    if name.endswith(".json"):
        data = json.loads(text)
        return data if isinstance(data, dict) else {}
    return {key: value.strip("'\"") for key, value in _YAML_FIELD.findall(text)}


def version_order(version: str) -> tuple[int, Any, tuple[Any, ...], str]:
    """Give a key that sorts versions as of Python packages, others before in natural order."""
    natural = tuple(
        (1, int(part), "") if part.isdigit() else (0, 0, part.casefold())
        for part in re.findall(r"[0-9]{1,50}|[^0-9]+", version)
    )
    parsed = _parsed(version)
    return (0, 0, natural, version) if parsed is None else (1, parsed, natural, version)


def newest_version(versions: Iterable[str]) -> str:
    """The newest of some versions; one before its release only where there is no released one."""
    every = sorted(versions, key=version_order)
    released = [each for each in every if (v := _parsed(each)) is None or not v.is_prerelease]
    return (released or every)[-1]


def is_version(stored: str, asked: str) -> bool:
    """Tell whether a stored version is the one asked for, or a release of it: 1.5.2 is a 1.5."""
    wanted = (plain_version(asked) or asked).casefold().removesuffix(".x")
    if stored.casefold() in (wanted, asked.casefold()):
        return True
    one, other = _parsed(stored), _parsed(wanted)
    if one is None or other is None:
        return False
    is_exact = other.is_prerelease or other.is_postrelease or other.local is not None
    return one == other or (not is_exact and one.release[: len(other.release)] == other.release)


def _parsed(version: str) -> Version | None:
    try:
        return Version(version.removesuffix(".x"))
    except InvalidVersion:
        return None


_DATE = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?\Z")
_COMPACT_DATE = re.compile(r"(?:19|20)\d{6}\Z")
# A date may be ahead of this machine's by its time zone, and clocks differ.
_AHEAD = timedelta(days=2)
_FIRST_DAY = datetime(1970, 1, 2, tzinfo=UTC)


def parse_date(text: str) -> datetime | None:
    """Return a date or time as written in metadata, in UTC; None when it is none or implausible."""
    value = text.strip()
    partial = _DATE.match(value)
    try:
        if partial:
            year, month, day = (int(part) if part else 1 for part in partial.groups())
            moment = datetime(year, month, day, tzinfo=UTC)
        elif _COMPACT_DATE.match(value) or not value.isdecimal():
            moment = datetime.fromisoformat(value)
        else:
            return None
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
    try:
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
    # The first day of Unix time stands for no date, in metadata and in examples.
    return moment if _FIRST_DAY < moment <= datetime.now(UTC) + _AHEAD else None
