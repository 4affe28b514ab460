// Talks to WebRAG with the TypeScript SDK over stdio or HTTP: list, call, progress, cancel.
// Usage: node client.mjs stdio COMMAND ARG... | node client.mjs http URL; PAGE names a slow page.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, ...rest] = process.argv.slice(2);
const page = process.env.PAGE;
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(rest[0]));
const client = new Client({ name: "webrag-interop", version: "1.0.0" });
await client.connect(transport);

const { tools } = await client.listTools();
assert.deepEqual(
  tools.map((tool) => tool.name),
  ["answer", "search", "read", "status", "ingest", "verify"],
);

// The page takes longer than the timeout; progress resets it.
let events = 0;
const answer = await client.callTool(
  { name: "answer", arguments: { url: `${page}/slow`, query: "What does the slow page say?" } },
  undefined,
  { onprogress: () => (events += 1), resetTimeoutOnProgress: true, timeout: 4000 },
);
assert.ok(!answer.isError, JSON.stringify(answer.content));
assert.match(answer.content[0].text, /\[CITATIONS\]/);
assert.ok(events >= 3, `${events} progress events`);

const link = answer.content.find((block) => block.type === "resource_link");
const passage = await client.readResource({ uri: link.uri });
assert.match(passage.contents[0].text, /Chars \d+-\d+ of webrag:\/\/page\//);

const controller = new AbortController();
const started = performance.now();
const cancelled = client.callTool(
  { name: "answer", arguments: { url: `${page}/slower`, query: "What does it say?" } },
  undefined,
  { signal: controller.signal },
);
setTimeout(() => controller.abort(), 300);
await assert.rejects(cancelled, /abort/i);
const afterwards = await client.callTool({ name: "status", arguments: {} });
assert.match(afterwards.content[0].text, /^\[CORPUS STATUS\]/);

const unknown = await client.callTool({ name: "search", arguments: { question: "x" } });
assert.ok(unknown.isError);
await client.close();
console.log(
  `${kind}: ok, ${tools.length} tools, ${events} progress events, cancelled and answered again in ` +
    `${(performance.now() - started).toFixed(0)} ms`,
);
