"""Nodes with vectors made of their ids, and what a table holds of them."""

import zlib
from typing import Any

import numpy as np
from llama_index.core.schema import TextNode
from psycopg import AsyncConnection, sql

from webrag.postgres.database import Database, table

DIMENSIONS = 16
URL = "https://docs.test/guide"


def vector(text: str) -> Any:
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    values = rng.normal(size=DIMENSIONS)
    return (values / np.linalg.norm(values)).tolist()


def node(node_id: str, text: str | None = None, **metadata: Any) -> Any:
    made = TextNode(id_=node_id, text=text or f"Text of {node_id}.", metadata=metadata)
    made.embedding = vector(node_id)
    return made


async def read(database: Database, statement: Any, name: Any) -> Any:
    query = sql.SQL(statement).format(table(database.config.collection, name))

    async def work(connection: AsyncConnection[Any]) -> Any:
        return await (await connection.execute(query)).fetchall()

    return await database.run(work)
