"""A static embedding model that needs no download, key or server: WordLlama's 256-d weights.

Imports nothing of LlamaIndex, which takes seconds; `webrag.embedding.bundled` is the same as a
LlamaIndex embedding.
"""

import importlib.util
import json
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from webrag.concurrency import in_background
from webrag.errors import ConfigurationError

Numbers = NDArray[np.int64]

# Nothing is ever merged across the ends of these: the mark of a word's beginning, which stands for
# a space, comes only first in a token, and a line feed in no token of several characters.
_WORDS = re.compile(r"\n[^ \n]*| *[^ \n]+| +")
_MARK = "\u2581"
_LONGEST_REMEMBERED = 40  # characters; longer are URLs, data and scripts without spaces
_REMEMBERED = 50_000  # words, about 10 MB


class WordTokens:
    """Tokenises as a byte-pair tokenizer without pre-tokenisation does, several times as fast.

    Such a tokenizer reads a whole text as one word, with U+2581 before it and in place of its
    spaces. Here each word, which texts repeat, is tokenised once. Thread-safe.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self._added = re.compile("|".join(map(re.escape, added)) or r"(?!)")
        self._known: dict[str, tuple[int, ...]] = {}

    def ids(self, texts: Sequence[str]) -> tuple[Numbers, Numbers]:
        """The tokens of all texts, one after another, and how many each text has."""
        words = [self._words(text) for text in texts]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        places: defaultdict[str, int] = defaultdict()
        places.default_factory = places.__len__  # numbers words as they come
        found = map(places.__getitem__, chain.from_iterable(words))
        numbers = np.fromiter(found, np.int64, int(lengths.sum()))
        tokens = self._tokens(places)
        sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
        flat = np.fromiter(chain.from_iterable(tokens), np.int64, int(sizes.sum()))
        counts = sizes[numbers]
        ends = np.r_[0, np.cumsum(counts)]
        shifts = (np.cumsum(sizes) - sizes)[numbers] - ends[:-1]
        every = flat[np.arange(ends[-1]) + np.repeat(shifts, counts)]
        return every, np.diff(ends[np.r_[0, np.cumsum(lengths)]])

    def _words(self, text: str) -> list[str]:
        """Cut a text up: each word without the space before it, or with its line feed.

        A text that spells a control token is one piece, told by two line feeds.
        """
        if self._added.search(text):
            return ["\n\n" + text]
        if _MARK in text:
            text = text.replace(_MARK, " ")
        words = text.split(" ")
        if "\n" not in text and "" not in words:
            return words
        found = _WORDS.findall(" " + text) if text else []
        return [word[1:] if word[0] == " " else word for word in found]

    def _tokens(self, words: Collection[str]) -> list[tuple[int, ...]]:
        known = self._known
        fresh = {word: self._tokenised(word) for word in words if word not in known}
        found = [fresh[word] if word in fresh else known[word] for word in words]
        if fresh:
            short = {word: ids for word, ids in fresh.items() if len(word) <= _LONGEST_REMEMBERED}
            # Replaced and never emptied: other threads may be reading the old one.
            if len(known) + len(short) > _REMEMBERED:
                self._known = short
            else:
                known.update(short)
        return found

    def _tokenised(self, word: str) -> tuple[int, ...]:
        word = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if word.startswith("\n\n"):
            return tuple(self._tokenizer.encode(word[2:], add_special_tokens=False).ids)
        marked = word if word.startswith("\n") else f" {word}"
        return tuple(each.id for each in self._tokenizer.model.tokenize(marked.replace(" ", _MARK)))


BUNDLED_MODEL_NAME = "bundled/wordllama-256-logtf"
BUNDLED_DIMENSIONS = 256
BUNDLED_BATCH_SIZE = 256  # texts of one call
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_CONTROL = frozenset({"<s>", "</s>", "<unk>"})
# Of a word that is one token. Of 160 words of questions about four documentation sites that the
# page with the answer lacks, 38 are shorter ("otherwise", "main"); "price" has 11.4, "server" 13.4.
_LEAST_OF_NAME = 10.0
_ROWS_PER_STEP = 512  # keeps the gathered rows (1 KB each) in cache


def _read_table(path: Path) -> NDArray[np.float16]:
    """Map the tensor of a safetensors file: what is read of it all processes share."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
    tensor = header["embedding.weight"]
    return np.memmap(
        path,
        np.float16,
        "r",
        offset=start + tensor["data_offsets"][0],
        shape=tuple(tensor["shape"]),
    ).view(np.ndarray)


class BundledVectors:
    """Embeds texts by pooling static token vectors, several thousand texts a second on one core.

    A text's vector is the mean over its distinct alphanumeric tokens, weighted by 1 + log(count),
    L2-normalised; equal on every machine, and zero for a text without any token. All instances
    share the weights (32 MB), read on first use. Thread-safe.
    """

    @property
    def dimensions(self) -> int:
        """Vector size; known without reading the weights."""
        return BUNDLED_DIMENSIONS

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed many texts at once, as an array of shape (len(texts), 256)."""
        return self.encode_with_tokens(texts)[0]

    def encode_with_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.float32], list[NDArray[np.int64]]]:
        """Embed texts as `encode`, and give the distinct alphanumeric tokens of each, ascending."""
        return _load_model().pool(texts)

    def vectors_of(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of tokens, not normalised, as an array of shape (len(tokens), 256)."""
        return _load_model().vectors(tokens)

    def token_vectors(self, text: str) -> tuple[list[str], NDArray[np.float32]]:
        """Give the distinct alphanumeric tokens of a text, in order, and their vectors."""
        model = _load_model()
        ids = _distinct_ids(text)
        return [model.piece(i) for i in ids.tolist()], model.vectors(ids)

    def may_name(self, word: str) -> bool:
        """Tell a word that may name a subject from one of general use: "place", "several".

        The model gives words that stand in texts of every kind short vectors.
        """
        pieces, vectors = self.token_vectors(word.lower())
        return len(pieces) > 1 or bool(np.linalg.norm(vectors) >= _LEAST_OF_NAME)

    async def encode_question(self, text: str) -> NDArray[np.float32]:
        """Embed one short text, as an array of shape (256,); leaves the event loop free."""
        if _loaded:  # then it takes 0.1 ms, less than changing threads
            return self._encoded(text)
        return await in_background(self._encoded, text)

    def _encoded(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.encode([text])[0]
        return vector


class BundledModel(BundledVectors):
    """The bundled model as an `Embedder` takes one."""

    model_name: str = BUNDLED_MODEL_NAME
    embed_batch_size: int = BUNDLED_BATCH_SIZE

    def get_text_embedding_batch(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed passages."""
        return self.encode(texts)

    async def aget_text_embedding_batch(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed passages in a thread."""
        return await in_background(self.encode, texts)

    async def aget_query_embedding(self, query: str) -> NDArray[np.float32]:
        """Embed a question, in a thread where the weights are still to be read."""
        return await self.encode_question(query)


class _Model:
    def __init__(self, directory: Path) -> None:
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(directory / _TOKENIZER))
        self.words = WordTokens(self._tokenizer)
        self._table = _read_table(directory / _WEIGHTS)
        self._kinds = np.zeros(self._table.shape[0], np.uint8)  # of all tokens they take 20 ms

    def vectors(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of tokens, stored as halves, as an array of shape (len(tokens), 256)."""
        return self._table.take(tokens, axis=0).astype(np.float32)

    def piece(self, token: int) -> str:
        """Spell a token, without the mark of a word's beginning."""
        return (self._tokenizer.id_to_token(token) or "").lstrip(_MARK)

    def kinds(self, tokens: Numbers) -> NDArray[np.uint8]:
        """Of each token the bits `_KNOWN`, `_ALPHANUMERIC` and `_VISIBLE`."""
        kinds = self._kinds[tokens]
        if not kinds.all():
            for token in set(tokens[kinds == 0].tolist()):
                self._kinds[token] = _kind(self.piece(token))
            kinds = self._kinds[tokens]
        return kinds

    def pool(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[NDArray[np.int64]]]:
        token, counts, bounds = self._distinct_tokens(texts)
        pooled = np.zeros((len(texts), self._table.shape[1]), np.float32)
        weights = (1 + np.log(counts)).astype(np.float32)[:, None]
        for first, last in _steps(bounds, _ROWS_PER_STEP):
            start, stop = bounds[first], bounds[last]
            rows = self.vectors(token[start:stop])
            repeated = np.flatnonzero(counts[start:stop] > 1)
            rows[repeated] *= weights[start:stop][repeated]
            for i in range(first, last):
                # Adds one row after another, so that no machine rounds in another order.
                np.add.reduce(rows[bounds[i] - start : bounds[i + 1] - start], 0, out=pooled[i])
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        np.divide(pooled, norms, out=pooled, where=norms > 0)
        kept = (self.kinds(token) & _ALPHANUMERIC) > 0
        if not kept.all():
            bounds = np.r_[0, np.cumsum(kept)][bounds].tolist()
            token = token[kept]
        return pooled, [token[start:stop] for start, stop in pairwise(bounds)]

    def _distinct_tokens(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int]]:
        """The tokens that count, ascending within each text; how often; where texts begin."""
        tokens, lengths = self.words.ids(texts)
        owners = np.repeat(np.arange(len(texts)), lengths)
        kinds = self.kinds(tokens)
        kept = (kinds & _ALPHANUMERIC) > 0
        has_words = np.bincount(owners[kept], minlength=len(texts)) > 0
        if not has_words.all():
            kept |= ((kinds & _VISIBLE) > 0) & ~has_words[owners]
        size = self._table.shape[0]
        keys, counts = np.unique(owners[kept] * size + tokens[kept], return_counts=True)
        owners, tokens = np.divmod(keys, size)
        return tokens, counts, np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()


def _steps(bounds: Sequence[int], rows: int) -> Iterator[tuple[int, int]]:
    first = 0
    for last in range(1, len(bounds)):
        if bounds[last] - bounds[first] >= rows or last == len(bounds) - 1:
            yield first, last
            first = last


_KNOWN, _ALPHANUMERIC, _VISIBLE = 1, 2, 4


def _kind(piece: str) -> int:
    if len(piece) == len("<0x00>") and piece.startswith("<0x"):
        byte = int(piece[3:5], 16)
        is_word, is_blank = byte >= 0x80, chr(byte).isspace()  # one byte of a rare letter
    else:
        is_control = piece in _CONTROL
        is_word = not is_control and any(map(str.isalnum, piece))
        is_blank = is_control or not piece.strip()
    return _KNOWN | (_ALPHANUMERIC if is_word else 0) | (0 if is_blank else _VISIBLE)


_load_lock = threading.Lock()
_loaded: list[_Model] = []


def _load_model() -> _Model:
    if not _loaded:
        with _load_lock:
            if not _loaded:
                _loaded.append(_Model(_package_directory()))
    return _loaded[0]


def _package_directory() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "The bundled embedding needs the wordllama distribution, which is not installed.",
            hint="Install webrag with its dependencies, or set EMBEDDING_PROVIDER=openai.",
        )
    return Path(spec.origin).parent


@lru_cache(maxsize=4096)
def _distinct_ids(text: str) -> NDArray[np.int64]:
    model = _load_model()
    ids, _ = model.words.ids([text])
    kept: NDArray[np.int64] = ids[(model.kinds(ids) & _ALPHANUMERIC) > 0]
    return kept[np.sort(np.unique(kept, return_index=True)[1])]
