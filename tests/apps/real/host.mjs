// Apps hosts on the official TypeScript SDKs and ext-apps' own host side. Standard input: [{client, url}], a client being
// `legacy` (SDK 1.x, as sunpeak's inspector is) or `modern` (2.x, which tries 2026-07-28 first). Standard output: what
// each would show, as the SDK gave it to its caller.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { getToolUiResourceUri, isToolVisibilityAppOnly } from "@modelcontextprotocol/ext-apps/app-bridge";
import { EXTENSION_ID, getUiCapability, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/server";

const capabilities = { extensions: { [EXTENSION_ID]: { mimeTypes: [RESOURCE_MIME_TYPE] } } };
const info = { name: "host", version: "1" };

async function connected({ client: era, url }) {
  const modern = era === "modern";
  const client = modern
    ? new Client(info, { capabilities, versionNegotiation: { mode: "auto" } })
    : new LegacyClient(info, { capabilities });
  const Transport = modern ? StreamableHTTPClientTransport : LegacyTransport;
  const transport = new Transport(new URL(url));
  await client.connect(transport);
  return [client, transport];
}

async function seen(cell) {
  const [client, transport] = await connected(cell);
  const { tools } = await client.listTools();
  const views = {};
  for (const uri of new Set(tools.map(getToolUiResourceUri).filter(Boolean))) {
    const [content] = (await client.readResource({ uri })).contents;
    const digest = createHash("sha256").update(content.text).digest("hex");
    views[uri] = { mimeType: content.mimeType, digest, ui: content._meta?.ui };
  }
  const results = {};
  for (const { name } of tools) {
    const { content, structuredContent, _meta = {}, isError } = await client.callTool({ name, arguments: {} });
    delete _meta["io.modelcontextprotocol/serverInfo"]; // the newer era's own
    results[name] = { content, structuredContent, _meta, isError };
  }
  const found = {
    described: getUiCapability(client.getServerCapabilities()) ?? null,
    tools: tools.map((tool) => ({ name: tool.name, view: getToolUiResourceUri(tool), hidden: isToolVisibilityAppOnly(tool) })),
    views,
    results,
  };
  if (transport.sessionId !== undefined) await transport.terminateSession();
  await client.close();
  return found;
}

const cells = JSON.parse(readFileSync(0, "utf8"));
const told = [];
for (const cell of cells) told.push(await seen(cell).catch((error) => ({ failed: String(error) })));
process.stdout.write(JSON.stringify(told));
