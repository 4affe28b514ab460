"""What the local reranker needs of an embedding model to compare meanings."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["BatchTokenEncoder", "TokenEncoder"]

Matrix = NDArray[np.float32]


@runtime_checkable
class TokenEncoder(Protocol):
    """A static embedding: whole texts and tokens of a fixed vocabulary live in one space."""

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Embed texts, as an L2-normalised array of shape (len(texts), dimensions)."""

    def token_vectors(self, text: str) -> tuple[Sequence[str], Matrix]:
        """Give the distinct tokens of a text and their vectors, not normalised."""


@runtime_checkable
class BatchTokenEncoder(TokenEncoder, Protocol):
    """One that tokenises many texts at once; a cold call then takes a third of the time."""

    @property
    def token_table(self) -> Matrix:
        """Vector of every token, not normalised."""

    def encode_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[Matrix, Sequence[NDArray[np.int64]]]:
        """As `encode`, and per text its distinct tokens as rows of `token_table`."""
