import asyncio

import pytest

from tests.pattern_attacks import stopped_after
from webrag.ingestion.http.answers import RobotsAnswer
from webrag.ingestion.http.fetcher import RobotsCache

AGENT = "WebRAG/0.1 (+https://example.com)"


def cache_of(*answers: RobotsAnswer) -> tuple[RobotsCache, list[str]]:
    asked: list[str] = []
    remaining = list(answers)

    async def fetch(url: str) -> RobotsAnswer:
        asked.append(url)
        await asyncio.sleep(0)
        return remaining.pop(0)

    return RobotsCache(fetch, AGENT), asked


async def test_rules_for_our_name_win_over_the_general_ones() -> None:
    text = "User-agent: *\nDisallow: /\n\nUser-agent: webrag\nDisallow: /x\nCrawl-delay: 3\n"
    cache, _ = cache_of(RobotsAnswer(text=text))

    rules = await cache.rules("https://a.test")

    assert rules.allows("https://a.test/y")
    assert not rules.allows("https://a.test/x/1")
    assert rules.crawl_delay_s == 3.0


async def test_empty_file_allows_everything() -> None:
    cache, _ = cache_of(RobotsAnswer())

    assert (await cache.rules("https://a.test")).allows("https://a.test/any")


async def test_unknown_rules_allow_nothing() -> None:
    cache, _ = cache_of(RobotsAnswer(failure="no answer"))

    rules = await cache.rules("https://a.test")

    assert rules.failure == "no answer"
    assert not rules.allows("https://a.test/any")


async def test_simultaneous_pages_share_one_request() -> None:
    cache, asked = cache_of(RobotsAnswer())

    await asyncio.gather(*(cache.rules("https://a.test") for _ in range(5)))

    assert asked == ["https://a.test/robots.txt"]


async def test_file_full_of_junk_is_no_error() -> None:
    cache, _ = cache_of(RobotsAnswer(text="\x00<html>\nUser-agent\n: :\nCrawl-delay: soon\n"))

    assert (await cache.rules("https://a.test")).allows("https://a.test/")


@pytest.mark.parametrize(
    "rule",
    ["/" + "a*" * 10 + "b$", "/" + "*a" * 10 + "$", "/" + "a*" * 2_000 + "b$", "/" + "*" * 9_000],
)
@pytest.mark.parametrize("path", ["a" * 2_000, "ab" * 1_000, "a" * 30 + "c"])
async def test_wildcards_take_no_more_time_than_their_number_explains(rule: str, path: str) -> None:
    cache, _ = cache_of(RobotsAnswer(text=f"User-agent: *\nDisallow: {rule}\n"))

    with stopped_after(3):
        (await cache.rules("https://a.test")).allows(f"https://a.test/{path}")


async def test_a_large_file_is_read_beside_the_event_loop() -> None:
    rules = "Disallow: /*a*b\n" * 9_000 + "Disallow: /a/b\n" * 20_000
    cache, _ = cache_of(RobotsAnswer(text=f"User-agent: *\n{rules}"))
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    other = asyncio.create_task(other_work())
    await cache.rules("https://a.test")
    other.cancel()

    assert turns > 5


async def test_a_file_with_more_wildcards_than_can_be_compared_forbids_everything() -> None:
    many = "".join(f"Disallow: /*a*b*c*d*e*f*g*h*i*j{number}\n" for number in range(15_000))
    cache, _ = cache_of(RobotsAnswer(text=f"User-agent: *\n{many}"))

    with stopped_after(3):
        rules = await cache.rules("https://a.test")

    assert rules.failure == "The site's robots.txt has more than 20,000 wildcards."
    assert not rules.allows("https://a.test/public")
