import pytest

from webrag.cli.output import print_figures


def test_figures_are_printed_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_figures([("questions", "80"), ("recall @5", "0.700")], [("type", "n"), ("api", "9")])

    assert capsys.readouterr().out == "questions  80\nrecall @5  0.700\n\ntype  n\napi   9\n"
