"""The orchestration engine asked directly."""

from webrag import OrchestrationResult, OrchestratorEngine, Question, Settings, WebRAG


async def main(settings: Settings, url: str) -> None:
    async with WebRAG(settings) as rag:
        engine: OrchestratorEngine = rag.engine
        question = Question.of(
            "How long does an idle connection stay open?",
            urls=[url],
            wordings=["idle connections are closed after"],
            intent="factual",
            expansion_budget=1,
        )
        result: OrchestrationResult = await engine.run(question)
        assert result.confidence_band in ("high", "medium")
        rules: list[str] = [each.rule for each in result.expansion_steps]
        assert len(rules) <= 1
