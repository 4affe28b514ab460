import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from loguru import logger

from webrag.wiring.local_embeddings import EMBEDDING, loading, quiet_loggers, silence_fastembed


@pytest.fixture(autouse=True)
def former_state() -> Iterator[None]:
    hub = logging.getLogger("transformers")
    level = hub.level
    yield
    hub.setLevel(level)
    logger.enable("fastembed")


def is_fastembed_heard() -> bool:
    """Whether what a module of fastembed logs reaches a listener."""
    heard: list[str] = []
    listener = logger.add(heard.append, format="{message}")
    module = {"__name__": "fastembed.common", "logger": logger}
    exec("logger.warning('a note')", module)  # loguru goes by the module that logs
    logger.remove(listener)
    return bool(heard)


def test_second_load_waits_until_the_first_has_given_everything_back(tmp_path: Path) -> None:
    hub = logging.getLogger("transformers")
    hub.setLevel(logging.INFO)
    inside, may_end, during = Event(), Event(), list[int]()

    def first() -> None:
        with loading(EMBEDDING, "a", tmp_path, extra="fastembed"):
            inside.set()
            may_end.wait(10)

    def second() -> None:
        with loading(EMBEDDING, "b", tmp_path, extra="fastembed"):
            during.append(hub.level)

    with ThreadPoolExecutor(2) as threads:
        work = [threads.submit(first)]
        assert inside.wait(10)
        work.append(threads.submit(second))
        assert not work[1].done()
        assert during == []
        may_end.set()
        for each in work:
            each.result(10)

    assert (during, hub.level) == ([logging.ERROR], logging.INFO)


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


def test_fastembed_is_silent_from_its_first_model_on() -> None:
    before = is_fastembed_heard()

    silence_fastembed()

    assert (before, is_fastembed_heard()) == (True, False)
