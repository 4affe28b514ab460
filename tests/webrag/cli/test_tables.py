import pytest

from webrag.cli.output import print_columns


def test_rows_are_printed_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns([("questions", "80"), ("recall @5", "0.700")])

    assert capsys.readouterr().out == "questions  80\nrecall @5  0.700\n"
