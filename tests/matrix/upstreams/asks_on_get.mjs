// A sessions-only upstream on the official TypeScript SDK 1.x, whose tool asks for everything in the way of that SDK's
// server methods: elicitInput, createMessage and listRoots go out on the GET stream of the session, unrelated to the
// call. The SDK drops what it sends before somebody listens there, so the tool waits for that first; a gateway that never
// listens leaves the call hanging. Prints its URL when ready.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const requestedSchema = {
  type: "object",
  properties: { name: { type: "string", title: "Name", default: "Ann" }, age: { type: "integer", minimum: 0 } },
  required: ["name"],
};
const message = { role: "user", content: { type: "text", text: "Say hi € ☃" } };

function build(listening) {
  const server = new Server({ name: "asks-on-get", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "ask", inputSchema: { type: "object" } }] }));
  server.setRequestHandler(CallToolRequestSchema, async () => {
    await listening;
    const answers = {
      elicitation: await server.elicitInput({ message: "Wie heißt du?", requestedSchema }),
      sampling: await server.createMessage({ messages: [message], maxTokens: 20 }),
      roots: await server.listRoots(),
    };
    return { content: [{ type: "text", text: JSON.stringify(answers) }] };
  });
  return server;
}

const transports = new Map();
const listeners = new Map();

async function serve(request, response) {
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !transports.has(id)) return response.writeHead(404).end();
  if (request.method === "GET") {
    const { writeHead } = response;
    response.writeHead = (...head) => {
      listeners.get(id)();
      return writeHead.apply(response, head);
    };
  }
  if (id !== undefined) return transports.get(id).handleRequest(request, response);
  const { promise: listening, resolve } = Promise.withResolvers();
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => transports.set(session, transport) && listeners.set(session, resolve),
  });
  await build(listening).connect(transport);
  await transport.handleRequest(request, response);
}

const http = createServer(serve);
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
