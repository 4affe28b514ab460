import asyncio
from collections.abc import Sequence

import pytest

from webrag.errors import FetchError, RefusedAddressError
from webrag.ingestion.http import guard as address_check
from webrag.ingestion.http.guard import AddressCheck


def answering(*addresses: str) -> AddressCheck:
    async def resolver(_host: str, _port: int) -> Sequence[str]:
        return addresses

    return AddressCheck(["open.test"], resolver=resolver)


async def test_public_address_passes() -> None:
    await answering("93.184.215.14").check("https://site.test/page")


async def test_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(RefusedAddressError, match=r"'site.test' may not be contacted") as caught:
        await answering("93.184.215.14", "10.0.0.1").check("https://site.test/page")

    assert "WEBRAG_ALLOW_HOSTS=site.test" in str(caught.value)
    assert caught.value.host == "site.test"


async def test_unusual_port_is_refused() -> None:
    with pytest.raises(RefusedAddressError, match="port 6379"):
        await answering("93.184.215.14").check("https://site.test:6379/")


async def test_allowed_host_passes_whatever_its_address() -> None:
    await answering("10.0.0.1").check("http://open.test:9200/")


async def test_name_without_address_is_not_found() -> None:
    with pytest.raises(FetchError, match="has no address"):
        await answering().check("https://site.test/")


async def test_silent_name_service_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_check, "_RESOLVE_TIMEOUT_S", 0.05)

    async def never(_host: str, _port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    with pytest.raises(FetchError, match="was not found in time"):
        await AddressCheck([], resolver=never).check("https://site.test/")
