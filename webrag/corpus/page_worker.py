"""Does a worker process' share of a page in one go: converts it, cuts it, packs its words.

No LlamaIndex, which takes seconds to import.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from llama_index.node_parser.webrag import Chunk, ChunkSizes, DocumentTooLargeError, cut_chunks
from pydantic import ConfigDict

from webrag.corpus.rows import document_fields, indexed_text_of
from webrag.frozen import FrozenModel
from webrag.ingestion.models import Conversion, FetchedPage, NormalizedDocument
from webrag.lexical.postings import TooManyPostingsError, pack_texts

Tokenize = Callable[[str], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class CutSetup:
    """The sizes of chunks, and an encoding of tiktoken's or a saved tokenizer of Hugging Face."""

    kind: Literal["tiktoken", "huggingface"]
    tokenizer: str
    parent_tokens: int
    child_tokens: int


@dataclass(frozen=True, slots=True)
class PageTask:
    """A page to convert, and to cut unless its text has the hash `known`, or a document to cut."""

    page: FetchedPage | None = None
    document: NormalizedDocument | None = None
    known: str | None = None


class CutPage(FrozenModel):
    """The chunks of a page, and its words; `term_count` of them with repetitions."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    chunks: list[Chunk]
    postings: tuple[tuple[str, int, bytes], ...]
    term_count: int


class PagePart(FrozenModel):
    """A part of what comes of a page; `refusal` says why it cannot be cut."""

    conversion: Conversion | None = None
    cut: CutPage | None = None
    refusal: str = ""


def make_page_worker(setup: CutSetup) -> Callable[[PageTask], Generator[PagePart, None, PagePart]]:
    """Load what converts and cuts pages; the conversion comes first, then the cut."""
    from webrag.ingestion.extract import make_converter

    convert = make_converter(None)
    tokenize = _tokenizer(setup)
    sizes = ChunkSizes(setup.parent_tokens, setup.child_tokens)

    def work(task: PageTask) -> Generator[PagePart, None, PagePart]:
        document = task.document
        if task.page is not None:
            conversion = convert(task.page)
            document = conversion.document
            if document is None or document.content_hash == task.known:
                return PagePart(conversion=conversion)
            yield PagePart(conversion=conversion)
        assert document is not None
        try:
            return PagePart(cut=_cut(document, sizes, tokenize))
        except (DocumentTooLargeError, TooManyPostingsError) as error:
            return PagePart(refusal=str(error))

    return work


def _cut(document: NormalizedDocument, sizes: ChunkSizes, tokenize: Tokenize) -> CutPage:
    chunks = cut_chunks(
        document.markdown, sizes, tokenize, html=document.html, base_url=document.url
    )
    fields = document_fields(document, chunks, ids=[""] * len(chunks))
    searched = [each for chunk, each in zip(chunks, fields, strict=True) if chunk.level == "child"]
    postings, term_count = pack_texts(map(indexed_text_of, searched))
    return CutPage(chunks=chunks, postings=tuple(postings), term_count=term_count)


def _tokenizer(setup: CutSetup) -> Tokenize:
    if setup.kind == "tiktoken":
        import tiktoken

        encoding = tiktoken.get_encoding(setup.tokenizer)
        whole = partial(encoding.encode, allowed_special="all")
        # To look for special tokens, which begin so, takes longer than to read a short text.
        return lambda text: (whole if "<|" in text else encoding.encode_ordinary)(text)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(setup.tokenizer)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode
