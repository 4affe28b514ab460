"""Reads the postings of rows as they are stored."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from webrag.lexical.postings import POSTING


def unpack_postings(packed: bytes) -> NDArray[Any]:
    """Give the postings of one or more concatenated rows as a structured array of `POSTING`."""
    return np.frombuffer(packed, POSTING)
