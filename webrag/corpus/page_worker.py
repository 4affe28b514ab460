"""What a worker process does with a page's text: the jobs behind `PageCutter`.

Cuts it into chunks and packs the terms of chunks; no LlamaIndex, which takes seconds to import.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final, Literal

from llama_index.node_parser.webrag import (
    FLAG_KEYS,
    Chunk,
    ChunkSizes,
    DocumentTooLargeError,
    cut_chunks,
)

from webrag.lexical.analysis import analyze
from webrag.lexical.postings import PostingRow, TooManyPostingsError, pack_postings

Tokenize = Callable[[str], Sequence[Any]]

_REFUSED: Final = b"\x02"
_DONE: Final = b"\x01"


class PageRefusedError(ValueError):
    """A page is beyond a limit; the message says which, as a sentence about "it"."""


@dataclass(frozen=True, slots=True)
class CutSetup:
    """How pages are cut in a process.

    Attributes:
        tokenizer: Name of one of tiktoken's encodings, or what a tokenizer of Hugging Face is
            saved as.
    """

    kind: Literal["tiktoken", "huggingface"]
    tokenizer: str
    parent_tokens: int
    child_tokens: int

    def to_bytes(self) -> bytes:
        """As `make_cutter` takes it."""
        return json.dumps(astuple(self)).encode()


@dataclass(frozen=True, slots=True)
class CutRequest:
    """A page to cut; as for `cut_chunks`."""

    text: str
    html: str
    base_url: str

    def to_bytes(self) -> bytes:
        """As the job takes it."""
        return json.dumps(astuple(self), ensure_ascii=False).encode()


def make_cutter(setup: bytes) -> Callable[[bytes], bytes]:
    """What cuts pages: a `CutRequest` to what `read_chunks` reads."""
    found = CutSetup(*json.loads(setup))
    tokenize = _tokenizer(found)
    sizes = ChunkSizes(found.parent_tokens, found.child_tokens)

    def cut(payload: bytes) -> bytes:
        request = CutRequest(*json.loads(payload))
        try:
            chunks = cut_chunks(
                request.text, sizes, tokenize, html=request.html, base_url=request.base_url
            )
        except DocumentTooLargeError as error:
            return _REFUSED + str(error).encode()
        return _DONE + _written(chunks)

    return cut


def read_chunks(answer: bytes) -> list[Chunk]:
    """The chunks of a page.

    Raises:
        PageRefusedError: It is beyond a limit.
    """
    found = json.loads(_content(answer))
    paths = [tuple(path) for path in found["paths"]]
    return [
        Chunk(
            level=level,
            index=index,
            start=start,
            end=end,
            first_token=first_token,
            tokens=tokens,
            path=paths[path],
            parent=parent,
            flags=dict(zip(map(str, FLAG_KEYS), flags, strict=True)),
            images=images,
            image_text=image_text,
            html=html,
        )
        for (
            level, index, start, end, first_token, tokens, path, parent, flags, images, image_text,
            html,
        ) in found["chunks"]
    ]  # fmt: skip


def make_analyzer(_setup: bytes) -> Callable[[bytes], bytes]:
    """What packs terms: a list of texts as JSON to what `read_postings` reads."""
    return _analyzed


def read_postings(answer: bytes) -> tuple[list[PostingRow], int]:
    """The postings of a page, and how many terms its chunks have.

    Raises:
        PageRefusedError: It is beyond a limit.
    """
    head, _, packed = _content(answer).partition(b"\n")
    found = json.loads(head)
    rows: list[PostingRow] = []
    start = 0
    for term, segment, size in zip(found["terms"], found["segments"], found["sizes"], strict=True):
        rows.append(PostingRow(term, segment, packed[start : start + size]))
        start += size
    return rows, found["count"]


def _analyzed(payload: bytes) -> bytes:
    terms = [analyze(text) for text in json.loads(payload)]
    try:
        rows = pack_postings(terms)
    except TooManyPostingsError as error:
        return _REFUSED + str(error).encode()
    head = {
        "count": sum(map(len, terms)),
        "terms": [row.term for row in rows],
        "segments": [row.segment for row in rows],
        "sizes": [len(row.packed) for row in rows],
    }
    return b"".join([_DONE, json.dumps(head).encode(), b"\n", *(row.packed for row in rows)])


def _written(chunks: Sequence[Chunk]) -> bytes:
    # Many chunks share a path.
    paths: dict[tuple[str, ...], int] = {}
    rows = [
        (
            chunk.level,
            chunk.index,
            chunk.start,
            chunk.end,
            chunk.first_token,
            chunk.tokens,
            paths.setdefault(chunk.path, len(paths)),
            chunk.parent,
            [chunk.flags[flag] for flag in FLAG_KEYS],
            chunk.images,
            chunk.image_text,
            chunk.html,
        )
        for chunk in chunks
    ]
    return json.dumps({"paths": list(paths), "chunks": rows}, ensure_ascii=False).encode()


def _content(answer: bytes) -> bytes:
    if answer[:1] == _REFUSED:
        raise PageRefusedError(answer[1:].decode())
    return answer[1:]


def _tokenizer(setup: CutSetup) -> Tokenize:
    if setup.kind == "tiktoken":
        import tiktoken

        encoding = tiktoken.get_encoding(setup.tokenizer)
        return lambda text: encoding.encode(text, allowed_special="all")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(setup.tokenizer)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode
