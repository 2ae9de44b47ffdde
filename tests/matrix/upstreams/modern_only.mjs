// A modern-only upstream on the official TypeScript SDK 2.x: `legacy: 'reject'` refuses initialize and sessions.
// With the argument `stdio` it serves on standard input and output instead, with `stdio serve` both eras.
// Serves catalogue.json as it stands; integers past 2^53 keep their digits (JSON.rawJSON). Prints its URL when ready.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createMcpHandler, inputRequired, ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";

const keepDigits = (_key, value, { source }) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) ? JSON.rawJSON(source) : value;
const catalogue = JSON.parse(readFileSync(new URL("catalogue.json", import.meta.url), "utf8"), keepDigits);
const { name, ...about } = catalogue.server;
const tools = [...catalogue.tools, ...catalogue.modern_tools];

function page(key, items, params) {
  const start = params?.cursor === undefined ? 0 : Number(/^page:(\d+)=$/.exec(params.cursor)?.[1]);
  if (Number.isNaN(start)) throw new ProtocolError(-32602, "Invalid cursor", { cursor: params.cursor });
  const end = start + catalogue.page_size;
  return { [key]: items.slice(start, end), ...(end < items.length && { nextCursor: `page:${end}=` }) };
}

const QUESTIONS = {
  elicitation: () =>
    inputRequired.elicit({
      message: "Wie heißt du?",
      requestedSchema: {
        type: "object",
        properties: { name: { type: "string", title: "Name", default: "Ann" }, age: { type: "integer", minimum: 0 } },
        required: ["name"],
      },
    }),
  sampling: () =>
    inputRequired.createMessage({
      messages: [{ role: "user", content: { type: "text", text: "Say hi € ☃" } }],
      maxTokens: 20,
    }),
  roots: () => inputRequired.listRoots(),
};

const goneOn = Promise.withResolvers(); // a client that reads a report together with the answer drops the report

function ask(params, ctx) {
  const kinds = params.arguments?.kinds ?? ["elicitation", "sampling", "roots"];
  const answers = ctx.mcpReq.inputResponses ?? {};
  if (kinds.every((kind) => kind in answers)) {
    return { content: [{ type: "text", text: JSON.stringify({ answers, state: ctx.mcpReq.requestState() }) }] };
  }
  const inputRequests = Object.fromEntries(kinds.map((kind) => [kind, QUESTIONS[kind]()]));
  return inputRequired({ inputRequests, requestState: "state/+= zurück ☃" });
}

async function call(params, ctx) {
  if (params.name === "echo") {
    const vendor = Object.entries(params._meta ?? {}).filter(([key]) => key.startsWith("com.example/"));
    return { content: [], structuredContent: { arguments: params.arguments, meta: Object.fromEntries(vendor) } };
  }
  if (params.name === "where") return { content: [{ type: "text", text: `in ${params.arguments?.region}` }] };
  if (params.name === "ask") return ask(params, ctx);
  if (params.name === "progress") {
    for (let step = 1; step <= 3; step++) {
      const progress = { progressToken: params._meta?.progressToken, progress: step / 2, total: 1.5, message: `Schritt ${step}` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params: progress });
    }
    if (params.arguments?.held) await goneOn.promise;
    return { content: [{ type: "text", text: "done" }] };
  }
  if (params.name === "go-on") {
    goneOn.resolve();
    return { content: [] };
  }
  if (params.name === "logs") {
    for (const { level, data, logger } of catalogue.logs) await ctx.mcpReq.log(level, data, logger);
    return { content: [{ type: "text", text: "logged" }] };
  }
  const result = catalogue.calls[params.name];
  if (!result) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`, { tool: params.name, vendor: null });
  return result;
}

function build() {
  const server = new Server(
    { name, ...about },
    {
      capabilities: { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {}, experimental: { "com.example/x": { on: true } } },
      instructions: catalogue.instructions,
      cacheHints: { "resources/templates/list": { ttlMs: 60000, cacheScope: "public" } },
    },
  );
  server.setRequestHandler("tools/list", (request) => page("tools", tools, request.params));
  server.setRequestHandler("prompts/list", (request) => page("prompts", catalogue.prompts, request.params));
  server.setRequestHandler("resources/list", (request) => page("resources", catalogue.resources, request.params));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: catalogue.templates }));
  server.setRequestHandler("tools/call", (request, ctx) => call(request.params, ctx));
  server.setRequestHandler("completion/complete", () => catalogue.completion);
  server.setRequestHandler("prompts/get", (request) => {
    const prompt = catalogue.gets[request.params.name];
    if (!prompt) throw new ProtocolError(-32602, `Unknown prompt: ${request.params.name}`);
    return prompt;
  });
  server.setRequestHandler("resources/read", (request) => {
    const { uri } = request.params;
    if (!catalogue.reads[uri]) throw new ProtocolError(-32602, `Resource not found: ${uri}`, { uri });
    return catalogue.reads[uri];
  });
  return server;
}

if (process.argv[2] === "stdio") serveStdio(build, { legacy: process.argv[3] ?? "reject" });
else listen();

function listen() {
  const http = createServer(toNodeHandler(createMcpHandler(build, { legacy: "reject" })));
  http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
}
