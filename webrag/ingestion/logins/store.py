"""Keeps logins on this machine, encrypted, and lets the user sign in to a site in a browser."""

import asyncio
import contextlib
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from cryptography.fernet import Fernet, InvalidToken
from pydantic import TypeAdapter

from webrag.concurrency import ended
from webrag.errors import ConfigurationError, StorageError
from webrag.ingestion.browser import start_driver
from webrag.ingestion.logins.session import Cookie, Login, cookies_for
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


if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

_POLL_S: Final = 0.5


async def sign_in(
    host: str,
    *,
    executable: Path | None,
    endpoint: str | None,
    finished: Callable[[], bool],
) -> tuple[Cookie, ...]:
    """Open a site and give its cookies once the user is `finished` or has closed the window.

    The window is of a browser whose profile is gone afterwards, or a tab in a running Chromium
    that takes orders at an endpoint. ConfigurationError where it cannot be started or reached.
    """
    from playwright.async_api import Error

    async with contextlib.AsyncExitStack() as stack:
        playwright = await start_driver(f"https://{host}/")
        stack.push_async_callback(playwright.stop)
        try:
            context = await _context(playwright, executable, endpoint)
        except Error as error:
            reason = str(error).strip().splitlines()[0][:200]
            raise ConfigurationError(
                f"The browser to sign in with cannot be used: {reason}.",
                hint="`webrag login HOST --cookies FILE` needs no window.",
            ) from error
        try:
            return await _cookies_of(context, host, finished)
        finally:
            if endpoint is None and context.browser is not None:
                with contextlib.suppress(Error):
                    await context.browser.close()


async def _context(
    playwright: "Playwright", executable: Path | None, endpoint: str | None
) -> "BrowserContext":
    if endpoint is not None:
        running = await playwright.chromium.connect_over_cdp(endpoint)
        return running.contexts[0] if running.contexts else await running.new_context()
    browser = await playwright.chromium.launch(executable_path=executable, headless=False)
    return await browser.new_context(no_viewport=True)


async def _cookies_of(
    context: "BrowserContext", host: str, finished: Callable[[], bool]
) -> tuple[Cookie, ...]:
    from playwright.async_api import Error

    tab = await context.new_page()

    async def opened() -> None:
        with contextlib.suppress(Error):  # shown in the window, where the user sees it
            await tab.goto(f"https://{host}/", wait_until="commit")

    # A site that is slow to load can still be signed in to.
    opening = asyncio.create_task(opened())
    found: Sequence[Any] = []
    try:
        while not (finished() or tab.is_closed()):
            found = await context.cookies()
            await asyncio.sleep(_POLL_S)
        with contextlib.suppress(Error):  # the window may be gone
            found = await context.cookies()
    except Error:
        if not found:
            raise
    finally:
        await ended([opening])
        with contextlib.suppress(Error):
            await tab.close()
    return cookies_for(host, (_cookie(each) for each in found))


def _cookie(values: dict[str, Any]) -> Cookie:
    expires = None if values["expires"] < 0 else float(values["expires"])
    return Cookie(values["name"], values["value"], values["domain"], values["path"], expires)
