"""Numbers that steer orchestration, with their defaults; it computes nothing."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from webrag.configuration import Seconds, Share
from webrag.frozen import FrozenModel
from webrag.retrieval.models import RetrievalConfig

LINK_SIGNALS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "title_share": 0.60,
        "similarity": 0.80,
        "seed_path": 0.15,
        "site_map": 2.00,
    }
)
"""Signals that score a link, with their default weights."""


class SiteMapConfig(FrozenModel):
    """What may be read of the maps that sites keep of themselves."""

    enabled: bool = Field(
        default=True,
        description="A site's own search index, inventory, index page or sitemap is read to find"
        " pages that no page links to.",
    )
    max_bytes: int = Field(
        default=10_000_000,
        gt=0,
        description="A larger map of a site, as sent or as decompressed, is not read.",
    )
    timeout_s: float = Field(
        default=10.0, gt=0, description="Reading the maps of a site in one round."
    )
    fresh_s: float = Field(
        default=86_400.0, gt=0, description="A map of a site is read again when it is older."
    )


class ExpansionConfig(FrozenModel):
    """How far and how fast links are followed."""

    max_depth: int = Field(default=5, ge=0, le=20, description="Rounds of the loop at most.")
    max_candidates_per_iteration: int = Field(
        default=5, ge=1, le=25, description="Pages fetched in one round."
    )
    candidates_to_score_per_iteration: int = Field(
        default=20,
        ge=1,
        description="Best-scored links kept per round, from which the pages to fetch are taken.",
    )
    map_limit: int = Field(
        default=100, ge=1, description="Addresses asked from Firecrawl's map of a site."
    )
    min_candidate_score: float = Field(
        default=0.0, description="Links that score lower are never followed, [0, 1]."
    )
    scope: Literal["same_site", "allow_list", "any"] = Field(
        default="same_site",
        description="Which links may be followed; `allow_list` means the allowed domains.",
    )
    allowed_domains: tuple[str, ...] = Field(
        default=(), description="Hosts that may be followed to, with their subdomains."
    )
    max_pages_per_run: int = Field(
        default=10,
        ge=0,
        le=25,
        description="Pages obtained at most in one run after those you named.",
    )
    max_bytes_per_run: int = Field(
        default=20_000_000,
        ge=1,
        le=10_000_000_000,
        description="Bytes read from the network at most in one run after the pages you named.",
    )
    iteration_timeout_s: Seconds = Field(default=30.0, description="One round of following links.")
    signal_weights: dict[str, float] = Field(
        default_factory=lambda: dict(LINK_SIGNALS),
        description="Weights of the signals that score a link, where they are not to be the"
        " built-in ones; 0 leaves a signal out.",
    )
    site_map: SiteMapConfig = Field(
        default=SiteMapConfig(), description="Reading the maps of sites."
    )

    @field_validator("signal_weights")
    @classmethod
    def _only_known_signals(cls, weights: dict[str, float]) -> dict[str, float]:
        if unknown := set(weights) - set(LINK_SIGNALS):
            raise ValueError(f"no signal is called {min(unknown)!r}")
        return {**LINK_SIGNALS, **weights}

    @model_validator(mode="after")
    def _check_allow_list(self) -> Self:
        if self.scope == "allow_list" and not self.allowed_domains:
            raise ValueError("scope is 'allow_list' but allowed_domains names no host")
        return self


class OrchestrationConfig(FrozenModel):
    """Numbers that steer the loop."""

    reranker_top_n: int = Field(default=20, ge=1, description="Chunks kept after reranking.")
    context_budget: int = Field(
        default=RetrievalConfig().context_budget, ge=1, description="Tokens of evidence at most."
    )
    children_limit: int = Field(
        default=RetrievalConfig().children_limit,
        ge=1,
        description="Candidates of an ordinary retrieval.",
    )
    similarity_floor: float = Field(
        default=RetrievalConfig().similarity_floor,
        description="Least cosine of what only dense search finds in an ordinary retrieval.",
    )
    token_budget_saturation_ratio: float = Field(
        default=0.8,
        gt=0,
        le=1,
        allow_inf_nan=False,
        description="Share of the context budget that counts as filled.",
    )
    redundancy_ceiling: Share = Field(
        default=0.85,
        description="Similarity of two passages (Jaccard of word 3-shingles) from which one is a"
        " repetition.",
    )
    high_redundancy_ratio: float = Field(
        default=0.5, description="Share of repeated passages that counts as high."
    )
    score_cliff_rank_k: int = Field(default=5, ge=2, description="Rank compared with rank 1.")
    plateau_top_n: int = Field(
        default=10, ge=3, description="Scores that variance and mean are taken over."
    )
    diminishing_return_delta: float = Field(
        default=0.03,
        description="Least relative growth of good passages that is worth another round.",
    )
    locality_enabled: bool = Field(
        default=True, description="Neighbours of strong passages are added."
    )
    locality_radius: int = Field(default=1, ge=0, description="Neighbours added on each side.")
    timeout_s: Seconds = Field(
        default=120.0, description="Whole run; what was found by then is returned."
    )
    soft_deadline_s: float | None = Field(
        default=None,
        description="After it a partial result is assembled; None to work until `timeout_s`.",
    )
    expansion: ExpansionConfig = Field(default=ExpansionConfig(), description="Following links.")
