"""A script without an event loop."""

from webrag import IngestReport, Settings, WebRAG


def main(settings: Settings, url: str) -> None:
    with WebRAG(settings) as rag:
        report: IngestReport = rag.run(rag.ingest([url]))
        assert not report.failed
        response = rag.query_engine().query("How long does an idle connection stay open?")
        assert "95 seconds" in str(response)
        assert rag.retriever(top_k=1).retrieve("idle connection")[0].score is not None
