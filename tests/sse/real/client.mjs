// A client over HTTP+SSE on the official TypeScript SDK: `node client.mjs PACKAGE`. Plan and outcomes as client.py says,
// and what its roots were asked for.
import { readFileSync } from "node:fs";
import { EventSource } from "eventsource";

globalThis.EventSource ??= EventSource; // which SDK 1.0 expects to be there
const sdk = process.argv[2];
const { Client } = await import(`${sdk}/client/index.js`);
const { SSEClientTransport } = await import(`${sdk}/client/sse.js`);
const { ListRootsRequestSchema } = await import(`${sdk}/types.js`);

async function usual(client) {
  const tools = (await client.listTools()).tools.map(({ name }) => name);
  const said = (await client.callTool({ name: "echo", arguments: { text: "größe 日本" } })).content[0];
  const prompt = (await client.getPrompt({ name: "p", arguments: { a: "b" } })).messages[0];
  const asked = (await client.callTool({ name: "ask", arguments: { text: "" } })).content[0].text;
  return { tools, said, prompt, asked };
}

async function rich(client) {
  return {
    "tools/list": await client.listTools(),
    "tools/call": await client.callTool({ name: "rich", arguments: {} }),
    "resources/list": await client.listResources(),
    "resources/templates/list": await client.listResourceTemplates(),
    "resources/read": await client.readResource({ uri: "note://one" }),
    "prompts/list": await client.listPrompts(),
    "prompts/get": await client.getPrompt({ name: "p" }),
    "completion/complete": await client.complete({
      ref: { type: "ref/prompt", name: "p" },
      argument: { name: "a", value: "" },
    }),
  };
}

const { urls, rich: all } = JSON.parse(readFileSync(0, "utf8"));
const outcomes = [];
for (const url of urls) {
  const client = new Client({ name: "old", version: "1" }, { capabilities: { roots: {} } });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///x", name: "würzel" }] }));
  await client.connect(new SSEClientTransport(new URL(url)));
  outcomes.push(await (all ? rich : usual)(client));
  await client.close();
}
process.stdout.write(JSON.stringify(outcomes));
