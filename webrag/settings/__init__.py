"""Every setting of WebRAG: names, defaults, validation. The only reader of the environment."""

from webrag.settings.model import Settings, load_settings

__all__ = ["Settings", "load_settings"]
