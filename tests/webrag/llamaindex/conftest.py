"""The parts of a corpus, small pages and a network."""

from tests.corpus_fixtures import acquirer as acquirer
from tests.corpus_fixtures import corpus as corpus
from tests.corpus_fixtures import counting_embedding as counting_embedding
from tests.corpus_fixtures import indexer as indexer
from tests.corpus_fixtures import make_document as make_document
from tests.corpus_fixtures import server as server
from tests.corpus_fixtures import site as site
