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
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource
from typing_extensions import override

from webrag.errors import ConfigurationError
from webrag.settings.fields import MASK, mask_url
from webrag.settings.removed import REMOVED

_LOG = logging.getLogger(__name__)
_PREFIX = "WEBRAG_"
_FILE_VARIABLE = "WEBRAG_ENV_FILE"
ORIGINS = "origins"


class Found(NamedTuple):
    """A variable that is set.

    Attributes:
        name: Of the variable.
        value: As written.
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
    """The process environment over one settings file; empty values count as not set.

    Raises:
        ConfigurationError: A settings file that was named cannot be read.
    """

    def __init__(self, env_file: Path | str | None = None) -> None:
        self.file = _settings_file(env_file)
        self._file_values = _read(self.file) if self.file else {}

    def find(self, field: str, info: FieldInfo) -> Found | None:
        """The value that wins for one setting; None when it is not set."""
        for name in variable_names(field, info):
            for found in self._lookup(name):
                return found
        return None

    def _lookup(self, name: str) -> Iterator[Found]:
        for values, file in ((os.environ, None), (self._file_values, self.file)):
            value = values.get(name)
            if value is not None and value.strip():
                yield Found(name, value.strip(), file)

    def removed(self) -> Iterator[tuple[str, str]]:
        """Variables that are set and were settings once, each with what does the same now."""
        for name, instead in REMOVED.items():
            for variable in _spellings(name):
                if any(self._lookup(variable)):
                    yield variable, instead

    def misspelt(self, known: set[str]) -> list[tuple[str, str]]:
        """Variables that no setting reads, each with the name it resembles.

        Those with the prefix, and all of the settings file, whose others may belong to other
        programs and have to resemble a name more.
        """
        prefixed = {name for name in os.environ if name.startswith(_PREFIX)}
        pairs: list[tuple[str, str]] = []
        for name in sorted({*prefixed, *self._file_values} - known):
            match = nearest(name, known, alike=0.6 if name.startswith(_PREFIX) else 0.85)
            if match is not None:
                pairs.append((name, match))
        return pairs


def nearest(name: str, known: Iterable[str], *, alike: float = 0.6) -> str | None:
    """The known name that one resembles most, None when it resembles none."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=alike)
    return close[0] if close else None


class VariablesSource(PydanticBaseSettingsSource):
    """Feeds `Settings` from variables, and records in `origins` where each value came from."""

    def __init__(self, settings_cls: type[BaseSettings], variables: Variables) -> None:
        super().__init__(settings_cls)
        self._variables = variables

    @override
    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        found = self._variables.find(field_name, field)
        return (found.value if found else None), field_name, False

    @override
    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for field, info in self.settings_cls.model_fields.items():
            found = self._variables.find(field, info) if field != ORIGINS else None
            if found and not self._is_foreign(info, found):
                values[field] = found.value
                origins[field] = found.origin
        self._warn_about_unknown()
        return {**values, ORIGINS: origins}

    def _is_foreign(self, info: FieldInfo, found: Found) -> bool:
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

    def _warn_about_unknown(self) -> None:
        known = {_FILE_VARIABLE}
        for field, info in self.settings_cls.model_fields.items():
            known.update(variable_names(field, info))
        for name, instead in self._variables.removed():
            _LOG.warning("%s is no longer a variable and is ignored: %s.", name, instead)
            known.add(name)
        for name, match in self._variables.misspelt(known):
            _LOG.warning("%s is not a setting and is ignored; did you mean %s?", name, match)


def user_folder(kind: Literal["data", "config"]) -> Path:
    """The user's folder for WebRAG, by the platform's convention; it may not exist.

    Raises:
        ConfigurationError: The user has no home folder.
    """
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


def has_display(system: str = sys.platform) -> bool:
    """Whether windows can be opened, as far as the environment says."""
    return system != "linux" or any(os.environ.get(name) for name in _DISPLAYS)


@contextmanager
def lent(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables while the block runs, one block at a time; what the user has set stays.

    Args:
        variables: What a package can be told in no other way.
    """
    with _lending:
        added = {key: value for key, value in variables.items() if key not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:
            for key in added:
                os.environ.pop(key, None)
