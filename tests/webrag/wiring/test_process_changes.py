import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest
from loguru import logger

from webrag.wiring.local_embeddings import quiet_fastembed, quiet_loggers


@pytest.fixture(autouse=True)
def former_state() -> Iterator[None]:
    hub = logging.getLogger("transformers")
    level = hub.level
    yield
    hub.setLevel(level)
    logger.enable("fastembed")


def entered(change: AbstractContextManager[None]) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(change)
    return stack


def is_fastembed_heard() -> bool:
    """Whether what a module of fastembed logs reaches a listener."""
    heard: list[str] = []
    listener = logger.add(heard.append, format="{message}")
    module = {"__name__": "fastembed.common", "logger": logger}
    exec("logger.warning('a note')", module)  # loguru goes by the module that logs
    logger.remove(listener)
    return bool(heard)


def test_loggers_get_their_levels_back_after_loads_that_overlap() -> None:
    hub = logging.getLogger("transformers")
    hub.setLevel(logging.INFO)

    first = entered(quiet_loggers())
    second = entered(quiet_loggers())
    first.close()
    during = hub.level
    second.close()

    assert (during, hub.level) == (logging.ERROR, logging.INFO)


def test_level_that_a_package_sets_on_its_import_is_kept() -> None:
    hub = logging.getLogger("transformers")
    hub.setLevel(logging.NOTSET)

    with quiet_loggers():
        hub.setLevel(logging.WARNING)

    assert hub.level == logging.WARNING


def test_failed_load_leaves_the_levels_as_they_were() -> None:
    hub = logging.getLogger("transformers")
    hub.setLevel(logging.INFO)

    with pytest.raises(OSError, match="broken"), quiet_loggers():
        raise OSError("broken")

    assert hub.level == logging.INFO


def test_fastembed_is_silent_until_the_last_load_ends() -> None:
    first = entered(quiet_fastembed())
    second = entered(quiet_fastembed())
    first.close()
    during = is_fastembed_heard()
    second.close()

    assert (during, is_fastembed_heard()) == (False, True)


def test_fastembed_stays_silent_where_the_host_has_silenced_it() -> None:
    logger.disable("fastembed")

    with quiet_fastembed():
        pass

    assert not is_fastembed_heard()
