"""The node parser in a pipeline, without the rest."""

from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.schema import BaseNode
from llama_index.node_parser.webrag import ParentChildNodeParser

from webrag import Settings


async def main(settings: Settings, url: str) -> None:
    text = "# Timeouts\n\n" + "A timeout is set with `asyncio.timeout`. " * 60
    parser = ParentChildNodeParser.from_defaults(metadata_keys=["title"])
    pipeline = IngestionPipeline(transformations=[parser])
    document = Document(text=text, metadata={"title": "asyncio", "secret": "x"})
    nodes = list[BaseNode](await pipeline.arun(documents=[document]))
    assert len(get_leaf_nodes(nodes)) > len(get_root_nodes(nodes)) > 0
    assert "secret" not in nodes[0].metadata
    again = ParentChildNodeParser.from_dict(parser.to_dict())
    assert [each.get_content() for each in again([document])] == [
        each.get_content() for each in nodes
    ]
