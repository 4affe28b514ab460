import asyncio
import time

from webrag.ingestion.http.fetcher import HostGate


async def test_requests_to_one_host_keep_their_distance() -> None:
    gate = HostGate(concurrency=4, delay_s=0.05)
    begin = time.monotonic()
    starts: list[float] = []

    async def visit() -> None:
        async with gate.turn("a.test"):
            starts.append(time.monotonic() - begin)

    await asyncio.gather(*(visit() for _ in range(4)))

    # A busy machine may wake a visitor late, never early.
    assert all(start > 0.05 * place - 0.01 for place, start in enumerate(starts))


async def test_crawl_delay_of_the_site_wins_when_longer() -> None:
    gate = HostGate(concurrency=4, delay_s=0.0)
    started = time.monotonic()
    for _ in range(2):
        async with gate.turn("a.test", crawl_delay_s=0.1):
            pass

    assert time.monotonic() - started > 0.09


async def test_busy_host_holds_back_those_who_wait_already() -> None:
    gate = HostGate(concurrency=4, delay_s=0.05)
    begin = time.monotonic()

    async def visit() -> float:
        async with gate.turn("a.test"):
            return time.monotonic() - begin

    async with gate.turn("a.test"):
        waiting = asyncio.create_task(visit())
        await asyncio.sleep(0)
        await gate.hold("a.test", 0.2)

    assert await waiting > 0.19


async def test_hosts_do_not_wait_for_each_other() -> None:
    gate = HostGate(concurrency=1, delay_s=10.0)
    async with asyncio.timeout(2), gate.turn("a.test"), gate.turn("b.test"):
        pass


async def test_exempt_host_never_waits() -> None:
    gate = HostGate(concurrency=1, delay_s=10.0)
    async with (
        asyncio.timeout(2),
        gate.turn("a.test", is_exempt=True),
        gate.turn("a.test", is_exempt=True, crawl_delay_s=9.0),
    ):
        pass


async def test_only_so_many_requests_run_at_once() -> None:
    gate = HostGate(concurrency=2, delay_s=0.0)
    running, most = 0, 0

    async def visit() -> None:
        nonlocal running, most
        async with gate.turn("a.test"):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    await asyncio.gather(*(visit() for _ in range(6)))

    assert most == 2


async def test_cancelled_visitor_gives_its_turn_back() -> None:
    gate = HostGate(concurrency=1, delay_s=0.0)

    async def stay() -> None:
        async with gate.turn("a.test"):
            await asyncio.sleep(60)

    task = asyncio.create_task(stay())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    async with asyncio.timeout(2), gate.turn("a.test"):
        pass
