"""Settings of how links are followed. Values only; no I/O."""

from typing import Literal

from pydantic import BaseModel, field_validator

from webrag.orchestration.config import LINK_SIGNALS
from webrag.settings.fields import HostList, Seconds, Share, Weights, setting

__all__ = ["ExpansionSettings"]


class ExpansionSettings(BaseModel):
    """Following links."""

    max_expansion_depth: int = setting(
        5, "Rounds of the loop at most.", read_by="evaluator", unit="rounds", ge=0, le=20
    )
    max_candidates_per_iteration: int = setting(
        5, "Pages fetched in one round.", read_by="expander", unit="pages", ge=1, le=25
    )
    candidates_to_score_per_iteration: int = setting(
        20,
        "Best-scored links kept per round, from which the pages to fetch are taken.",
        read_by="expander",
        unit="links",
        ge=1,
        le=1000,
    )
    expansion_map_limit: int = setting(
        100,
        "Addresses asked from Firecrawl's map of a site.",
        read_by="Firecrawl client",
        unit="links",
        ge=1,
        le=5000,
    )
    expansion_min_candidate_score: Share = setting(
        0.05,
        "Links that score lower are never followed.",
        read_by="expander",
    )
    expansion_signal_weights: Weights = setting(
        {},
        "Weights of the signals that score a link, where they are not to be the built-in ones; "
        "0 leaves a signal out.",
        read_by="expander",
        allowed=f"comma-separated name=weight with weights from 0 to 10 and the names "
        f"{', '.join(LINK_SIGNALS)}",
        default_text="the built-in weights",
    )
    expansion_scope: Literal["same_site", "allow_list", "any"] = setting(
        "same_site",
        "Which links may be followed; `allow_list` means `EXPANSION_ALLOWED_DOMAINS`.",
        read_by="expander",
    )
    expansion_allowed_domains: HostList = setting(
        (),
        "Hosts that may be followed to, with their subdomains.",
        read_by="expander",
        allowed="comma-separated hosts without a scheme or path",
    )
    max_pages_per_run: int = setting(
        10,
        "Pages obtained at most in one run after those you named.",
        read_by="expander",
        unit="pages",
        ge=0,
        le=25,
    )
    max_bytes_per_run: int = setting(
        20_000_000,
        "Read from the network at most in one run after the pages you named.",
        read_by="expander",
        unit="bytes",
        ge=1,
        le=10_000_000_000,
    )
    expansion_iteration_timeout: Seconds = setting(
        30.0,
        "One round of following links.",
        read_by="expander",
        unit="seconds",
    )
    locality_expansion_enabled: bool = setting(
        True, "Whether neighbours of strong passages are added.", read_by="locality"
    )
    locality_expansion_radius: int = setting(
        1, "Neighbours added on each side.", read_by="locality", unit="passages", ge=0, le=10
    )

    @field_validator("expansion_signal_weights")
    @classmethod
    def _only_known_signals(cls, weights: dict[str, float]) -> dict[str, float]:
        if unknown := set(weights) - set(LINK_SIGNALS):
            raise ValueError(f"no signal is called {min(unknown)!r}")
        return weights
