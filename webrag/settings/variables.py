"""Finds the value of each setting in the environment and the settings file; validates nothing else.

Nothing else reads the environment.
"""

import difflib
import logging
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from webrag.errors import ConfigurationError
from webrag.settings.fields import MASK, mask_url

_LOG = logging.getLogger(__name__)
_PREFIX = "WEBRAG_"
_FILE_VARIABLE = "WEBRAG_ENV_FILE"


class Found(NamedTuple):
    """A variable that is set.

    Attributes:
        file: Settings file that holds it; None for the process environment.
    """

    name: str
    value: str
    file: Path | None

    @property
    def origin(self) -> str:
        """Where the value came from, for people."""
        return f"{self.name} in {self.file}" if self.file else f"{self.name} in the environment"


def extra_of(info: FieldInfo) -> dict[str, Any]:
    """What `setting` recorded about a field."""
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
    """Whether other software has set a variable to what does not fit, with a warning."""
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


def desktop_folder() -> Path:
    """The folder below which desktop programs of this user keep their settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return user_folder("config").parent


def is_secret(info: FieldInfo) -> bool:
    """Whether the value must never be shown."""
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
            f"The settings file {str(path)!r} cannot be read: {error}."
        ) from error


_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_lending = threading.Lock()


def forces_terminal() -> bool:
    """Whether `rich` would take a pipe for a terminal."""
    return any(name in os.environ for name in _FORCED)


def has_display() -> bool:
    """Whether windows can be opened, as far as the environment says."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS)


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
