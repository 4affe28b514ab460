# The MCP server over HTTP; it expects an external Postgres in WEBRAG_DATABASE_URL.
FROM python:3.12-slim

COPY . /src
RUN python -m venv /opt/webrag \
    && /opt/webrag/bin/pip install --no-cache-dir --disable-pip-version-check \
        -c /src/constraints.txt "/src[workers]" \
    && rm -rf /src \
    && useradd --create-home --uid 10001 webrag

USER webrag
ENV PATH=/opt/webrag/bin:$PATH MCP_TRANSPORT=streamable-http MCP_HOST=0.0.0.0 MCP_PORT=8765
EXPOSE 8765
HEALTHCHECK --interval=15s --timeout=3s --start-period=60s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=2)"]
CMD ["webrag", "mcp"]
