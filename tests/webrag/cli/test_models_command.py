"""`webrag setup --models`: what can be chosen, and what is on disk."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from webrag.settings.model import COMBINATIONS

Run = Callable[..., Result]


def place_weights(data_dir: Path) -> None:
    """Leave a network where the Hub's package would have downloaded it."""
    snapshot = data_dir / "models/models--Qdrant--all-MiniLM-L6-v2-onnx/snapshots/0123456789abcdef"
    snapshot.mkdir(parents=True)
    (snapshot / "model.onnx").write_bytes(b"weights")


def test_combinations_are_listed_with_size_and_licence(webrag: Run, tmp_path: Path) -> None:
    result = webrag("setup", "--models", "--data-dir", str(tmp_path))

    assert result.exit_code == 0
    listed = [line for line in result.stdout.splitlines() if line and line[0] != " "]
    assert listed[:-1] == list(COMBINATIONS)
    assert "all-MiniLM-L6-v2: 90 MB, apache-2.0, not on disk" in result.stdout


def test_what_is_on_disk_is_told(webrag: Run, tmp_path: Path) -> None:
    place_weights(tmp_path)

    result = webrag("setup", "--models", "--json", "--data-dir", str(tmp_path))

    found = json.loads(result.stdout)
    on_disk = {
        each["model"]: each["on_disk"] for entry in found.values() for each in entry["downloads"]
    }
    assert on_disk == {
        "sentence-transformers/all-MiniLM-L6-v2": True,
        "BAAI/bge-small-en-v1.5": False,
        "Xenova/ms-marco-MiniLM-L-6-v2": False,
    }


def test_every_quality_says_whether_it_was_measured(webrag: Run, tmp_path: Path) -> None:
    result = webrag("setup", "--models", "--data-dir", str(tmp_path))

    qualities = [line for line in result.stdout.splitlines() if line.startswith("  quality")]
    assert len(qualities) == len(COMBINATIONS)
    said = [each.quality or "not measured" for each in COMBINATIONS.values()]
    assert [line.split(maxsplit=1)[1] for line in qualities] == said
    assert "not measured" in said


def test_combination_in_use_is_marked(
    webrag: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBRAG_MODELS", "small")

    result = webrag("setup", "--models", "--data-dir", str(tmp_path))

    assert "small (in use)" in result.stdout.splitlines()


def test_name_that_does_not_exist_names_those_that_do(webrag: Run, tmp_path: Path) -> None:
    result = webrag("setup", "--models", "smal", "--data-dir", str(tmp_path))

    assert result.exit_code == 2
    assert "there are bundled, small, medium" in result.stderr


def test_bundled_models_need_no_download(webrag: Run, tmp_path: Path) -> None:
    result = webrag("setup", "--models", "bundled", "--data-dir", str(tmp_path))

    assert (result.exit_code, list(tmp_path.iterdir())) == (0, [])
    assert "download   none" in result.stdout


def test_download_without_a_network_says_what_it_would_have_taken(
    webrag: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # else a failed download is tried for 12 s

    result = webrag("setup", "--models", "small", "--data-dir", str(tmp_path))

    assert result.exit_code == 2
    assert "all-MiniLM-L6-v2 once: about 90 MB, licence apache-2.0" in result.stderr
    assert "cannot be loaded by fastembed" in result.stderr
