from collections.abc import Callable

import pytest

from webrag.errors import (
    FetchError,
    InputError,
    RefusedAddressError,
)
from webrag.ingestion.firecrawl.source import FirecrawlSource
from webrag.ingestion.models import FirecrawlConfig

from .conftest import public_resolver
from .fake_firecrawl import KEY, FakeFirecrawl, document

URL = "https://docs.test/guide"
PAGE = "<main><h1>Wiki</h1><p>Set the retry option to what you like.</p></main>"
MakeSource = Callable[..., FirecrawlSource]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/admin",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://intranet.test/wiki",
        "http://10.0.0.1/",
        "http://docs.test:22/",
        "http://[::ffff:192.168.0.1]/",
        "http://0x7f.1/",
    ],
)
async def test_private_address_is_never_sent(
    firecrawl: FakeFirecrawl, make_source: MakeSource, url: str
) -> None:
    source = make_source()

    with pytest.raises(RefusedAddressError):
        await source.fetch(url)
    with pytest.raises(RefusedAddressError):
        await source.map(url)

    assert firecrawl.calls == []


async def test_name_without_address_is_never_sent(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    with pytest.raises(FetchError, match="was not found"):
        await make_source().fetch("https://nowhere.example/")

    assert firecrawl.calls == []


@pytest.mark.parametrize("url", ["ftp://docs.test/", "file:///etc/passwd", "docs.test", ""])
async def test_what_is_no_web_address_is_refused(make_source: MakeSource, url: str) -> None:
    with pytest.raises(InputError):
        await make_source().fetch(url)


async def test_allowed_host_is_sent_to_a_server_of_ones_own(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages["http://intranet.test/wiki"] = document(PAGE)

    page = await make_source(allowed_hosts=("intranet.test",)).fetch("http://intranet.test/wiki")

    assert page.text == PAGE


async def test_allowed_host_is_not_sent_to_the_public_service() -> None:
    config = FirecrawlConfig(api_key=KEY, allowed_hosts=("intranet.test",))
    source = FirecrawlSource(config, resolver=public_resolver)

    with pytest.raises(RefusedAddressError):
        await source.fetch("http://intranet.test/wiki")


async def test_page_that_came_from_a_private_address_is_refused(
    firecrawl: FakeFirecrawl, make_source: MakeSource
) -> None:
    firecrawl.pages[URL] = document(PAGE, metadata={"url": "http://169.254.169.254/latest"})

    with pytest.raises(RefusedAddressError):
        await make_source().fetch(URL)
