"""The base of all rerankers that ask a service, and that of Jina, which has no package."""

import json
import time
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from llama_index.core.base.llms.generic_utils import get_from_param_or_env
from llama_index.core.bridge.pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
)
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.postprocessor.webrag.base import Reranker
from llama_index.postprocessor.webrag.filters import rescored
from llama_index.postprocessor.webrag.rerank_service import (
    Call,
    RerankInputError,
    RerankService,
    Send,
)
from llama_index.postprocessor.webrag.service_calls import run_blocking
from typing_extensions import override

_MOST_BYTES: Final = 5_000_000
_ROUNDING: Final = 1e-6

Scored = tuple[int, float, float | None]


class RemoteRerank(Reranker):
    """Orders nodes by the relevance a service gives them; the base of the rerankers with a key.

    The score is the service's, in [0, 1]. Nodes without text are not sent and come last, with
    score 0.0. Nodes are never changed: the result holds copies, equal scores keep their order.
    All nodes are sent in one request; stock retrievers and the engine ask for far fewer than fit.

    Use it with `async with` to keep connections open between the calls of one event loop;
    without, each call opens its own. Instances, and copies made by `model_copy`, share the
    circuit breaker and may be used from several threads and loops. The synchronous method
    works inside a running loop too, which waits for it.

    Raises:
        RerankError: From the postprocessing methods, when there are no scores; its subclasses
            and message tell the cause. The nodes are as they were.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    provider: ClassVar[str]
    path: ClassVar[str]
    key_variable: ClassVar[str]

    api_key: str | SecretStr | None = Field(
        default=None,
        validate_default=True,
        exclude=True,
        repr=False,
        description="Key for the service, kept as SecretStr; None for that of the variable which "
        "other LlamaIndex integrations of the provider read.",
    )
    model: str = Field(min_length=1, description="Model name at the provider.")
    base_url: str = Field(description="Address of the service, without the endpoint's path.")
    top_n: int | None = Field(default=None, ge=1, description="Nodes kept; None keeps all.")
    instruction: str | None = Field(
        default=None, description="What to prefer, in words, for example code examples."
    )
    timeout_s: float = Field(
        default=10.0, gt=0, allow_inf_nan=False, description="Seconds for a call, with retries."
    )
    backoff_s: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description="Longest pause before the second request; twice that before the third.",
    )
    metadata_mode: MetadataMode = Field(
        default=MetadataMode.EMBED, description="Which rendering of a node is sent."
    )
    confidence_key: str = Field(
        default="confidence",
        description="Metadata key for the service's confidence in a score, where it gives one.",
    )
    max_document_chars: int = Field(
        default=16_000, ge=1, description="Characters sent of one node; the rest is cut off."
    )
    proxy: str | None = Field(
        default=None,
        exclude=True,
        repr=False,
        description="Address of a proxy, or `environment` for those that variables name; None asks "
        "the service directly.",
    )

    _service: RerankService = PrivateAttr()

    @field_validator("api_key", mode="before")
    @classmethod
    def _key_or_variable(cls, value: object) -> object:
        if value is None or isinstance(value, str):
            return SecretStr(get_from_param_or_env("api_key", value, cls.key_variable))
        return value

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, value: SecretStr) -> SecretStr:
        key = value.get_secret_value()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("a key consists of printable ASCII characters without spaces")
        return value

    @property
    def secret(self) -> str:
        """The key, as it is sent."""
        assert isinstance(self.api_key, SecretStr)
        return self.api_key.get_secret_value()

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError("base_url is an http or https address without user name")
        if parts.query or parts.fragment:
            raise ValueError("base_url has neither query nor fragment")
        return value.rstrip("/")

    @override
    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._service = RerankService(self.provider, proxy=self.proxy)

    async def __aenter__(self) -> Self:
        await self._service.keep_connection()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close connections kept open; the instance stays usable."""
        await self._service.aclose()

    @abstractmethod
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        """The request as the provider wants it."""

    def _sender(self, payload: dict[str, Any]) -> Send | None:
        """Makes the request with the provider's own package; None where it has none."""
        del payload
        return None

    @override
    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_blocking(self._apostprocess_nodes(nodes, query_bundle))

    @override
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None or not query_bundle.query_str.strip():
            raise self._cannot_send("the question is missing or blank")
        self._tell_start(query_bundle, nodes, top_n=self.top_n, model=self.model)
        texts = [self._text(item) for item in nodes]
        sent = [position for position, text in enumerate(texts) if text]
        found = await self._scores(query_bundle.query_str, [texts[p] for p in sent])
        best = sorted(found, key=lambda scored: (-scored[1], scored[0]))
        ranked = [self._copy(nodes[sent[i]], score, extra) for i, score, extra in best]
        ranked += [self._copy(nodes[p], 0.0, None) for p, text in enumerate(texts) if not text]
        return self._told(ranked[: self.top_n])

    def _text(self, item: NodeWithScore) -> str:
        # A node with nothing but metadata has nothing to be relevant.
        if not item.node.get_content(MetadataMode.NONE).strip():
            return ""
        shown = item.node.get_content(self.metadata_mode)
        for key, value in item.node.metadata.items():
            if isinstance(value, list | tuple):  # headings, which print as Python's list
                shown = shown.replace(f"{key}: {value}", f"{key}: {' > '.join(map(str, value))}", 1)
        return shown[: self.max_document_chars].strip()

    async def _scores(self, query: str, documents: list[str]) -> list[Scored]:
        """Index, score and confidence of the best documents, at most `top_n`."""
        if not documents:
            return []
        wanted = min(self.top_n or len(documents), len(documents))
        body = _encode(self._payload(query, documents, wanted))
        # Services count the question once more for each passage after the first.
        needed = len(body) + len(_encode(query)) * (len(documents) - 1)
        if needed > _MOST_BYTES:
            raise self._cannot_send(
                f"question and passages need {needed:,} bytes, and a request may have "
                f"{_MOST_BYTES:,}"
            )
        call = Call(
            url=self.base_url + self.path,
            key=self.secret,
            body=body,
            deadline=time.monotonic() + self.timeout_s,
            backoff_s=self.backoff_s,
            send=self._sender(json.loads(body)),
        )
        read = partial(read_results, documents=len(documents), wanted=wanted)
        return await self._service.ask(call, read)

    def _copy(self, item: NodeWithScore, score: float, confidence: float | None) -> NodeWithScore:
        added = {} if confidence is None else {self.confidence_key: confidence}
        return rescored(item.node, score, added)

    def _cannot_send(self, why: str) -> RerankInputError:
        return RerankInputError(f"{self.provider} was not asked: {why}.", provider=self.provider)

    def _instructed(self, query: str) -> str:
        """The query with the instruction before it, for services without a field for one."""
        return f"{self.instruction}\n{query}" if self.instruction else query


def read_results(answer: Any, *, documents: int, wanted: int) -> list[Scored]:
    """Read index, score and confidence of each of the `wanted` results.

    Where the answer is not a ranking of the documents, ValueError says how, as the end of a
    sentence.
    """
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ValueError("no list of results")  # noqa: TRY004
    if len(results) != wanted:
        raise ValueError(f"{len(results)} results where {wanted} were asked for")
    found = [_read_result(result, documents) for result in results]
    if len({index for index, *_ in found}) != len(found):
        raise ValueError("two results for one passage")
    return found


def _read_result(result: Any, documents: int) -> Scored:
    if not isinstance(result, dict):
        raise ValueError("a result that is not an object")  # noqa: TRY004
    index = result.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < documents:
        raise ValueError("a result for a passage that was not sent")
    score = _unit(result.get("relevance_score"), "a relevance score")
    confidence = result.get("confidence")
    return index, score, None if confidence is None else _unit(confidence, "a confidence")


def _unit(value: Any, what: str) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not -_ROUNDING <= value <= 1 + _ROUNDING:  # NaN is in no range
        raise ValueError(f"{what} that is not a number from 0 to 1")
    return min(max(float(value), 0.0), 1.0)


def _encode(value: Any) -> bytes:
    # Lone surrogates, which no service accepts, become question marks.
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


class JinaRerank(RemoteRerank):
    """Orders nodes by Jina's relevance.

    The instruction is put before the question, as Jina has no field for it. Everything else is
    as `RemoteRerank` describes it.

    Example:
        >>> rerank = JinaRerank(api_key=key, top_n=5)
        >>> nodes = await rerank.apostprocess_nodes(nodes, query_str="how is the port changed?")
    """

    provider: ClassVar[str] = "Jina"
    path: ClassVar[str] = "/rerank"
    key_variable: ClassVar[str] = "JINAAI_API_KEY"

    model: str = Field(
        default="jina-reranker-v2-base-multilingual",
        min_length=1,
        description="Model name at Jina.",
    )
    base_url: str = Field(default="https://api.jina.ai/v1", description="Address before /rerank.")

    @override
    def _payload(self, query: str, documents: list[str], top_n: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "query": self._instructed(query),
            "documents": documents,
            "top_n": top_n,
            "return_documents": False,
        }
