from webrag.crawling.report import CrawlOptions


def test_options_give_one_key_per_set_of_pages() -> None:
    start = "https://docs.test/"

    assert CrawlOptions(max_pages=5).key(start) == CrawlOptions(max_pages=9).key(start)
    assert CrawlOptions(depth=1).key(start) != CrawlOptions().key(start)
