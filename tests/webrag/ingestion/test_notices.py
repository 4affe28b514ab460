import asyncio

from webrag.ingestion.notices import listening, note


def test_note_without_listener_does_nothing() -> None:
    note("nobody hears this")


async def test_notes_of_tasks_reach_the_caller_that_started_them() -> None:
    heard: dict[str, list[str]] = {"one": [], "two": []}

    async def work(name: str) -> None:
        with listening(heard[name].append):
            await asyncio.create_task(asyncio.sleep(0))
            note(f"for {name}")
            await asyncio.gather(*(asyncio.create_task(later(name)) for _ in range(2)))

    async def later(name: str) -> None:
        await asyncio.sleep(0)
        note(f"later for {name}")

    await asyncio.gather(work("one"), work("two"))
    note("after the block")

    assert heard == {
        name: [f"for {name}", f"later for {name}", f"later for {name}"] for name in heard
    }
