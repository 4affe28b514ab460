import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from webrag.errors import ConfigurationError, FetchError, InputError
from webrag.ingestion.http.fetcher import HttpFetcher
from webrag.ingestion.http.guard import AddressRefused, AllowList, GuardedBackend, is_public
from webrag.ingestion.models import FetchConfig, FetchedPage

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "addresses.jsonl").read_text().splitlines()
]


class RecordingStream(httpcore2.AsyncNetworkStream):
    """Answers 404 for robots.txt, then the redirects, then a page."""

    def __init__(self, redirects: list[str]) -> None:
        self._redirects = redirects
        self._answer = b""

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        if buffer.startswith(b"GET /robots.txt"):
            self._answer += b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        elif buffer.startswith(b"GET") and self._redirects:
            target = self._redirects.pop(0).encode()
            self._answer += (
                b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % target
            )
        elif buffer.startswith(b"GET"):
            self._answer += b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n<p>hi</p>"

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        part, self._answer = self._answer[:max_bytes], self._answer[max_bytes:]
        return part

    async def start_tls(self, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        return self

    async def aclose(self) -> None:
        pass

    def get_extra_info(self, _: str) -> Any:
        return None


class RecordingDialer(httpcore2.AsyncNetworkBackend):
    def __init__(self, redirects: Iterable[str] = ()) -> None:
        self.dialled: list[str] = []
        self._redirects = list(redirects)

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        self.dialled.append(host)
        return RecordingStream(self._redirects)


class Names:
    """A resolver whose k-th answer for a name is the k-th of its list: rebinding."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self._answers = answers
        self._asked: dict[str, int] = {}
        self.told: set[str] = set()

    async def __call__(self, host: str, _: int) -> Sequence[str]:
        if host not in self._answers:
            raise OSError("no such name")
        turn = self._asked.get(host, 0)
        self._asked[host] = turn + 1
        addresses = self._answers[host][min(turn, len(self._answers[host]) - 1)]
        self.told.update(addresses)
        return addresses


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(f"{case['cls']}:{case['url']}"))
async def test_only_public_addresses_are_ever_dialled(case: dict[str, Any]) -> None:
    dialer = RecordingDialer(case.get("redirects", []))
    names = Names(case.get("dns", {}))
    fetcher = HttpFetcher(FetchConfig(host_delay_s=0), resolver=names, dialer=dialer)
    try:
        outcome = "allow" if isinstance(await fetcher.fetch(case["url"]), FetchedPage) else "?"
    except (FetchError, InputError):
        outcome = "refuse"
    finally:
        await fetcher.aclose()

    assert [address for address in dialer.dialled if not is_public(address)] == []
    # A name may point elsewhere later: what counts is what it was when it was dialled, and the
    # address that was checked is the one that is dialled.
    is_turned = any(not is_public(address) for address in names.told)
    is_rebound = case["cls"] == "dns-rebind" and not is_turned
    assert outcome == ("allow" if is_rebound else case["expect"])
    assert not names.told or set(dialer.dialled) <= names.told


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:4700:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::808:808", True),
        ("168.63.129.16", False),
        ("192.88.99.1", False),
        ("224.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("64:ff9b:1::1", False),
        ("2002:7f00:1::", False),
        ("::7f00:1", False),
        ("fec0::1", False),
        ("ff02::1", False),
        ("3fff::1", False),
        ("fe80::1%eth0", False),
        ("not an address", False),
    ],
)
def test_public_is_judged_on_the_address_inside(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("intranet.example", "intranet.example", 80, True),
        ("Intranet.Example", "INTRANET.example", 8000, True),
        ("intranet.example:8000", "intranet.example", 8000, True),
        ("intranet.example:8000", "intranet.example", 80, False),
        ("example", "intranet.example", 80, False),
        ("::1", "[::1]", 80, True),
        ("[::1]:9000", "::1", 9000, True),
        ("[::1]:9000", "[::1]", 9000, True),
        ("[::1]:9000", "::1", 80, False),
        ("[::1]", "::1:9000", 80, False),
        ("fd00::1", "fd00::1", 443, True),
        ("fd00::1", "[fd00::1]", 8000, True),
        ("fd00::1", "fd00::1:443", 443, False),
        ("fd00::1", "[fd00::1:443]", 80, False),
        ("fd00::1:443", "fd00::1", 443, False),
        ("fd00::1:443", "[fd00::1]", 443, False),
        ("fd00::1:443", "fd00::1:443", 80, True),
        ("[fd00::1:443]", "fd00::1", 443, False),
        ("[fd00::1]:443", "fd00::1:443", 443, False),
        ("[FD00:0:0::1]", "fd00::1", 443, True),
        ("fd00:0::0:1", "[fd00::1]", 443, True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1", 80, True),
        ("10.0.0.1:8000", "10.0.0.1", 8000, True),
        ("10.0.0.1:8000", "10.0.0.1", 80, False),
        ("10.0.0.1", "10.0.0.1:8000", 80, False),
        ("intranet.example:8000", "intranet.example:8000", 80, False),
        ("intranet.example.", "intranet.example", 80, True),
    ],
)
def test_allow_list_matches_whole_hosts(entry: str, host: str, port: int, covered: bool) -> None:
    assert AllowList([entry]).covers(host, port) is covered


@pytest.mark.parametrize(
    "entry",
    [
        *"""intranet.test: intranet.test:0 intranet.test:00080 intranet.test:65536
        intranet.test:99999 intranet.test:80:80 intranet.test:http :80 : [::1]: [::1]:0
        [::1]80 [::1 [] [zz] [1.2.3.4] user@intranet.test user:word@intranet.test:80
        http://intranet.test intranet.test/ a?b a#b * *.test . .. a,b fe80::1%eth0
        ::1:99999""".split(),  # noqa: SIM905
        *("a b", "a\n:80", "a\x00", "a:٨٠"),
    ],
)
def test_what_is_no_host_opens_nothing(entry: str) -> None:
    with pytest.raises(ConfigurationError, match=r"give entries such as intranet\.example"):
        AllowList([entry])


async def test_allowed_host_may_be_private() -> None:
    dialer = RecordingDialer()
    backend = GuardedBackend(
        AllowList(["inner.test"]), resolver=Names({"inner.test": [["10.0.0.5"]]}), dialer=dialer
    )

    await backend.connect_tcp("inner.test", 9000)

    assert dialer.dialled == ["10.0.0.5"]


async def test_one_private_address_refuses_the_name() -> None:
    dialer = RecordingDialer()
    names = Names({"mixed.test": [["93.184.215.14", "192.168.1.1"]]})
    backend = GuardedBackend(AllowList([]), resolver=names, dialer=dialer)

    with pytest.raises(AddressRefused, match=r"192\.168\.1\.1 is private"):
        await backend.connect_tcp("mixed.test", 80)

    assert dialer.dialled == []


async def test_next_address_is_tried_when_one_is_dead() -> None:
    class HalfDead(RecordingDialer):
        async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
            stream = await super().connect_tcp(host)
            if len(self.dialled) == 1:
                raise httpcore2.ConnectError("dead")
            return stream

    dialer = HalfDead()
    names = Names({"two.test": [["93.184.215.14", "151.101.1.69"]]})
    backend = GuardedBackend(AllowList([]), resolver=names, dialer=dialer)

    await backend.connect_tcp("two.test", 443, timeout=5)

    assert dialer.dialled == ["93.184.215.14", "151.101.1.69"]


@pytest.mark.parametrize("port", [1, 7, 22, 25, 79, 81, 444, 6000, 65_535])
async def test_a_port_of_something_else_is_refused_before_the_name_is_looked_up(port: int) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        raise AssertionError(host)

    backend = GuardedBackend(AllowList([]), resolver=resolver)

    with pytest.raises(AddressRefused, match=f"port {port} is not one of the web's"):
        await backend.connect_tcp("site.test", port)
