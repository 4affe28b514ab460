"""What of the answer manager can be set; apart, as settings are read by every command."""

from pydantic import Field

from webrag.frozen import FrozenModel


class AnswerConfig(FrozenModel):
    """Numbers that steer the answer manager; docs/scoring.md explains each.

    Attributes:
        rerank_recency_boost: Added to the normalised score of a page published this year.
        recent_year_window: Years over which that boost falls to nothing.
        reflection_temperature: Of the model that judges an answer.
        evidence_passages: Passages an answer is made from.
        max_sentences: Sentences, lists or code blocks of an extractive answer.
        synthesis_timeout_s: Whole time a model has for an answer, its second try included.
        reflection_timeout_s: Whole time it has for judging one, its second try included.
    """

    rerank_recency_boost: float = Field(default=0.05, ge=0, le=1)
    recent_year_window: int = Field(default=3, ge=1, le=100)
    reflection_temperature: float = Field(default=0.0, ge=0, le=2)
    evidence_passages: int = Field(default=8, ge=1)
    max_sentences: int = Field(default=4, ge=1)
    synthesis_timeout_s: float = Field(default=40.0, gt=0)
    reflection_timeout_s: float = Field(default=15.0, gt=0)
