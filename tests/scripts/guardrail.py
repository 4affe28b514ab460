"""A check of one's own that stops answers."""

from webrag import Settings, WebRAG
from webrag.answering.guardrails import Checked, Stage
from webrag.errors import GuardrailsViolationError


class NoSeconds:
    stage: Stage = "output"

    def check(self, checked: Checked) -> None:
        if any("seconds" in part.text for part in checked.parts):
            raise GuardrailsViolationError("output", "a time", "Times are not told.")


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings, guardrails=[NoSeconds()]) as rag:
        result = await rag.ask("How long does an idle connection stay open?", url=url)
        assert "seconds" not in str(result)
