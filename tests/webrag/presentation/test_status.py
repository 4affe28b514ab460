from datetime import UTC, datetime

import pytest

from webrag.corpus.models import (
    CollectionSize,
    CorpusStatus,
    FailedPage,
    PageStatus,
    SiteSize,
)
from webrag.presentation.reports import format_status

URL = "https://docs.example.org/install"


@pytest.fixture
def status() -> CorpusStatus:
    return CorpusStatus(
        collection="webrag",
        documents=1,
        gone=0,
        chunks=1047,
        tokens=198_432,
        links=12,
        embedding_model="bundled/wordllama-256-logtf",
        embedding_dimensions=256,
        database="embedded PostgreSQL 18.4",
        pages=(
            PageStatus(
                url=URL,
                title="Install",
                chunk_count=1047,
                token_count=198_432,
                fetched_at=datetime(2026, 2, 22, 14, 30, tzinfo=UTC),
                depth=0,
                gone_at=None,
            ),
        ),
    )


def test_status_lists_totals_and_pages(status: CorpusStatus) -> None:
    assert format_status(status) == (
        "[CORPUS STATUS]\n"
        "Pages stored: 1\n"
        "Passages: 1,047\n"
        "Collection: webrag\n"
        "Embedding model: bundled/wordllama-256-logtf\n"
        "Database: embedded PostgreSQL 18.4\n"
        "\n"
        "Pages:\n"
        f"- Install — {URL}\n"
        "  (1,047 passages, fetched 2026-02-22 14:30 UTC)"
    )


def test_status_of_an_empty_corpus_says_how_to_fill_it(status: CorpusStatus) -> None:
    empty = status.model_copy(
        update={"documents": 0, "chunks": 0, "pages": (), "embedding_model": None}
    )

    assert format_status(empty).endswith(
        "Nothing is stored yet: `webrag answer` or `webrag ingest` add pages."
    )


@pytest.mark.parametrize(("others", "said"), [(1, "1 other page is."), (4, "4 other pages are.")])
def test_status_of_an_unknown_page_says_that_others_are_stored(
    status: CorpusStatus, others: int, said: str
) -> None:
    unknown = status.model_copy(
        update={"documents": 0, "pages": (), "only_url": URL, "other_documents": others}
    )

    assert f"\n{URL} is not stored; {said} " in format_status(unknown)
    assert "Nothing is stored" not in format_status(unknown)


def test_status_names_another_available_model(status: CorpusStatus) -> None:
    other = status.model_copy(update={"available_embedding_model": "openai/small"})

    assert "Note: openai/small is available; `webrag reindex`" in format_status(other)


def test_status_names_where_pages_come_from(status: CorpusStatus) -> None:
    page = status.pages[0].model_copy(update={"source": "firecrawl"})
    text = format_status(
        status.model_copy(update={"page_source": "firecrawl, else builtin", "pages": (page,)})
    )

    assert "Pages are fetched by: firecrawl, else builtin\n" in text
    assert "fetched 2026-02-22 14:30 UTC by firecrawl)" in text


def test_status_says_how_many_pages_it_does_not_list(status: CorpusStatus) -> None:
    many = status.model_copy(update={"pages": status.pages * 5})

    assert format_status(many, max_pages=2).endswith("\n... and 3 more pages")


def test_status_tells_the_last_request_of_each_page_and_what_never_came(
    status: CorpusStatus,
) -> None:
    at = datetime(2026, 2, 23, 8, 0, tzinfo=UTC)
    page = status.pages[0].model_copy(
        update={"outcome": "failed", "checked_at": at, "reason": "no\nanswer"}
    )
    failure = FailedPage(url=f"{URL}/x", reason="not found", checked_at=at, status=404)
    full = status.model_copy(
        update={
            "failed": 1,
            "pages": (page,),
            "failures": (failure,),
        }
    )

    text = format_status(full)

    assert "\nCould not be fetched: 1\n" in text
    assert text.endswith(
        "  (1,047 passages, fetched 2026-02-22 14:30 UTC)\n"
        "  (last request 2026-02-23 08:00 UTC: failed: no answer)\n"
        "\n"
        "Could not be fetched:\n"
        f"- {URL}/x\n"
        "  (failed 2026-02-23 08:00 UTC: not found)"
    )


def test_status_names_the_other_collections_with_their_pages(status: CorpusStatus) -> None:
    others = (
        CollectionSize(name="private", documents=None),
        CollectionSize(name="single", documents=1),
        CollectionSize(name="work", documents=1234),
    )

    text = format_status(status.model_copy(update={"other_collections": others}))

    assert "Other collections: private, single (1 page), work (1,234 pages)" in text


def test_versions_of_a_site_are_listed_by_library_as_far_as_they_fit(
    status: CorpusStatus,
) -> None:
    own = {f"library-{n}": ("2.0", "1.0") for n in range(6)}
    many = tuple(f"{n}.0" for n in range(14, 0, -1))
    sites = [
        SiteSize(
            site=site,
            documents=1,
            tokens=5,
            fetched_at=datetime(2026, 2, 22, tzinfo=UTC),
            versions=versions,
        )
        for site, versions in {"a.test": {"a.test": many}, "file:": own}.items()
    ]

    lines = format_status(status.model_copy(update={"sites": tuple(sites)})).splitlines()

    assert f"  versions: {', '.join(many[:12])} and 2 more" in lines
    last = lines.index("  versions of 1 more")
    assert lines[last - 1] == "  versions of library-4: 2.0, 1.0"


def test_model_is_told_of_sites_and_failures_and_not_of_what_it_cannot_change(
    status: CorpusStatus,
) -> None:
    at = datetime(2026, 2, 23, 8, 0, tzinfo=UTC)
    failures = tuple(
        FailedPage(url=f"{URL}/{number}", reason="not found", checked_at=at, status=404)
        for number in range(7)
    )
    site = SiteSize(site="docs.example.org", documents=1, tokens=9, fetched_at=at)
    changed = {"pages": (), "sites": (site,), "failed": 7, "failures": failures, "jobs": 2}

    told = status.model_copy(update=changed)
    text = format_status(told, is_listed=False, caller="mcp")

    assert text == (
        "[CORPUS STATUS]\n"
        "Documents indexed: 1\n"
        "Total chunks: 1,047\n"
        "Total tokens: 198,432\n"
        "Could not be fetched: 7\n"
        "Jobs that wait or run: 2\n"
        "\n"
        "Sites:\n"
        "- docs.example.org: 1 page, fetched since 2026-02-23 08:00 UTC\n"
        "\n"
        "`status` of a host lists its pages.\n"
        "\n"
        "Could not be fetched:\n"
        + "".join(
            f"- {URL}/{number}\n  (failed 2026-02-23 08:00 UTC: not found)\n" for number in range(5)
        )
        + "... and 2 more pages"
    )
    assert f"{URL}/6" in format_status(told)
