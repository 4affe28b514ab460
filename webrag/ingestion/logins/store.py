"""Keeps logins on this machine, encrypted."""

import contextlib
import json
import logging
import os
import re
import secrets
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final, Literal, NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from pydantic import TypeAdapter

from webrag.errors import StorageError
from webrag.ingestion.logins.session import Login
from webrag.redaction import remember_secrets

_log = logging.getLogger(__name__)

KeyPlace = Literal["keyring", "file"]

_SERVICE: Final = "webrag"
_ENTRY: Final = "logins"
_ENDING: Final = ".login"
_LOGIN: Final = TypeAdapter(Login)


class _Key(NamedTuple):
    place: KeyPlace
    fernet: Fernet


class LoginStore:
    """One encrypted file for each host, readable by its owner alone, in a folder made at the first.

    The key is in the keyring of the user's system where the package `keyring` finds one, else in a
    file beside. Its calls block: they read files and may ask the user to open the keyring.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key_file = folder / "key"
        self._entry = f"{_ENTRY} {folder}"

    def hosts(self) -> list[str]:
        """Hosts that have a login, in alphabetical order."""
        if not self._folder.is_dir():
            return []
        names = (each.name.removesuffix(_ENDING) for each in self._folder.glob(f"*{_ENDING}"))
        return sorted(name.replace("+", ":") for name in names)

    def load(self) -> list[Login]:
        """Every login that can be read; of the others the log says what to do."""
        hosts = self.hosts()
        if not hosts:
            return []
        try:
            key = self._key()
        except StorageError as error:
            _log.warning("No login is used: %s", error)
            return []
        # Without its key, a login is as one that another key encrypted.
        fernet = Fernet(Fernet.generate_key()) if key is None else key.fernet
        found = [self._read(host, fernet) for host in hosts]
        logins = [login for login in found if login is not None]
        remember_secrets(*(secret for login in logins for secret in login.secrets))
        return logins

    def save(self, login: Login) -> KeyPlace:
        """Keep a login in place of the host's older one, and say where its key is."""
        values = _LOGIN.dump_json(login, include={"cookies", "saved_at"})
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.chmod(0o700)
            key = self._key() or self._new_key()
            _write(self._file(login.host), key.fernet.encrypt(values))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(f"The login cannot be kept in {self._folder}: {reason}.") from error
        return key.place

    def forget(self, host: str) -> bool:
        """Delete a login; False when there was none. The last one takes the key with it."""
        file = self._file(host)
        had_one = file.is_file()
        file.unlink(missing_ok=True)
        if not self.hosts():
            self._key_file.unlink(missing_ok=True)
            if (keyring := _keyring()) is not None:
                # There may be no keyring, or no such entry.
                with contextlib.suppress(keyring.errors.KeyringError):
                    keyring.delete_password(_SERVICE, self._entry)
        return had_one

    def _file(self, host: str) -> Path:
        assert re.fullmatch(r"[\w.\[\]:-]+", host)
        return self._folder / f"{host.replace(':', '+')}{_ENDING}"

    def _key(self) -> _Key | None:
        if self._key_file.is_file():
            return _Key("file", Fernet(self._key_file.read_bytes()))
        kept = _of_keyring(self._entry)
        return None if kept is None else _Key("keyring", Fernet(kept.encode()))

    def _new_key(self) -> _Key:
        key = Fernet.generate_key()
        if _put_in_keyring(self._entry, key.decode()):
            return _Key("keyring", Fernet(key))
        _write(self._key_file, key)
        return _Key("file", Fernet(key))

    def _read(self, host: str, fernet: Fernet) -> Login | None:
        try:
            values = json.loads(fernet.decrypt(self._file(host).read_bytes()))
            return _LOGIN.validate_python({**values, "host": host})
        except (InvalidToken, OSError, ValueError, TypeError) as error:
            _log.warning(
                "The login for %s cannot be read (%s) and is not used; renew it with"
                " `webrag login %s`.",
                *(host, type(error).__name__, host),
            )
            return None


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with os.fdopen(os.open(partial, flags, 0o600), "wb") as file:
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _keyring() -> ModuleType | None:
    return import_module("keyring") if find_spec("keyring") else None


def _of_keyring(entry: str) -> str | None:
    keyring = _keyring()
    if keyring is None:
        return None
    try:
        kept: str | None = keyring.get_password(_SERVICE, entry)
    except keyring.errors.NoKeyringError:
        return None
    except keyring.errors.KeyringError as error:
        said = "The keyring with the key of the logins cannot be opened."
        raise StorageError(said, hint="Unlock it and run the command again.") from error
    return kept


def _put_in_keyring(entry: str, key: str) -> bool:
    keyring = _keyring()
    if keyring is None:
        return False
    try:
        keyring.set_password(_SERVICE, entry, key)
        return bool(keyring.get_password(_SERVICE, entry) == key)
    except keyring.errors.KeyringError as error:
        _log.info("No keyring keeps the key of the logins (%s).", type(error).__name__)
        return False
