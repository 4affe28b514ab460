"""Which processes this one has started."""

import psutil


def children() -> set[int]:
    """Processes this one has started and that still run."""
    return {child.pid for child in psutil.Process().children()}
