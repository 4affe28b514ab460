"""Writes docs/configuration.md and .env.example from the settings.

uv run python docs/generate_configuration.py            writes both
uv run python docs/generate_configuration.py --check    exits 1 when one of them is not current
"""

import argparse
import sys
from pathlib import Path

from webrag.settings.reference import configuration_page, env_example

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description="Generate the reference of all settings.")
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = False
    for path, text in (
        (ROOT / "docs/configuration.md", configuration_page()),
        (ROOT / ".env.example", env_example()),
    ):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)} is not current: run {sys.argv[0]}\n")
        else:
            path.write_text(text, encoding="utf-8")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
