// A server over HTTP+SSE on the official TypeScript SDK: `node server.mjs PACKAGE`. Writes its URL.
import { createServer } from "node:http";

const sdk = process.argv[2];
const { Server } = await import(`${sdk}/server/index.js`);
const { SSEServerTransport } = await import(`${sdk}/server/sse.js`);
const { CallToolRequestSchema, GetPromptRequestSchema, ListToolsRequestSchema } = await import(`${sdk}/types.js`);

function build() {
  const server = new Server({ name: "typescript", version: "1" }, { capabilities: { tools: {}, prompts: {}, logging: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ["echo", "ask"].map((name) => ({ name, description: name, inputSchema: { type: "object" } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const text = params.name === "ask" ? (await server.listRoots()).roots[0].name : params.arguments.text;
    await server.sendLoggingMessage({ level: "info", data: text });
    return { content: [{ type: "text", text }] };
  });
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => ({
    messages: [{ role: "user", content: { type: "text", text: `${params.name} ${JSON.stringify(params.arguments)}` } }],
  }));
  return server;
}

const transports = new Map();
const http = createServer(async (request, response) => {
  const url = new URL(request.url, "http://127.0.0.1");
  if (request.method === "GET" && url.pathname === "/sse") {
    const transport = new SSEServerTransport("/messages", response);
    transports.set(transport.sessionId, transport);
    response.on("close", () => transports.delete(transport.sessionId));
    return build().connect(transport);
  }
  const transport = transports.get(url.searchParams.get("sessionId"));
  if (request.method !== "POST" || url.pathname !== "/messages" || !transport) return response.writeHead(404).end();
  return transport.handlePostMessage(request, response);
});
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/sse`));
