from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from webrag.cli import main
from webrag.postgres.database import Database


@pytest.fixture
def webrag() -> Callable[..., Result]:
    """Runs the command line in this process: `webrag("status", "--json")`."""

    def run(*arguments: str, catch: bool = True) -> Result:
        return CliRunner().invoke(main, arguments, prog_name="webrag", catch_exceptions=catch)

    return run


@pytest.fixture
def added_command() -> Iterator[Callable[..., None]]:
    """Adds commands for the time of a test: `added_command(command)`."""
    before = dict(main.commands)

    yield main.add_command
    main.commands.clear()
    main.commands.update(before)


@pytest.fixture
def corpus_command(webrag: Callable[..., Result], database: Database) -> Callable[..., Result]:
    """Runs a command on an empty corpus: `corpus_command(site, "status")`.

    Requests to the site are allowed; None allows no private address.
    """
    place = ["--data-dir", str(database.config.data_dir)]
    place += ["--collection", database.config.collection]

    def run(site: str | None, *arguments: str) -> Result:
        allowed = [] if site is None else ["--allow-host", urlsplit(site).netloc]
        return webrag(*arguments, *place, *allowed)

    return run
