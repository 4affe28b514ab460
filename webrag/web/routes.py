"""The routes of the page, for whatever server they are part of."""

from pathlib import Path

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from webrag.web.asking import ask_routes
from webrag.web.corpus import corpus_routes
from webrag.web.reading import read_routes
from webrag.web.settings import settings_routes
from webrag.web.site import Site


def page_routes(site: Site) -> list[BaseRoute]:
    """Everything people see in a browser, below `/`."""
    static = StaticFiles(directory=Path(__file__).parent / "static")
    return [
        *ask_routes(site),
        *read_routes(site),
        *corpus_routes(site),
        *settings_routes(site),
        Mount("/static", static, name="static"),
    ]
