"""The process environment beside the settings: what other packages are told by it."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

__all__ = ["forces_terminal", "lent"]

_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE")
_lending = threading.Lock()


def forces_terminal() -> bool:
    """Whether `rich` would take a pipe for a terminal."""
    return any(name in os.environ for name in _FORCED)


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
