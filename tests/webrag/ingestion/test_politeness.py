import asyncio
import itertools
import time

from webrag.ingestion.politeness import HostGate


async def test_requests_to_one_host_keep_their_distance() -> None:
    gate = HostGate(concurrency=4, delay_s=0.05)
    starts: list[float] = []

    async def visit() -> None:
        async with gate.turn("a.test"):
            starts.append(time.monotonic())

    await asyncio.gather(*(visit() for _ in range(4)))

    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert min(gaps) > 0.04


async def test_crawl_delay_of_the_site_wins_when_longer() -> None:
    gate = HostGate(concurrency=4, delay_s=0.0)
    started = time.monotonic()
    for _ in range(2):
        async with gate.turn("a.test", crawl_delay_s=0.1):
            pass

    assert time.monotonic() - started > 0.09


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
