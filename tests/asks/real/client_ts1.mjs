// A client on the official TypeScript SDK 1.x that is asked: plan and outcomes as client_py1.py says.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";

const { peer, calls } = JSON.parse(readFileSync(0, "utf8"));
const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const client = new Client({ name: "asked", version: "1" }, { capabilities });
let answers = {};
let asked = [];

function told(kind) {
  asked.push(kind);
  const { error, ...result } = answers[kind];
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

client.setRequestHandler(ElicitRequestSchema, ({ params }) => told(params.mode === "url" ? "url" : "form"));
client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => told(params.tools ? "sampling with tools" : "sampling"));
client.setRequestHandler(ListRootsRequestSchema, () => told("roots"));

const transport =
  typeof peer === "string"
    ? new StreamableHTTPClientTransport(new URL(peer))
    : new StdioClientTransport({ command: peer[0], args: peer.slice(1) });
await client.connect(transport);
const outcomes = [];
for (const call of calls) {
  [answers, asked] = [call.answers, []];
  try {
    outcomes.push({ result: await client.callTool(call.params), asked });
  } catch (error) {
    if (!(error instanceof McpError)) throw error;
    outcomes.push({ error: { code: error.code, message: error.message }, asked });
  }
}
process.stdout.write(JSON.stringify(outcomes));
await transport.terminateSession?.();
await client.close();
