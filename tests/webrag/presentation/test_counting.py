import pytest

from webrag.presentation.reports import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1200, "1,200 pages")]
)
def test_only_one_is_singular(number: int, said: str) -> None:
    assert counted(number, "page") == said
