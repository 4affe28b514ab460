import os

import pytest

from webrag.settings.variables import forces_terminal, lent


def test_lent_variables_are_gone_after_the_block_and_those_of_the_user_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OWN", "mine")
    monkeypatch.delenv("LENT", raising=False)

    with lent({"OWN": "theirs", "LENT": "x"}):
        assert (os.environ["OWN"], os.environ["LENT"]) == ("mine", "x")

    assert (os.environ["OWN"], os.environ.get("LENT")) == ("mine", None)


def test_colours_that_are_forced_make_a_terminal_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert not forces_terminal()
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert forces_terminal()
