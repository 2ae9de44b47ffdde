// What the suite's client scenarios ask of a client, done by the official TypeScript SDK 2.x, which is held to one era.
//
// usage: client.mjs modern|legacy URL
// The suite names the scenario in MCP_CONFORMANCE_SCENARIO and judges what its test server sees. What comes back to the
// client is judged here: a wrong answer is a non-zero exit, which fails the scenario as well.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const ERAS = {
  modern: { mode: { pin: "2026-07-28" }, versions: ["2026-07-28"] },
  legacy: { mode: "legacy", versions: ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] },
};

const texts = (result) => result.content.map((block) => block.text);

async function listed(client, name) {
  const { tools } = await client.listTools();
  const tool = tools.find((one) => one.name === name);
  assert.ok(tool, `no tool ${name} among ${tools.map((one) => one.name)}`);
  return tool;
}

/** A value for each property of a tool, so that whatever would be mirrored into a header is there to be mirrored. */
function filled(schema) {
  const values = { string: "x", object: {}, array: ["x"], null: null };
  return Object.fromEntries(Object.entries(schema.properties).map(([key, { type }]) => [key, values[type]]));
}

const SCENARIOS = {
  // To be connected is all: the server promises nothing that could be asked for.
  async initialize() {},

  // Asked for although the server promises no tools, so that one request more than the gateway's own is judged.
  "request-metadata": (client) => client.request({ method: "tools/list" }),

  async tools_call(client) {
    await listed(client, "add_numbers");
    const result = await client.callTool({ name: "add_numbers", arguments: { a: 5, b: 3 } });
    assert.deepEqual(texts(result), ["The sum of 5 and 3 is 8"]);
  },

  async "elicitation-sep1034-client-defaults"(client) {
    await listed(client, "test_client_elicitation_defaults");
    const result = await client.callTool({ name: "test_client_elicitation_defaults", arguments: {} });
    assert.match(texts(result)[0], /^Elicitation completed: .*"name":"John Doe"/);
  },

  async "sse-retry"(client) {
    const result = await client.callTool({ name: "test_reconnection", arguments: {} });
    assert.deepEqual(texts(result), ["Reconnection test completed successfully"]);
  },

  async "json-schema-2020-12-preservation"(client) {
    const { inputSchema } = await listed(client, "json_schema_2020_12_tool");
    const result = await client.callTool({ name: "json_schema_echo", arguments: { schema: inputSchema } });
    assert.deepEqual(texts(result), ["echoed"]);
  },

  async "sep-2322-client-request-state"(client) {
    const call = async (name) => texts(await client.callTool({ name: `test_mrtr_${name}`, arguments: {} }));
    // All at once, so that states and answers could be mixed up.
    const answers = await Promise.all(["echo_state", "no_state", "unrelated"].map(call));
    assert.deepEqual(answers.flat(), ["echo-state-ok", "no-state-ok", "unrelated-ok"]);
    if (era === "legacy") assert.deepEqual(await call("no_result_type"), ["no-result-type-test-ok"]);
    // The suite only wants it not to ask again; this SDK refuses a result of 2026-07-28 without its resultType.
    else await assert.rejects(call("no_result_type"), { code: "INVALID_RESULT" });
  },

  async "http-standard-headers"(client) {
    for (const { name } of (await client.listTools()).tools) await client.callTool({ name, arguments: {} });
    for (const { uri } of (await client.listResources()).resources) await client.readResource({ uri });
    for (const { name } of (await client.listPrompts()).prompts) await client.getPrompt({ name });
  },

  async "http-custom-headers"(client) {
    await client.listTools();
    for (const call of JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT).toolCalls) {
      assert.deepEqual(texts(await client.callTool(call)), ["Custom headers test completed"]);
    }
  },

  async "http-invalid-tool-headers"(client) {
    for (const { name, inputSchema } of (await client.listTools()).tools) {
      await client.callTool({ name, arguments: filled(inputSchema) });
    }
  },
};

const [era, url] = process.argv.slice(2);
const run = SCENARIOS[process.env.MCP_CONFORMANCE_SCENARIO];
assert.ok(run, `nobody wrote down what a client does in ${process.env.MCP_CONFORMANCE_SCENARIO}`);
const client = new Client(
  { name: "conformance-client", version: "1" },
  {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    versionNegotiation: { mode: ERAS[era].mode },
  },
);
// The form of elicitation-sep1034 is left empty: its defaults are the SDK's to fill in.
client.setRequestHandler("elicitation/create", ({ params }) => ({
  action: "accept",
  content: "confirmed" in params.requestedSchema.properties ? { confirmed: true } : {},
}));
// The suite's server gives an answer that it owes to the next GET stream, whichever that is: the client's own has to be
// there before its first call.
let opened;
const listening = new Promise((resolve) => (opened = resolve));
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: async (input, init) => {
    const response = await fetch(input, init);
    if ((init?.method ?? "GET") === "GET") opened();
    return response;
  },
});
await client.connect(transport);
if (transport.sessionId !== undefined) await listening;
const negotiated = client.getNegotiatedProtocolVersion();
assert.ok(ERAS[era].versions.includes(negotiated), `${negotiated} is not ${era}`);
await run(client);
if (transport.sessionId !== undefined) await transport.terminateSession();
await client.close();
