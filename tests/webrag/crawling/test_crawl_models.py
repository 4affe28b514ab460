import pytest

from webrag.crawling.report import CrawlOptions
from webrag.errors import InputError


def test_options_give_one_key_per_set_of_pages() -> None:
    start = "https://docs.test/"

    assert CrawlOptions(max_pages=5).key(start) == CrawlOptions(max_pages=9).key(start)
    assert CrawlOptions(depth=1).key(start) != CrawlOptions().key(start)


@pytest.mark.parametrize("limit", ["max_pages", "depth"])
def test_true_is_no_number_of_pages(limit: str) -> None:
    with pytest.raises(InputError, match=f"{limit} is True; it must be a whole number"):
        CrawlOptions.model_validate({limit: True})
