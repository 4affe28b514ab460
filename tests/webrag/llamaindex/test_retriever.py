from collections.abc import Callable

import pytest
from llama_index.core.schema import MetadataMode, QueryBundle

from tests.webrag.retrieval.conftest import add_page as add_page
from tests.webrag.retrieval.conftest import corpus as corpus
from tests.webrag.retrieval.conftest import embedder as embedder
from tests.webrag.retrieval.conftest import make_searcher as make_searcher
from tests.webrag.retrieval.conftest import pages as pages
from webrag.corpus.pages import Corpus
from webrag.llamaindex.query_engine import WebRAGRetriever
from webrag.retrieval.filters import SearchFilters
from webrag.retrieval.search import Searcher

MakeSearcher = Callable[..., Searcher]
PORTS = "https://docs.test/ports"


@pytest.mark.usefixtures("pages")
async def test_nodes_come_best_first(make_searcher: MakeSearcher) -> None:
    nodes = await WebRAGRetriever(make_searcher()).aretrieve("change the port of the server")

    scores = [node.score for node in nodes]
    assert scores == sorted(scores, reverse=True)
    assert nodes[0].metadata["source_url"] == PORTS


@pytest.mark.usefixtures("pages")
async def test_a_node_is_a_slice_of_its_page(make_searcher: MakeSearcher, corpus: Corpus) -> None:
    nodes = await WebRAGRetriever(make_searcher()).aretrieve("port")

    markdown = await corpus.markdown(PORTS) or ""
    node = nodes[0].node
    focus = slice(*node.metadata["focus"])
    assert markdown[node.start_char_idx : node.end_char_idx] == node.text
    assert markdown[focus] in node.text
    assert node.get_content(MetadataMode.LLM) == node.text


@pytest.mark.usefixtures("pages")
async def test_the_synchronous_method_works_inside_a_running_loop(
    make_searcher: MakeSearcher,
) -> None:
    retriever = WebRAGRetriever(make_searcher())

    assert retriever.retrieve("port") == await retriever.aretrieve("port")


@pytest.mark.usefixtures("pages")
async def test_filters_and_top_k_apply(make_searcher: MakeSearcher) -> None:
    retriever = WebRAGRetriever(
        make_searcher(similarity_floor=-1.0),
        filters=SearchFilters(sites=("docs.test",)),
        top_k=1,
        mode="full_context",
    )

    nodes = await retriever.aretrieve("port")

    assert [node.metadata["source_url"] for node in nodes] == ["https://docs.test/backup"]
    assert "focus" not in nodes[0].metadata


@pytest.mark.usefixtures("pages")
async def test_embedding_strings_of_the_bundle_are_searched_for_too(
    make_searcher: MakeSearcher,
) -> None:
    retriever = WebRAGRetriever(make_searcher(similarity_floor=0.9))
    guess = "Set listen_port in the configuration file and restart the server. " * 20

    alone = await retriever.aretrieve(QueryBundle("Wie wird umgeleitet?"))
    both = await retriever.aretrieve(
        QueryBundle("Wie wird umgeleitet?", custom_embedding_strs=[guess])
    )

    assert alone == []
    assert both[0].metadata["source_url"] == PORTS


@pytest.mark.usefixtures("pages")
async def test_embedding_strings_count_in_the_synchronous_method_as_well(
    make_searcher: MakeSearcher,
) -> None:
    retriever = WebRAGRetriever(make_searcher())
    bundle = QueryBundle("Wie wird umgeleitet?", custom_embedding_strs=["listen_port", *"abcdefgh"])

    assert retriever.retrieve(bundle) == await retriever.aretrieve(bundle)
