"""Keeps requests away from private and special addresses; it knows nothing of HTTP or pages."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

import httpcore2
from ada_url import URL

from webrag.errors import ConfigurationError, FetchError, RefusedAddressError
from webrag.ingestion.addresses import host_and_port, port_of

Address: TypeAlias = IPv4Address | IPv6Address

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

# `is_global` passes several of these on Python 3.11: transition mechanisms that embed a private
# IPv4 address, and cloud metadata services on public-looking addresses.
_DENIED = tuple(
    ip_network(block)
    for block in """
        0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16
        172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24
        192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
        240.0.0.0/4 2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20 5f00::/16
        """.split()  # noqa: SIM905
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_WEB_PORTS = frozenset({80, 443, 8080, 8443})


class AddressRefused(httpcore2.ConnectError):
    """The address behind a host may not be contacted; raised before anything is sent to it."""


class NameNotFound(httpcore2.ConnectError):
    """The name service knows no address for the host."""


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the public internet.

    Addresses that carry another one (IPv4-mapped, NAT64, 6to4) are judged by the one inside; a
    scoped one (`fe80::1%eth0`) is not public.
    """
    parsed = _address_of(address)
    if parsed is None:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id:
            return False
        inner = _embedded(parsed)
        if inner is None and parsed not in _GLOBAL_UNICAST:
            return False
        parsed = inner or parsed
    in_denied = any(parsed in net for net in _DENIED if net.version == parsed.version)
    return parsed.is_global and not in_denied and not parsed.is_multicast


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour if address in _SIX_TO_FOUR else None


class AllowList:
    """Hosts the operator has opened although they are private or use an unusual port."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Read the entries; ConfigurationError where one is neither `host` nor `host:port`."""
        try:
            named = [host_and_port(entry.strip()) for entry in entries if entry.strip()]
        except ValueError as error:
            forms = "intranet.example or intranet.example:8080"
            said = f"Of the hosts to allow, {error}; give entries such as {forms}."
            raise ConfigurationError(said) from None
        self._entries = frozenset((_plain_host(host), port) for host, port in named)

    def covers(self, host: str, port: int) -> bool:
        """Tell whether `host` or `host:port` is on the list; an IPv6 host may be in brackets."""
        name = _plain_host(host)
        return not self._entries.isdisjoint({(name, None), (name, port)})


def _plain_host(host: str) -> str:
    name = host.strip("[]").rstrip(".").lower()
    return str(_address_of(name) or name)


def _address_of(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _literal(host: str) -> str | None:
    address = _address_of(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address) if address is not None else None


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order the system prefers them, or raise OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Dials only addresses it has checked itself.

    The name is resolved once, refused if any of its addresses is not public, and the connection
    goes to one of exactly these addresses, so a second DNS answer cannot lead elsewhere.
    """

    def __init__(
        self,
        allowed: AllowList,
        *,
        resolver: Resolver = resolve,
        dialer: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allowed = allowed
        self._resolve = resolver
        self._dialer = dialer or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to a checked address of `host`, or raise one of the kinds of ConnectError."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await self.checked_addresses(host, port)
                options = {"local_address": local_address, "socket_options": socket_options}
                return await self._dial_first(addresses, port, timeout, **options)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"'{host}' did not answer in {timeout:g} s") from error

    async def sleep(self, seconds: float) -> None:
        """Wait, as the connection pool asks between attempts."""
        await asyncio.sleep(seconds)

    async def checked_addresses(self, host: str, port: int) -> list[str]:
        """Give the addresses of `host`, all of which may be contacted on `port`.

        AddressRefused where one of them, or the port, is not allowed; NameNotFound for none.
        """
        literal = _literal(host)
        if self._allowed.covers(host, port):
            return [literal] if literal else await self._resolved(host, port)
        if literal is not None and not is_public(literal):
            raise AddressRefused(f"its address {literal} is private or reserved")
        if port not in _WEB_PORTS:
            ports = ", ".join(map(str, sorted(_WEB_PORTS)))
            raise AddressRefused(f"port {port} is not one of the web's ({ports})")
        addresses = [literal] if literal else await self._resolved(host, port)
        for address in addresses:
            if not is_public(address):
                raise AddressRefused(f"its address {address} is private or reserved")
        return addresses

    async def _resolved(self, host: str, port: int) -> list[str]:
        try:
            if addresses := list(await self._resolve(host, port)):
                return addresses
        except (OSError, UnicodeError) as error:
            raise NameNotFound(f"the name '{host}' was not found") from error
        raise NameNotFound(f"the name '{host}' has no address")

    async def _dial_first(
        self, addresses: list[str], port: int, timeout: float | None, **options: Any
    ) -> httpcore2.AsyncNetworkStream:
        # A dead first address must leave time for the next one.
        share = None if timeout is None else timeout / len(addresses[:4])
        *others, last = [
            partial(self._dialer.connect_tcp, address, port, timeout=share, **options)
            for address in addresses[:4]
        ]
        for dial in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await dial()
        return await last()


def refused(url: str, error: AddressRefused) -> RefusedAddressError:
    """The error that a page's address may not be contacted, with how to allow it."""
    target = URL(url)
    # In the message, as reports of several pages keep only that.
    hint = f"If it is yours, allow it: set WEBRAG_ALLOW_HOSTS={target.host}."
    said = f"'{target.hostname}' may not be contacted: {error}. {hint}"
    return RefusedAddressError(said, url=url, host=target.host)


_RESOLVE_TIMEOUT_S = 5.0


class AddressCheck:
    """The guard's rules for page sources that do not dial through the guard.

    A service or a library that fetches by itself resolves the name once more, so this keeps
    private addresses from being handed over; it cannot bind what is dialled in the end.
    """

    def __init__(self, allowed: Iterable[str], *, resolver: Resolver = resolve) -> None:
        self._guard = GuardedBackend(AllowList(allowed), resolver=resolver)

    async def check(self, url: str) -> None:
        """Return when every address of a canonical URL's host may be contacted, as for `pinned`."""
        await self.pinned(url)

    async def pinned(self, url: str) -> str:
        """The addresses that may be contacted for a URL, as curl takes them: `host:port:address`.

        Raises:
            RefusedAddressError: An address or the port is private, special or unusual.
            FetchError: The name has no address, or the name service does not answer.
        """
        target = URL(url)
        port = port_of(target)
        host = target.hostname.strip("[]")
        try:
            async with asyncio.timeout(_RESOLVE_TIMEOUT_S):
                addresses = await self._guard.checked_addresses(host, port)
        except AddressRefused as error:
            raise refused(url, error) from error
        except NameNotFound as error:
            message = f"'{target.hostname}' could not be reached: {error}."
            raise FetchError(message, url=url) from error
        except TimeoutError as error:
            message = f"The name '{target.hostname}' was not found in time."
            raise FetchError(message, url=url) from error
        shown = (f"[{address}]" if ":" in address else address for address in addresses)
        return f"{target.hostname}:{port}:{','.join(shown)}"
