// Drives the official TypeScript SDK 2.x client. mode: legacy | auto.
import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answerAsks, CAPABILITIES, packageVersion, readPlan, show, walk } from "./steps.mjs";

const plan = readPlan();
const client = new Client(
  { name: "ts2", version: "1" },
  { capabilities: plan.asks ? CAPABILITIES : {}, versionNegotiation: { mode: plan.mode } },
);
const asked = plan.asks ? answerAsks((method, answer) => client.setRequestHandler(method, answer)) : [];
const [command, ...args] = plan.command ?? [];
const transport = command ? new StdioClientTransport({ command, args }) : new StreamableHTTPClientTransport(new URL(plan.url));
await client.connect(transport);
const call = (params, onprogress) => client.callTool(params, { onprogress });
const document = await walk(client, call, (error) => error instanceof ProtocolError, plan);
show({
  sdk: { "@modelcontextprotocol/client": packageVersion("@modelcontextprotocol/client") },
  negotiated: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion(),
  instructions: client.getInstructions() ?? null,
  capabilities: client.getServerCapabilities(),
  asked,
  ...document,
});
if (transport.sessionId !== undefined) await transport.terminateSession();
await client.close();
