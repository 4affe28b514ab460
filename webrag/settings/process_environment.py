"""The process environment beside the settings: what other packages are told by it."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
