"""Writes a number with its noun in singular or plural."""

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """`1 page`, `2 pages`, `1,200 pages`; the noun must take a plain s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
