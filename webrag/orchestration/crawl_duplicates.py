"""Recognises pages that say what another page said, numbers apart. No I/O here."""

import re
import zlib
from collections import OrderedDict
from typing import Final

import numpy as np

__all__ = ["KnownTexts", "text_signature"]

_WORD: Final = re.compile(r"[^\W\d_]+")
# Odd constants without a pattern, one per word of a shingle.
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD], np.uint64)
_LEAST_WORDS: Final = 20
_BANDS: Final = 4  # texts that differ in up to 3 of 64 bits share one of four bands
_BAND_BITS: Final = 64 // _BANDS
_MOST_DIFFERENT_BITS: Final = 3
_REMEMBERED: Final = 4_000


def text_signature(text: str) -> int | None:
    """64 bits that hardly differ between texts that hardly differ, numbers ignored.

    Returns:
        None for a text too short to be told from others.
    """
    words = _WORD.findall(text.casefold())
    if len(words) < _LEAST_WORDS:
        return None
    hashes = np.fromiter((zlib.crc32(word.encode()) for word in words), np.uint64, len(words))
    shingles = hashes[:-2] * _FACTORS[0] ^ hashes[1:-1] * _FACTORS[1] ^ hashes[2:] * _FACTORS[2]
    mixed = np.unique(shingles)
    for factor in _FACTORS:  # so that every bit depends on every word
        mixed ^= mixed >> np.uint64(31)
        mixed *= factor
    bits = np.unpackbits((mixed ^ mixed >> np.uint64(32)).view(np.uint8).reshape(-1, 8), axis=1)
    majority = bits.sum(axis=0, dtype=np.int64) * 2 > len(mixed)
    return int.from_bytes(np.packbits(majority).tobytes(), "big")


class KnownTexts:
    """The texts met lately, at most a few thousand."""

    def __init__(self) -> None:
        self._bands: OrderedDict[tuple[int, int], int] = OrderedDict()

    def add(self, signature: int) -> bool:
        """Remember a text and tell whether a text like it was known."""
        bands = [
            (band, signature >> band * _BAND_BITS & (1 << _BAND_BITS) - 1) for band in range(_BANDS)
        ]
        seen = [self._bands[band] for band in bands if band in self._bands]
        for band in bands:
            self._bands[band] = signature
            self._bands.move_to_end(band)
        while len(self._bands) > _REMEMBERED * _BANDS:
            self._bands.popitem(last=False)
        return any((signature ^ other).bit_count() <= _MOST_DIFFERENT_BITS for other in seen)
