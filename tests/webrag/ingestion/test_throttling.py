import asyncio

from webrag.ingestion.throttling import rate_limited, watching_rate_limits


async def test_refusals_in_tasks_reach_whoever_asked() -> None:
    seen: list[None] = []

    async def refused() -> None:
        rate_limited()

    with watching_rate_limits(lambda: seen.append(None)):
        await asyncio.gather(refused(), refused())
    rate_limited()

    assert len(seen) == 2
