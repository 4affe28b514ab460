"""What each name of `WEBRAG_MODELS` stands for: data and what settings follow; no I/O."""

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class LocalModel:
    """A model that is downloaded once and runs in this process.

    Attributes:
        name: At its provider.
        repository: At the Hugging Face Hub, where its weights come from.
        megabytes: Of the download, about.
        licence: Of the weights.
    """

    name: str
    repository: str
    megabytes: int
    licence: str


@dataclass(frozen=True)
class Combination:
    """An embedding and a reranker that are chosen together.

    Attributes:
        embedding: None for the bundled model.
        reranker: None for the local reranker.
        quality: What the combination is worth, and by which measure; "" where it was not measured.
        speed: What it costs in time.
    """

    embedding: LocalModel | None
    reranker: LocalModel | None
    quality: str
    speed: str

    @property
    def downloads(self) -> tuple[LocalModel, ...]:
        """What is downloaded, once."""
        return tuple(each for each in (self.embedding, self.reranker) if each is not None)

    @property
    def megabytes(self) -> int:
        """Of all downloads together, about."""
        return sum(each.megabytes for each in self.downloads)


COMBINATIONS: Final[dict[str, Combination]] = {
    "bundled": Combination(
        None,
        None,
        quality="evidence @1 .514, @5 .688, @10 .736 on 72 questions over four documentation sites",
        speed="6,400 texts a second on two cores",
    ),
    "small": Combination(
        LocalModel(
            "sentence-transformers/all-MiniLM-L6-v2",
            "Qdrant/all-MiniLM-L6-v2-onnx",
            90,
            "apache-2.0",
        ),
        None,
        quality="evidence @1 .500, @5 .694, @10 .778 on the same questions",
        speed="about 5 chunks a second and 15 ms a question on two busy cores",
    ),
    "medium": Combination(
        LocalModel("BAAI/bge-small-en-v1.5", "Qdrant/bge-small-en-v1.5-onnx-Q", 67, "mit"),
        LocalModel(
            "Xenova/ms-marco-MiniLM-L-6-v2", "Xenova/ms-marco-MiniLM-L-6-v2", 80, "apache-2.0"
        ),
        quality="",
        speed="as many passages as are read in 5 seconds; not measured",
    ),
}


def settings_of(name: str, given: frozenset[str]) -> dict[str, Any]:
    """The settings that a combination stands for, without those that were given.

    A provider that was given replaces its whole part of the combination; a model alone is looked
    for at the combination's provider.

    Args:
        name: One of `COMBINATIONS`.
        given: Names of the settings that were given.
    """
    chosen = COMBINATIONS[name]
    parts = (
        ("embedding", chosen.embedding, "fastembed", "bundled"),
        ("reranker", chosen.reranker, "cross_encoder", "local"),
    )
    found: dict[str, Any] = {}
    for part, model, provider, without in parts:
        if f"{part}_provider" in given:
            continue
        found[f"{part}_provider"] = without if model is None else provider
        if model is not None and f"{part}_model" not in given:
            found[f"{part}_model"] = model.name
    return found
