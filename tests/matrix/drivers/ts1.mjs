// Drives the official TypeScript SDK 1.x client, which knows the legacy era alone. mode: legacy.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import { answerAsks, CAPABILITIES, packageVersion, readPlan, show, walk } from "./steps.mjs";

const SCHEMAS = {
  "elicitation/create": ElicitRequestSchema,
  "sampling/createMessage": CreateMessageRequestSchema,
  "roots/list": ListRootsRequestSchema,
};

const plan = readPlan();
const client = new Client({ name: "ts1", version: "1" }, { capabilities: plan.asks ? CAPABILITIES : {} });
const asked = plan.asks ? answerAsks((method, answer) => client.setRequestHandler(SCHEMAS[method], answer)) : [];
const [command, ...args] = plan.command ?? [];
const transport = command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(plan.url));
await client.connect(transport);
const call = (params, onprogress) => client.callTool(params, undefined, { onprogress });
const document = await walk(client, call, (error) => error instanceof McpError, plan);
show({
  sdk: { "@modelcontextprotocol/sdk": packageVersion("@modelcontextprotocol/sdk") },
  negotiated: transport.protocolVersion ?? null, // over stdio the transport is not told
  server: client.getServerVersion(),
  instructions: client.getInstructions() ?? null,
  capabilities: client.getServerCapabilities(),
  asked,
  ...document,
});
await transport.terminateSession?.();
await client.close();
