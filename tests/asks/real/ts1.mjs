// A server on the official TypeScript SDK 1.x that asks: `node ts1.mjs http|stdio`. Its tool does what telling.py says, in
// the plain way of this SDK: elicitInput, createMessage and listRoots, which over HTTP go out on the session's GET stream.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js";

const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const sampling = { messages: [{ role: "user", content: { type: "text", text: "Say hi € ☃" } }], maxTokens: 20 };
const url = { mode: "url", message: "Go there", url: "https://example.com/connect?to=größe", elicitationId: "e1" };
const inputSchema = { type: "object" };
const ASKS = {
  form: (server, options) => server.elicitInput({ message: "Wie heißt du?", requestedSchema }, options),
  url: (server, options) => server.elicitInput(url, options),
  sampling: (server, options) => server.createMessage(sampling, options),
  "sampling with tools": (server, options) =>
    server.createMessage({ ...sampling, tools: [{ name: "weigh", inputSchema }] }, options),
  roots: (server, options) => server.listRoots(undefined, options),
};

const test = connect(Number(process.env.WITNESS_PORT), "127.0.0.1");
const of = process.env.WITNESS_OF;
const tell = (what) => test.write(`${JSON.stringify(what)}\n`);
const orders = new Map();

/** Resolves once the test has ordered it. */
function order(label, wanted) {
  const key = `${label} ${wanted}`;
  if (!orders.has(key)) orders.set(key, Promise.withResolvers());
  return orders.get(key).promise;
}

createInterface({ input: test }).on("line", (line) => {
  const { label, order: wanted } = JSON.parse(line);
  order(label, wanted);
  orders.get(`${label} ${wanted}`).resolve();
});

async function one(server, label, kind, signal) {
  const giveUp = new AbortController();
  void order(label, "give up").then(() => giveUp.abort());
  const outcome = await answer(ASKS[kind](server, { signal: AbortSignal.any([signal, giveUp.signal]) }), giveUp.signal, signal);
  orders.delete(`${label} give up`);
  tell({ heard: kind, by: label });
  return outcome;
}

async function answer(asking, givenUp, cancelled) {
  try {
    return { result: await asking };
  } catch (error) {
    if (givenUp.aborted) return { gave: "up" };
    if (cancelled.aborted || !(error instanceof McpError)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

async function run(server, { as: label, asks, together, hold }, signal) {
  const cancelled = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  cancelled.catch(() => {});
  tell({ began: label });
  let how = "failed";
  try {
    const heard = together ? await Promise.all(asks.map((kind) => one(server, label, kind, signal))) : [];
    if (!together) for (const kind of asks) heard.push(await one(server, label, kind, signal));
    if (hold) await Promise.race([order(label, "go on"), cancelled]);
    how = "answered";
    return heard;
  } finally {
    tell({ ended: label, how: signal.aborted ? "cancelled" : how });
  }
}

function build() {
  const server = new Server({ name: "ts1", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: ["ask", "say"].map((name) => ({ name, inputSchema })) }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const text = params.name === "ask" ? JSON.stringify({ heard: await run(server, params.arguments, signal) }) : params.name;
    return { content: [{ type: "text", text }] };
  });
  return server;
}

const transports = new Map();

async function serve(request, response) {
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !transports.has(id)) return response.writeHead(404).end();
  if (id !== undefined) return transports.get(id).handleRequest(request, response);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => transports.set(session, transport),
  });
  await build().connect(transport);
  await transport.handleRequest(request, response);
}

if (process.argv[2] === "stdio") {
  tell({ pid: process.pid, name: "ts1", url: null, of });
  process.stdin.on("end", () => process.exit(0)); // the SDK's transport does not notice
  await build().connect(new StdioServerTransport());
} else {
  const http = createServer(serve);
  http.listen(0, "127.0.0.1", () =>
    tell({ pid: process.pid, name: "ts1", url: `http://127.0.0.1:${http.address().port}/mcp`, of }),
  );
}
