"""What the rerankers of this process read of a node."""

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.postprocessor.webrag.rerank_features import Passage


def passage_of(node: BaseNode, *, title_key: str, heading_path_key: str) -> Passage:
    """Text, title and headings of a node; nothing of a question is known.

    Args:
        node: One heading alone may stand in place of their list.
        title_key: Metadata key of its page's title.
        heading_path_key: Metadata key of the headings above it.
    """
    headings = node.metadata.get(heading_path_key) or ()
    return Passage(
        text=node.get_content(metadata_mode=MetadataMode.NONE),
        title=str(node.metadata.get(title_key) or ""),
        headings=(headings,) if isinstance(headings, str) else tuple(map(str, headings)),
    )
