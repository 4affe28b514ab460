from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from webrag.demo import serve_static_site


def test_files_of_the_folder_are_served_while_the_block_runs(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("hello")

    with serve_static_site(tmp_path) as base_url, urlopen(base_url + "a.html") as answer:
        assert answer.read() == b"hello"


def test_file_that_does_not_exist_answers_404(tmp_path: Path) -> None:
    with serve_static_site(tmp_path) as base_url, pytest.raises(HTTPError) as raised:
        urlopen(base_url + "none.html")

    raised.value.close()
    assert raised.value.code == 404


def test_server_is_gone_after_the_block(tmp_path: Path) -> None:
    with serve_static_site(tmp_path) as base_url:
        pass

    with pytest.raises(URLError):
        urlopen(base_url, timeout=2)


def test_only_loopback_is_bound(tmp_path: Path) -> None:
    with serve_static_site(tmp_path) as base_url:
        assert base_url.startswith("http://127.0.0.1:")
