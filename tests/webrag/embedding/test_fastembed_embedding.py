"""Folders are made known to the real fastembed; nothing is loaded, so their files may be empty."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from fastembed import TextEmbedding
from fastembed.text.custom_text_embedding import CustomTextEmbedding

from webrag.embedding.local import register_folder

FILES = ("model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json")
THREADS = 8


@pytest.fixture(autouse=True)
def known_models() -> Iterator[None]:
    """Forget the models that a test makes known to fastembed."""
    known = list(CustomTextEmbedding.SUPPORTED_MODELS)
    yield
    CustomTextEmbedding.SUPPORTED_MODELS[:] = known


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Let threads take turns so often that what is not locked is interrupted."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def write_folder(folder: Path, *, without: str = "") -> Path:
    folder.mkdir(parents=True)
    for name in FILES:
        if name != without:
            (folder / name).write_text("{}")
    return folder


def known(folder: Path) -> int:
    return sum(each["model"] == str(folder) for each in TextEmbedding.list_supported_models())


def test_folder_is_made_known_once(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine")

    assert register_folder(folder) == register_folder(folder) == str(folder)
    assert known(folder) == 1


@pytest.mark.usefixtures("often_switched")
def test_threads_make_the_same_folder_known_once(tmp_path: Path) -> None:
    folders = [write_folder(tmp_path / str(n)) for n in range(20)]
    start = Barrier(THREADS)

    def register(_: int) -> None:
        for folder in folders:
            start.wait(10)
            register_folder(folder)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(register, range(THREADS)))

    assert [known(folder) for folder in folders] == [1] * len(folders)


def test_folders_that_fastembed_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    register_folder(write_folder(tmp_path / "a" / "mine"))
    other = write_folder(tmp_path / "A" / "Mine")

    with pytest.raises(ValueError, match="fastembed cannot tell it from"):
        register_folder(other)


@pytest.mark.parametrize("name", FILES[1:])
def test_missing_file_of_a_folder_is_named(name: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine", without=name)

    with pytest.raises(ValueError, match=f"the folder lacks {name}$"):
        register_folder(folder)
    assert known(folder) == 0


def test_folder_without_a_network_is_told_apart(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "mine", without="model.onnx")

    with pytest.raises(ValueError, match="holds no ONNX network"):
        register_folder(folder)


_AT_FIRST_IMPORT = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxruntime":
            print(os.environ.get("ORT_DISABLE_TELEMETRY"))
            sys.exit()

sys.meta_path.insert(0, Watch())
import webrag.embedding.local
"""


@pytest.mark.parametrize(("given", "seen"), [(None, "1"), ("0", "0")])
def test_onnx_runtime_is_told_to_report_to_nobody_before_it_is_imported_unless_the_user_says_so(
    given: str | None, seen: str
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    if given is not None:
        environment["ORT_DISABLE_TELEMETRY"] = given

    ran = subprocess.run(
        [sys.executable, "-c", _AT_FIRST_IMPORT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.strip() == seen
