"""A stock reader, and one of one's own, where pages come from."""

from collections.abc import Iterable
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from webrag import ReaderSource, Settings, WebRAG


class Fixed(BaseReader):
    def lazy_load_data(self, *args: Any, **load_kwargs: Any) -> Iterable[Document]:
        yield Document(text="# Kettle\n\nClean the kettle every three weeks with citric acid.")


async def main(settings: Settings, url: str) -> None:
    source = ReaderSource(
        Fixed(), name="fixed", load=lambda _url: Fixed().load_data(), allowed_hosts=["127.0.0.1"]
    )
    async with WebRAG(settings, page_source=source) as rag:
        await rag.ingest(url)
        result = await rag.search("How often is the kettle cleaned?")
        assert "three weeks" in rag.brief(result, max_tokens=1_000)
