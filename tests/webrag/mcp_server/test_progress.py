import asyncio

from webrag.mcp_server.runtime import ProgressReporter

Sent = list[tuple[float, float | None, str | None]]


def recorder(sent: Sent) -> ProgressReporter:
    async def report(value: float, total: float | None, message: str | None) -> None:
        sent.append((value, total, message))

    return ProgressReporter(report, interval_s=0.02)


async def test_values_rise_with_every_phase() -> None:
    sent: Sent = []
    progress = recorder(sent)

    await progress("retrieve", "Searching 3 documents...")
    await progress("expand", "Expanding to linked pages...", 1, 5)

    assert sent == [
        (1.0, None, "Searching 3 documents..."),
        (2.0, None, "Expanding to linked pages... (1/5)"),
    ]


async def test_last_phase_is_repeated_during_silence() -> None:
    sent: Sent = []
    progress = recorder(sent)
    await progress("retrieve", "Searching...")
    heartbeat = asyncio.create_task(progress.keep_alive())

    async with asyncio.timeout(5):
        while len(sent) < 3:
            await asyncio.sleep(0.01)
    heartbeat.cancel()

    assert [value for value, _, _ in sent] == [float(n) for n in range(1, len(sent) + 1)]
    assert sent[2][2] == "Searching... (0s so far)"
