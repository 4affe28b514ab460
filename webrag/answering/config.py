"""What of the answer manager can be set; apart, as settings are read by every command."""

from pydantic import Field

from webrag.configuration import Share
from webrag.frozen import FrozenModel


class AnswerConfig(FrozenModel):
    """Numbers that steer the answer manager; docs/scoring.md explains each."""

    rerank_recency_boost: Share = Field(
        default=0.05,
        description="Added to the normalised score of a page published today; less for older ones.",
    )
    recent_year_window: int = Field(
        default=3, ge=1, le=100, description="Years over which that boost falls to nothing."
    )
    reflection_temperature: float = Field(
        default=0.0,
        ge=0,
        le=2,
        allow_inf_nan=False,
        description="Temperature of the model that judges an answer.",
    )
    evidence_passages: int = Field(
        default=8, ge=1, description="Passages that an answer is made from."
    )
    max_sentences: int = Field(
        default=4, ge=1, description="Sentences, lists or code blocks of an extractive answer."
    )
    synthesis_timeout_s: float = Field(
        default=40.0,
        gt=0,
        description="Whole time that a model has for an answer, its second try included.",
    )
    reflection_timeout_s: float = Field(
        default=15.0,
        gt=0,
        description="Whole time that it has for judging one, its second try included.",
    )
