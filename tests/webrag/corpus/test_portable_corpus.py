"""Out of one corpus, into a file, and into another."""

import asyncio
import gzip
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import TextNode
from llama_index.node_parser.webrag import ParentChildNodeParser
from psycopg import AsyncConnection, sql

from tests.kept_collections import KeptCollections
from webrag.corpus.indexer import Indexer
from webrag.corpus.maintenance.transfer import export_corpus, import_corpus
from webrag.corpus.pages import Corpus
from webrag.corpus.schema import ensure_schema
from webrag.corpus.site_index import MappedLinks
from webrag.corpus.writer import forget_page
from webrag.embedding.embedder import Embedder
from webrag.errors import InputError
from webrag.ingestion.addresses import content_hash
from webrag.ingestion.models import Anchor, MappedLink, NormalizedDocument, OutgoingLink
from webrag.llamaindex.store import CorpusVectorStore
from webrag.postgres.config import DatabaseConfig
from webrag.postgres.database import Database, table

MakeDocument = Callable[..., NormalizedDocument]
URL = "https://docs.test/guide"
OTHER = "https://docs.test/other"
PAGES = (Anchor(char_start=0, fragment="page=1"), Anchor(char_start=20, fragment="page=2"))
COLUMNS = """url, requested_url, aliases, site, title, description, language, published_at,
modified_at, publication_year, fetched_at, depth, markdown, html, content_hash, etag,
last_modified, status, source, author, site_name, token_count, child_count, term_count, gone_at,
anchors"""


async def rows(database: Database, columns: str, name: str, order: str) -> Any:
    query = sql.SQL(f"select {columns} from {{}} order by {order}").format(
        table(database.config.collection, name)
    )

    async def work(connection: AsyncConnection[Any]) -> Any:
        return await (await connection.execute(query)).fetchall()

    return await database.run(work)


@pytest.fixture
async def second(postgres_dir: Path, kept_collections: KeptCollections) -> AsyncIterator[Database]:
    """Another collection, made with a model of another size."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    opened = Database(DatabaseConfig(data_dir=postgres_dir, collection=name))
    await ensure_schema(opened, embedding_model="counting", embedding_dimensions=16)
    yield opened
    await kept_collections.take_back(opened)
    await opened.close()


@pytest.fixture
def into(second: Database, counting_embedding: Any) -> Any:
    """Imports a file into the second collection."""
    corpus = Corpus(second)
    parser = ParentChildNodeParser(parent_tokens=60, child_tokens=25)
    indexer = Indexer(corpus, parser, Embedder(counting_embedding, 16))

    async def run(path: Path, **kwargs: Any) -> Any:
        return await import_corpus(corpus, indexer, path, **kwargs)

    return run


@pytest.fixture
async def filled(corpus: Corpus, indexer: Indexer, make_document: MakeDocument) -> Corpus:
    links = [
        OutgoingLink(
            url="https://docs.test/x",
            anchor_text="Ünïcode 🦆",
            sentence="See Ünïcode 🦆.",
            heading="Links",
            rel=("nofollow",),
            char_start=3,
            char_end=9,
        ),
        "https://elsewhere.test/",
    ]
    published = datetime(2024, 2, 29, tzinfo=UTC)
    await indexer.index(
        make_document(
            links=links, published_at=published, etag='"e"', language="en", anchors=PAGES
        ),
        depth=2,
    )
    await corpus.add_aliases(URL, ["https://docs.test/alias"])
    other = make_document(OTHER, markdown="# Other\n\nAnother text.\n")
    await indexer.index(other)
    await corpus.mark_gone(OTHER, datetime(2026, 6, 1, tzinfo=UTC))
    return corpus


async def test_everything_arrives_in_another_collection(
    filled: Corpus, database: Database, second: Database, into: Any, tmp_path: Path
) -> None:
    written = await export_corpus(database, tmp_path / "corpus.jsonl")
    report = await into(tmp_path / "corpus.jsonl")

    assert (written.documents, report.indexed, report.failed) == (2, 2, {})
    for columns, where, order in [
        (COLUMNS, "documents", "url"),
        ("url, title, description, heading, rel, char_start, char_end", "link_candidates", "1, 6"),
        ("node_id, text, char_start, char_end, text_hash", "data_children", "node_id"),
        ("id, text, heading_path, html", "parents", "id"),
    ]:
        assert await rows(database, columns, where, order) == await rows(
            second, columns, where, order
        )


async def test_header_says_how_many_pages_follow_and_what_embedded_them(
    filled: Corpus, database: Database, tmp_path: Path
) -> None:
    await export_corpus(database, tmp_path / "b")

    header = json.loads((tmp_path / "b").read_bytes().splitlines()[0])
    assert (header["documents"], header["embedding_model"]) == (2, "counting")


async def test_importing_again_embeds_and_changes_nothing(
    filled: Corpus,
    database: Database,
    second: Database,
    into: Any,
    counting_embedding: Any,
    tmp_path: Path,
) -> None:
    await export_corpus(database, tmp_path / "c")
    await into(tmp_path / "c")
    before = await rows(second, COLUMNS, "documents", "url")
    counting_embedding.texts.clear()

    report = await into(tmp_path / "c")

    assert (report.unchanged, report.indexed, counting_embedding.texts) == (2, 0, [])
    assert await rows(second, COLUMNS, "documents", "url") == before


async def test_newer_version_of_the_corpus_is_kept(
    filled: Corpus,
    database: Database,
    indexer: Indexer,
    make_document: MakeDocument,
    tmp_path: Path,
) -> None:
    await export_corpus(database, tmp_path / "c")
    newer = make_document(markdown="# Newer\n\nText.\n")
    newer = newer.model_copy(update={"fetched_at": newer.fetched_at + timedelta(days=1)})
    await indexer.index(newer)

    report = await import_corpus(filled, indexer, tmp_path / "c")

    assert (report.kept, report.unchanged) == (1, 1)
    assert await filled.markdown(URL) == newer.markdown


async def test_older_version_of_the_corpus_is_replaced(
    filled: Corpus, database: Database, into: Any, second: Database, tmp_path: Path
) -> None:
    await export_corpus(database, tmp_path / "c")
    lines = (tmp_path / "c").read_text().splitlines()
    await into(tmp_path / "c")
    page = json.loads(lines[1])
    page |= {"markdown": "# Newer\n", "content_hash": content_hash("# Newer\n"), "links": []}
    page["fetched_at"] = "2027-01-01T00:00:00Z"
    (tmp_path / "c").write_text("\n".join([lines[0], json.dumps(page), lines[2]]))

    report = await into(tmp_path / "c")

    assert (report.updated, report.unchanged) == (1, 1)
    assert await Corpus(second).markdown(URL) == "# Newer\n"


async def test_unusable_lines_are_reported_and_the_others_go_on(
    filled: Corpus, database: Database, into: Any, second: Database, tmp_path: Path
) -> None:
    await export_corpus(database, tmp_path / "c")
    header, first, last = (tmp_path / "c").read_text().splitlines()
    page = json.loads(first)
    bad = [
        "{nonsense",
        "[1, 2]",
        json.dumps({**page, "url": "ftp://docs.test/"}),
        json.dumps({**page, "markdown": "changed"}),
        json.dumps({**page, "title": "a\0b"}),
        json.dumps({**page, "title": "\ud800"}),
        json.dumps({**page, "depth": -1}),
        json.dumps({**page, "fetched_at": "yesterday"}),
    ]
    (tmp_path / "c").write_text("\n".join([header, *bad, "", first, last, ""]))

    report = await into(tmp_path / "c")

    assert list(report.failed) == list(range(2, 10))
    assert report.indexed == 2
    assert "not JSON" in report.failed[2]
    assert "content_hash" in report.failed[5]
    assert (await Corpus(second).status()).documents == 1


async def test_file_that_was_cut_off_is_noticed(
    filled: Corpus, database: Database, into: Any, tmp_path: Path
) -> None:
    await export_corpus(database, tmp_path / "d")
    lines = (tmp_path / "d").read_text().splitlines()
    (tmp_path / "d").write_text("\n".join(lines[:2]))

    short = await into(tmp_path / "d")

    assert "ends after 1 of 2 pages" in short.failed[3]


async def test_packed_file_is_refused_with_what_unpacks_it(into: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(HEADER).encode()))

    with pytest.raises(InputError, match="is packed") as refused:
        await into(path)

    assert refused.value.hint == f"Unpack it first: gunzip -k {path}"


async def test_export_by_a_name_of_a_packed_file_is_refused(
    filled: Corpus, database: Database, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"name it .*c\.jsonl\."):
        await export_corpus(database, tmp_path / "c.jsonl.gz")


@pytest.mark.parametrize("content", [b"", b"hello\n", b"{}\n", b"\xff\xfe"])
async def test_file_that_is_no_export_is_refused(into: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)

    with pytest.raises(InputError, match="not an export of WebRAG"):
        await into(tmp_path / "c")


async def test_file_of_a_newer_version_is_refused(into: Any, tmp_path: Path) -> None:
    (tmp_path / "c").write_text('{"format": "webrag-corpus", "version": 99}\n')

    with pytest.raises(InputError, match="format version 99"):
        await into(tmp_path / "c")


async def test_missing_file_is_named(into: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        await into(tmp_path / "nothing")


async def test_existing_file_is_not_replaced_unasked(
    filled: Corpus, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "c").write_text("precious")

    with pytest.raises(InputError, match="exists already"):
        await export_corpus(database, tmp_path / "c")
    assert (tmp_path / "c").read_text() == "precious"

    await export_corpus(database, tmp_path / "c", overwrite=True)
    assert (tmp_path / "c").read_text() != "precious"


async def test_failed_export_leaves_no_file(database: Database, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist yet"):
        await export_corpus(database, tmp_path / "c")
    with pytest.raises(InputError, match="cannot be written"):
        await export_corpus(database, tmp_path / "missing" / "c")

    assert list(tmp_path.iterdir()) == []


async def test_documents_without_an_address_are_counted_as_left_out(
    filled: Corpus, database: Database, tmp_path: Path
) -> None:
    node = TextNode(text="No address.", embedding=[0.1] * 16)
    await CorpusVectorStore(database=database, embed_dim=16).async_add([node])

    report = await export_corpus(database, tmp_path / "c")

    assert (report.documents, report.left_out) == (2, 1)


async def test_export_sees_one_moment(filled: Corpus, database: Database, tmp_path: Path) -> None:
    """A page that is removed while the file is written is in it nevertheless."""
    loop = asyncio.get_running_loop()
    tasks = []

    def remove(done: int, total: int) -> None:
        tasks.append(loop.create_task(forget_page(database, OTHER)))

    report = await export_corpus(database, tmp_path / "c", on_progress=remove)
    await asyncio.gather(*tasks)

    assert report.documents == 2


async def test_progress_ends_at_the_number_of_pages(
    filled: Corpus, database: Database, into: Any, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []

    await export_corpus(database, tmp_path / "c", on_progress=lambda *now: seen.append(now))
    await into(tmp_path / "c", on_progress=lambda *now: seen.append(now))

    assert seen == [(2, 2), (1, 2), (2, 2)]


async def test_mapped_links_stay_behind(
    filled: Corpus, database: Database, into: Any, second: Database, tmp_path: Path
) -> None:
    """They are what a service said, not what the page does."""
    mapped = [MappedLink(url="https://docs.test/mapped", title="Mapped")]
    await MappedLinks(database).store(URL, mapped, datetime(2026, 6, 1, tzinfo=UTC))

    await export_corpus(database, tmp_path / "corpus.jsonl")
    await into(tmp_path / "corpus.jsonl")
    again = await into(tmp_path / "corpus.jsonl")

    header = json.loads((tmp_path / "corpus.jsonl").read_text().splitlines()[0])
    assert header["links"] == 2
    assert {link.url for link in await Corpus(second).links([URL])} == {
        "https://docs.test/x",
        "https://elsewhere.test/",
    }
    assert again.unchanged == 2


HEADER = {
    "format": "webrag-corpus", "version": 1, "collection": "x", "documents": 2,
    "exported_at": "2026-05-01T00:00:00Z",
}  # fmt: skip


def line(url: str = URL, markdown: str = "Text.", **changes: Any) -> bytes:
    values = {
        "url": url, "requested_url": url, "fetched_at": "2026-05-01T00:00:00Z", "depth": 0,
        "markdown": markdown, "content_hash": content_hash(markdown), "source": "builtin",
    }  # fmt: skip
    return json.dumps(values | changes).encode()


def portable_file(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join([json.dumps(HEADER).encode(), *lines]) + b"\n")
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"html": "x" * 20_000_001}, "html: .* 20000000", id="html"),
        pytest.param({"title": "t" * 301}, "title: .* 300 characters", id="title"),
        pytest.param({"description": "d" * 1_001}, "description: .* 1000", id="description"),
        pytest.param({"etag": "e" * 10_000}, "etag: ", id="etag"),
        pytest.param(
            {"links": [{"url": "https://a.test/"}] * 20_001}, "links: .* 20000 items", id="links"
        ),
        pytest.param(
            {"links": [{"url": "https://a.test/", "heading": "h" * 3_000_000}]},
            "links.0.heading: ",
            id="heading-of-a-link",
        ),
        pytest.param({"extra": [{}] * 1_200_000}, "more values than a page", id="objects"),
        pytest.param({"extra": [""] * 1_200_000}, "more values than a page", id="strings"),
        pytest.param({"extra": "x" * 40_000_000}, "longer than 40,000,000 bytes", id="line"),
    ],
)
async def test_line_beyond_the_limits_is_left_out_and_the_others_go_on(
    into: Any, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = portable_file(tmp_path / "x.jsonl", line(**changes), line(OTHER))

    report = await into(path)

    assert report.indexed == 1
    assert list(report.failed) == [2]
    assert re.search(said, report.failed[2])


async def test_pages_that_lead_to_each_other_are_stored_in_the_order_of_the_file(
    second: Database, counting_embedding: Any, tmp_path: Path
) -> None:
    class SlowAtFirst(Indexer):
        async def index(self, document: NormalizedDocument, *, depth: int = 0) -> Any:
            await asyncio.sleep(0.2 if document.url == URL else 0)
            return await super().index(document, depth=depth)

    corpus = Corpus(second)
    indexer = SlowAtFirst(corpus, ParentChildNodeParser(), Embedder(counting_embedding, 16))
    lines = line(URL, requested_url=OTHER), line(OTHER, "Later.", requested_url=URL)

    await import_corpus(corpus, indexer, portable_file(tmp_path / "x.jsonl", *lines))

    page = await corpus.page(URL)
    assert page is not None
    assert page.url == OTHER


MANY = 10**30
DATES = (
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00Z", "2024-01-01"),
    *("0001-01-01T00:00:00+14:00", MANY, float("nan"), {}),
)
UNUSABLE: list[tuple[str, Any]] = [
    *(("status", value) for value in (MANY, 2**31, -1, 1.5, None, "many", float("nan"), [])),
    *((f"{name}_at", date) for name in ("fetched", "published", "gone") for date in DATES),
    *(("depth", value) for value in (MANY, -1, None)),
    *((name, value) for name in ("anchors", "links", "aliases") for value in (None, 7, [None])),
    ("anchors", [{"char_start": MANY, "fragment": "x"}]),
    ("links", [{"url": "https://a.test/", "char_start": 2**63}]),
    ("language", {"a": []}),
]
NO_PAGES = (b"[" * 100_000, b"7", b"null", b"NaN", b'{"url": 1' + b"0" * 5_000 + b"}", b"\xff\xfe")


async def test_lines_of_wrong_values_are_left_out_each_with_a_sentence(
    into: Any, tmp_path: Path
) -> None:
    lines = [line(**{name: value}) for name, value in UNUSABLE]

    report = await into(portable_file(tmp_path / "x.jsonl", *lines, *NO_PAGES, line(OTHER)))

    assert report.indexed == 1
    assert list(report.failed) == list(range(2, 2 + len(UNUSABLE) + len(NO_PAGES)))
    for (name, value), said in zip(UNUSABLE, report.failed.values(), strict=False):
        assert re.match(rf"{name}(\.|: ).*\.$", said), (value, said)


async def test_noncharacters_distant_years_and_dead_links_are_stored_as_they_are(
    into: Any, second: Database, tmp_path: Path
) -> None:
    markdown = "# A\ufffe\n\nWords \uffff and \U0001fffe, \ufdd0.\n"
    addresses = ("x", "javascript:1", "http://[", "\ufffe", "", "file:///a", "https://a.test/")
    page = line(
        markdown=markdown,
        title="\ufffe",
        html="<p>\uffff",
        published_at="1000-01-01T00:00:00Z",
        modified_at="8999-12-31T23:59:59-14:00",
        links=[{"url": address, "anchor_text": "\uffff"} for address in addresses],
    )

    report = await into(portable_file(tmp_path / "x.jsonl", page, line(OTHER, "Another.")))

    assert (report.indexed, report.failed) == (2, {})
    stored = await rows(second, "markdown, title, published_at, modified_at", "documents", "url")
    assert stored[0] == (
        markdown,
        "\ufffe",
        datetime(1000, 1, 1, tzinfo=UTC),
        datetime(9000, 1, 1, 13, 59, 59, tzinfo=UTC),
    )


async def test_long_heading_is_imported_without_a_copy_in_every_chunk(
    into: Any, second: Database, tmp_path: Path
) -> None:
    markdown = "# " + "word " * 100_000 + "\n\n" + "A sentence of the text.\n\n" * 200
    path = portable_file(tmp_path / "x.jsonl", line(markdown=markdown), line(OTHER))

    report = await into(path)

    longest = await rows(second, "max(length(metadata_::text))", "data_children", "1")
    assert (report.indexed, report.failed) == (2, {})
    assert longest[0][0] < 20_000
