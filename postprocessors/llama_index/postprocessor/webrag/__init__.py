"""Node postprocessors that need no service."""

from llama_index.postprocessor.webrag.local_rerank import LocalRerank
from llama_index.postprocessor.webrag.rerank_features import TokenEncoder

__all__ = ["LocalRerank", "TokenEncoder"]
