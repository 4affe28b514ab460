"""How texts are divided into calls of an embedding model; it calls none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["EmbeddingLimits", "plan_batches"]


@dataclass(frozen=True)
class EmbeddingLimits:
    """What one call of a model may hold; None means that there is no such limit.

    Attributes:
        texts: Texts of one call at most; never more than the model's own `embed_batch_size`.
        tokens: Tokens of one call at most, all its texts together.
        text_tokens: Tokens of one text at most.
        concurrency: Calls under way at once.
        timeout_s: Longest wait for one call, with the retries the model makes itself.
        query_timeout_s: Longest wait for a question, where that is shorter.
    """

    texts: int | None = None
    tokens: int | None = None
    text_tokens: int | None = None
    concurrency: int = 4
    timeout_s: float = 60.0
    query_timeout_s: float = 60.0

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens have to be counted to keep to these limits."""
        return self.tokens is not None or self.text_tokens is not None


def plan_batches(
    sizes: Sequence[int], *, most_texts: int, most_tokens: int | None = None
) -> Iterator[slice]:
    """Divide texts, in their order, into as few calls as both limits allow.

    Args:
        sizes: Tokens of each text.
        most_texts: Texts of one call, at least 1.
        most_tokens: Tokens of one call; a text above it is a call of its own.
    """
    start = tokens = 0
    for end, size in enumerate(sizes):
        over = most_tokens is not None and tokens + size > most_tokens
        if end > start and (over or end - start == most_texts):
            yield slice(start, end)
            start, tokens = end, 0
        tokens += size
    if start < len(sizes):
        yield slice(start, len(sizes))
