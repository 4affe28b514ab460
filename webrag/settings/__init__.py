"""Every setting of WebRAG: names, defaults, validation. The only reader of the environment."""

import os

from webrag.settings.model import Settings, load_settings

__all__ = ["Settings", "load_settings"]

# ONNX Runtime, which fastembed and markitdown load, reports each process to its maker (from 1.29
# on) unless this is set before; a value of the user's own stays.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
