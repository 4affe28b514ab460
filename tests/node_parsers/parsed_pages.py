"""Pages in Markdown, and the nodes they are cut into."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.node_parser.webrag import ParentChildNodeParser


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def table(rows: Sequence[str]) -> str:
    body = "\n".join(f"| {row.replace('|', ' ')} | cell |" for row in rows)
    return f"| a | b |\n|---|---|\n{body}"


def section(title: str, words: str, count: int = 60) -> str:
    return f"## {title}\n\n" + f"{words} sentence follows here. " * count + "\n\n"


def parse(text: str, sizes: tuple[int, int] = (1000, 256), **metadata: object) -> list[BaseNode]:
    parser = ParentChildNodeParser(parent_tokens=sizes[0], child_tokens=sizes[1])
    return parser.get_nodes_from_documents([Document(text=text, id_="doc", metadata=metadata)])


def by_level(nodes: Sequence[BaseNode], level: str) -> list[TextNode]:
    return [
        node for node in nodes
        if isinstance(node, TextNode) and node.metadata["chunk_level"] == level
    ]  # fmt: skip
