"""Stored pages and passages as MCP resources; reading one stores and fetches nothing."""

from uuid import UUID

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from webrag.errors import WebRAGError
from webrag.mcp_server.replies import new_nonce
from webrag.mcp_server.runtime import Runtime
from webrag.presentation.errors import failure_text
from webrag.presentation.page_texts import format_page, format_passage, page_uri, passage_uri

__all__ = ["add_resources"]

_MIME_TYPE = "text/plain"


def add_resources(server: MCPServer[Runtime], runtime: Runtime, *, token_budget: int) -> None:
    """Offer `webrag://page/{id}` and `webrag://passage/{id}`; the ids outlive edits of a page.

    Args:
        server: Gets the templates.
        runtime: Gives the open memory.
        token_budget: Longest text of one resource.
    """

    @server.resource(
        page_uri("{id}"),
        name="page",
        title="Stored page",
        description="The text of a stored page, as offsets count it.",
        mime_type=_MIME_TYPE,
    )
    async def page(id: str) -> str:
        return await _page(runtime, _identity(page_uri(id), id), token_budget)

    @server.resource(
        passage_uri("{id}"),
        name="passage",
        title="Passage of a stored page",
        description="A passage that a brief quoted, whole, with its place on the page.",
        mime_type=_MIME_TYPE,
    )
    async def passage(id: str) -> str:
        return await _passage(runtime, _identity(passage_uri(id), id))


async def _page(runtime: Runtime, identity: UUID, token_budget: int) -> str:
    try:
        memory = await runtime.memory()
        page = await memory.page_text(identity)
    except WebRAGError as error:
        raise ResourceError(failure_text(error)) from error
    if page is None:
        raise _not_found(page_uri(identity))
    return format_page(
        page, token_budget=token_budget, count_tokens=memory.count_tokens, nonce=new_nonce()
    )


async def _passage(runtime: Runtime, identity: UUID) -> str:
    try:
        passage = await (await runtime.memory()).passage_text(identity)
    except WebRAGError as error:
        raise ResourceError(failure_text(error)) from error
    if passage is None:
        raise _not_found(passage_uri(identity))
    return format_passage(passage, nonce=new_nonce())


def _identity(uri: str, given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise _not_found(uri) from None


def _not_found(uri: str) -> ResourceNotFoundError:
    return ResourceNotFoundError(
        f"{uri} is not stored; the page may have changed or been deleted since. `search` finds "
        "what is stored now."
    )
