"""Numbers that steer orchestration, with their defaults; it computes nothing."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from pydantic import Field

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
    """What may be read of the maps that sites keep of themselves.

    Attributes:
        enabled: Whether they are read at all.
        max_bytes: One map at most, as sent and as decompressed.
        timeout_s: All maps of one round.
        fresh_s: A map is read again when it is older.
    """

    enabled: bool = True
    max_bytes: int = Field(default=10_000_000, gt=0)
    timeout_s: float = Field(default=10.0, gt=0)
    fresh_s: float = Field(default=86_400.0, gt=0)


class ExpansionConfig(FrozenModel):
    """How far and how fast links are followed.

    Attributes:
        max_depth: Rounds at most.
        max_candidates_per_iteration: Pages fetched in one round.
        candidates_to_score_per_iteration: Best-scored candidates kept per round.
        map_limit: Addresses asked from a site map service.
        min_candidate_score: Links below it are never followed, [0, 1].
        scope: Which targets may be followed.
        allowed_domains: For scope `allow_list`: hosts; a host also admits its subdomains.
        max_pages_per_run: Pages obtained after the seed.
        max_bytes_per_run: Bytes read from the network after the seed, as sent.
        iteration_timeout_s: One round.
        signal_weights: Weight of each link signal by name.
        site_map: Reading the maps of sites.
    """

    max_depth: int = Field(default=5, ge=0)
    max_candidates_per_iteration: int = Field(default=5, ge=1)
    candidates_to_score_per_iteration: int = Field(default=20, ge=1)
    map_limit: int = Field(default=100, ge=1)
    min_candidate_score: float = 0.0
    scope: Literal["same_site", "allow_list", "any"] = "same_site"
    allowed_domains: tuple[str, ...] = ()
    max_pages_per_run: int = Field(default=10, ge=0, le=25)
    max_bytes_per_run: int = Field(default=20_000_000, gt=0)
    iteration_timeout_s: float = Field(default=30.0, gt=0)
    signal_weights: dict[str, float] = Field(default_factory=lambda: dict(LINK_SIGNALS))
    site_map: SiteMapConfig = SiteMapConfig()


class OrchestrationConfig(FrozenModel):
    """Numbers that steer the loop.

    Attributes:
        reranker_top_n: Chunks kept after reranking.
        context_budget: Tokens of evidence at most.
        children_limit: Candidates of an ordinary retrieval.
        similarity_floor: Least cosine of what only dense search finds in an ordinary retrieval.
        token_budget_saturation_ratio: Share of the budget that counts as filled.
        redundancy_ceiling: Jaccard similarity of word 3-shingles above which a chunk repeats
            another.
        high_redundancy_ratio: Share of repeated chunks that counts as high.
        score_cliff_rank_k: Rank compared with rank 1.
        plateau_top_n: Scores the variance and the mean are taken over.
        diminishing_return_delta: Least relative growth of good chunks worth another round.
        locality_enabled: Whether neighbours of strong chunks are added.
        locality_radius: Neighbours on each side.
        timeout_s: Whole run.
        soft_deadline_s: After it a partial result is assembled; None to work until `timeout_s`.
        expansion: Link following.
    """

    reranker_top_n: int = Field(default=20, ge=1)
    context_budget: int = Field(default=RetrievalConfig().context_budget, ge=1)
    children_limit: int = Field(default=RetrievalConfig().children_limit, ge=1)
    similarity_floor: float = RetrievalConfig().similarity_floor
    token_budget_saturation_ratio: float = 0.8
    redundancy_ceiling: float = 0.85
    high_redundancy_ratio: float = 0.5
    score_cliff_rank_k: int = Field(default=5, ge=2)
    plateau_top_n: int = Field(default=10, ge=3)
    diminishing_return_delta: float = 0.03
    locality_enabled: bool = True
    locality_radius: int = Field(default=1, ge=0)
    timeout_s: float = Field(default=120.0, gt=0)
    soft_deadline_s: float | None = None
    expansion: ExpansionConfig = ExpansionConfig()
