"""Changes of the whole process that last while a model is loaded, and are undone afterwards."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

__all__ = ["SharedChange", "quiet_fastembed", "quiet_loggers", "quiet_reading"]

_TALKATIVE = ("huggingface_hub", "sentence_transformers", "transformers")


class SharedChange:
    """A change that the first thread to enter makes and the last one to leave undoes.

    Without counting, a thread that enters second would take what the first has changed for the
    former state, and bring that back for good.

    Args:
        change: Makes the change on entering and undoes it on leaving.
    """

    def __init__(self, change: Callable[[], AbstractContextManager[None]]) -> None:
        self._change = change
        self._lock = threading.Lock()
        self._undo = ExitStack()
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the change made until the block ends."""
        with self._lock:
            if not self._inside:
                self._undo.enter_context(self._change())
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._undo.close()


@contextmanager
def _loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            if each.level == logging.ERROR:  # else its package has set it, on its first import
                each.setLevel(level)


@contextmanager
def _reading() -> Iterator[None]:
    from huggingface_hub import constants
    from huggingface_hub.utils.tqdm import progress_bar_states
    from transformers.utils import logging as transformers_logging

    # Where the variable is set, it decides, and a contradiction is a warning.
    is_decided = constants.HF_HUB_DISABLE_PROGRESS_BARS is not None
    if is_decided or not transformers_logging.is_progress_bar_enabled():
        yield
        return
    downloads = dict(progress_bar_states)

    def restore_downloads() -> None:  # transformers turns the bars of downloading too
        progress_bar_states.clear()
        progress_bar_states.update(downloads)

    transformers_logging.disable_progress_bar()
    restore_downloads()
    try:
        yield
    finally:
        transformers_logging.enable_progress_bar()
        restore_downloads()


@contextmanager
def _fastembed() -> Iterator[None]:
    from loguru import logger

    # loguru has no question for this; the first name that fits decides.
    rules: list[tuple[str, bool]] = logger._core.activation_list  # type: ignore[attr-defined]
    if not next((is_on for name, is_on in rules if "fastembed.".startswith(name)), True):
        yield
        return
    logger.disable("fastembed")
    try:
        yield
    finally:
        logger.enable("fastembed")


quiet_loggers = SharedChange(_loggers)
"""Keeps the packages' notes on retries and old options back: our error says how it ended."""

quiet_reading = SharedChange(_reading)
"""Shows no progress of reading weights that are there, which takes a second."""

quiet_fastembed = SharedChange(_fastembed)
"""Keeps fastembed's notes back; they go to standard error whatever its caller's logging says."""
