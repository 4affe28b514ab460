"""The browser of the tests: the one that is installed, else one that is brought."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path

from webrag.wiring.page_sources import find_browser

_PLAYWRIGHT = (sys.executable, "-m", "playwright")
_ITS_CHROMIUM = """from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)"""
_REASON = re.compile(r"^(?:E|Error): .+", re.M)

_UNSEEN = """#!/bin/sh
for word; do
  shift
  case $word in --disable-features=*) word=$word,WebUIOmniboxPopup,WebUIOmniboxAimPopup ;; esac
  set -- "$@" "$word"
done
exec '{}' "$@"
"""


class NoBrowserError(Exception):
    """There is no browser, and none could be brought."""


def find_or_bring_chromium(say: Callable[[str], object]) -> Path:
    """Find a browser that starts; where there is none, bring it, once for all test processes.

    Playwright downloads its own, which needs no rights; the libraries it lacks, or the browser
    where nothing can be downloaded, come from the system's packages.

    Args:
        say: Told each command before it runs.

    Raises:
        NoBrowserError: Says what was tried and what to install.
    """
    with Path(tempfile.gettempdir(), f"webrag-tests-{os.getuid()}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        found = _installed()
        failures = []
        commands = iter(()) if found else _ways()
        for command in commands:
            say(f"The tests need Chromium, which is not installed. Running: {' '.join(command)}")
            failures += _failure(command)
            found = _installed()
            if found:
                break
    if found is None:
        raise NoBrowserError(
            "Chromium is missing and could not be brought: install the system's package"
            f" `chromium`, or Chrome. Tried: {'; '.join(failures)}"
        )
    return found


def without_suggestions(program: Path, folder: Path) -> Path:
    """Write a program that starts the browser as it is asked to, but for its address bar.

    Nobody sees the bar, and the two pages of what it would suggest take each window more processor
    time than the page of a test: 0.6 of 1.0 seconds.
    """
    script = folder / "chromium"
    script.write_text(_UNSEEN.format(program))
    script.chmod(0o755)
    return script


def _installed() -> Path | None:
    own = _playwrights_own()
    if own is None:
        return None
    return next((each for each in (find_browser(None), own) if each and _starts(each)), None)


def _playwrights_own() -> Path | None:
    """Say where playwright keeps its browser; None when its driver lacks libraries."""
    command = [sys.executable, "-c", _ITS_CHROMIUM]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if asked.returncode else Path(asked.stdout.strip())


def _starts(program: Path) -> bool:
    """Tell a browser from one whose libraries are missing and from a packager's empty script."""
    if not program.is_file():
        return False
    return not subprocess.run([program, "--version"], capture_output=True, check=False).returncode


def _ways() -> Iterator[list[str]]:
    yield [*_PLAYWRIGHT, "install", "--no-shell", "chromium"]
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") and (not as_root or shutil.which("sudo")):
        yield [*as_root, "apt-get", "update"]
        install = [*as_root, "apt-get", "install", "-y", "--no-install-recommends"]
        # Playwright's driver needs it; nothing else may have brought it.
        yield [*install, "libatomic1"]
        if (own := _playwrights_own()) and own.is_file():
            yield [*as_root, *_PLAYWRIGHT, "install-deps", "chromium"]
        yield [*install, "chromium"]


def _failure(command: list[str]) -> list[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if not done.returncode:
        return []
    said = done.stdout + done.stderr
    lines = _REASON.findall(said) or said.strip().splitlines()[-1:] or [f"code {done.returncode}"]
    return [f"`{' '.join(command)}`: {lines[-1]}"]
