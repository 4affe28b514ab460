"""Puts a question to the user behind a client, where the client and the transport can."""

import asyncio
import logging
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field

__all__ = ["ask_user"]

logger = logging.getLogger(__name__)

# A question nobody answers must not outlast what clients wait for a call.
_PATIENCE_S = 40.0


class _Consent(BaseModel):
    agree: bool = Field(description="Yes")


async def ask_user(context: Context[Any, Any], question: str) -> bool | None:
    """Whether the user agrees; False when they decline or stay silent, None when nobody can ask."""
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return None
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await context.elicit(question, _Consent)
    except TimeoutError:
        return False
    except MCPError as error:
        # The stateless revision declares the capability and has no way back to the client.
        logger.info("The user could not be asked: %s", error)
        return None
    return answer.action == "accept" and answer.data.agree
