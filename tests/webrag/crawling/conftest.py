"""Crawlers of the real parts over real Postgres."""

from typing import Any

import pytest

from tests.webrag.ingestion.conftest import make_fetcher as make_fetcher
from tests.webrag.orchestration.conftest import gate as gate
from tests.webrag.orchestration.conftest import lab as lab
from webrag.postgres.database import Database

from .crawl_lab import CrawlLab


@pytest.fixture
def crawl_lab(lab: Any, database: Database) -> CrawlLab:
    return CrawlLab(lab, database)
