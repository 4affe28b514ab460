"""The `webrag` command. Formats nothing itself and holds no logic of the layers below."""

from webrag.cli.main import main

__all__ = ["main"]
