from typing import Any

import pytest

from webrag.orchestration.confidence import PROFILES


@pytest.mark.parametrize("provider", sorted(PROFILES))
def test_thresholds_are_in_order(provider: Any) -> None:
    profile = PROFILES[provider]

    assert 0 < profile.mediocre_score_floor < profile.answered_score < 1


def test_specified_numbers_belong_to_zeroentropy_and_raw_similarity() -> None:
    assert PROFILES["zeroentropy"].mediocre_score_floor == 0.5
    assert PROFILES["none"].mediocre_score_floor == 0.35
