"""How long a client waits for the tool list, compared with a bare server of the same SDK.

    python benchmarks/mcp_start.py [RUNS]

Both are started as processes of their own, alternately, and asked `initialize` and `tools/list`
over standard input and output; the median of each and their ratio are printed.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

BARE = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bare")
@server.tool()
async def echo(text: str) -> str:
    "Give the text back."
    return text
server.run("stdio")
"""


async def seconds_to_list(parameters: StdioServerParameters) -> float:
    with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230
        started = time.perf_counter()
        async with Client(stdio_client(parameters, errlog=nowhere)) as client:
            await client.list_tools()
            return time.perf_counter() - started


async def main(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE)
        environment = os.environ | {"WEBRAG_DATA_DIR": folder}
        servers = {
            "bare": StdioServerParameters(command=sys.executable, args=[str(bare)]),
            "webrag": StdioServerParameters(
                command=str(Path(sys.executable).with_name("webrag")),
                args=["mcp"],
                env=environment,
            ),
        }
        taken: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(runs + 1):
            for name, parameters in servers.items():
                taken[name].append(await seconds_to_list(parameters))
    # The first start of each compiles modules.
    medians = {name: statistics.median(times[1:]) for name, times in taken.items()}
    for name, median in medians.items():
        print(f"{name}: median {median * 1000:.0f} ms of {runs} starts to tools/list")
    print(f"ratio: {medians['webrag'] / medians['bare']:.2f}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
