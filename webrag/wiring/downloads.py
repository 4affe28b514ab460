"""Downloads the models of a combination; it opens no corpus."""

from typing import TYPE_CHECKING

from webrag.embedding.bundled_model import BundledModel
from webrag.settings.model import COMBINATIONS
from webrag.wiring.cross_encoders import load_cross_encoder
from webrag.wiring.local_embeddings import choose_local
from webrag.wiring.rerankers import local_scorer

if TYPE_CHECKING:
    from webrag.settings import Settings


def download_models(name: str, settings: "Settings") -> None:
    """Load the models of a combination, which downloads what is not on this machine.

    Args:
        name: One of `COMBINATIONS`.
        settings: `WEBRAG_DATA_DIR`, where weights are kept.

    Raises:
        ConfigurationError: A package is missing, or a model cannot be had.
    """
    chosen = COMBINATIONS[name]
    if chosen.embedding is not None:
        choose_local(settings, "fastembed", chosen.embedding.name, None).load()
    if chosen.reranker is not None:
        own = settings.model_copy(update={"reranker_model": chosen.reranker.name})
        load_cross_encoder(own, local_scorer(BundledModel()))
