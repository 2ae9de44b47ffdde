// An MCP Apps server on the official TypeScript SDK 2.x and ext-apps. The argument says what it speaks: `modern`
// (2026-07-28 alone), `sse` (the same, every answer on a stream), `dual` (both eras), `legacy` (sessionless 2025-11-25
// alone). Prints its URL when ready.
import { createServer } from "node:http";
import { getUiCapability, registerAppResource, registerAppTool, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/server";
import { createMcpHandler, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { z } from "zod";

const VIEW = "ui://chart/view.html";
const HTML = `<!doctype html><title>Größe ☃ 𝄞</title>\r\n<script>/* \u2028 \u2029 \u0000 \t \\ " </ */</script>\n${"<p>ä</p>".repeat(4000)}`;
const CSP = { connectDomains: ["*"], resourceDomains: ["https://*.example.com"], frameDomains: [] };
const UI = { csp: CSP, permissions: { camera: {} }, domain: "a904.example.com", prefersBorder: true };
const DATA = { rows: [[1, 2.5, -3e-7], ["ä", null, {}]], total: 4503599627370497 };
const embedded = { type: "resource", resource: { uri: VIEW, mimeType: RESOURCE_MIME_TYPE, text: HTML, _meta: { ui: UI } } };
const words = { type: "text", text: "three rows", annotations: { audience: ["user"] }, _meta: { "com.example/b": 1 } };

function build() {
  const server = new McpServer({ name: "chart", version: "1.0" }, { instructions: "Draws." });
  const drawn = { content: [words], structuredContent: DATA, _meta: { viewUUID: "7", ui: { resourceUri: VIEW }, "com.example/r": [1] } };
  const outputSchema = z.object({ rows: z.array(z.any()), total: z.number() });
  const linked = { ui: { resourceUri: VIEW, visibility: ["model", "app"] }, "com.example/t": { kept: true } };
  registerAppTool(server, "draw", { description: "Draws a chart.", outputSchema, _meta: linked }, () => drawn);
  registerAppTool(server, "refresh", { description: "Rows anew.", _meta: { ui: { resourceUri: VIEW, visibility: ["app"] } } }, () => drawn);
  registerAppTool(server, "embed", { description: "Embeds a chart.", _meta: { "ui/resourceUri": VIEW } }, () => ({
    content: [words, embedded, { type: "resource_link", uri: VIEW, name: "view", mimeType: RESOURCE_MIME_TYPE }],
  }));
  registerAppTool(server, "only", { description: "Nothing but a chart.", _meta: { "ui/resourceUri": VIEW } }, () => ({
    content: [embedded],
    isError: true,
  }));
  server.registerTool("plain", { description: "Says.", _meta: { "com.example/t": 1 } }, () => ({ content: [words] }));
  // as the extension recommends to servers: another tool for hosts that show none
  server.registerTool("host", { description: "What the host can show." }, () => {
    const shows = getUiCapability(server.server.getClientCapabilities());
    return { content: [{ type: "text", text: JSON.stringify(shows ?? null) }] };
  });
  const read = (content) => async () => ({ contents: [content], _meta: { "com.example/read": true } });
  registerAppResource(server, "view", VIEW, { description: "The view", _meta: { ui: UI } }, read({ uri: VIEW, mimeType: RESOURCE_MIME_TYPE, text: HTML, _meta: { ui: UI, "com.example/c": 1 } }));
  const packed = "ui://chart/packed.html";
  registerAppResource(server, "packed", packed, {}, read({ uri: packed, mimeType: "Text/HTML; Profile=\"mcp-app\"; charset=utf-8", blob: Buffer.from(HTML).toString("base64") }));
  const note = "note://one";
  server.registerResource("note", note, { mimeType: "text/html" }, read({ uri: note, mimeType: "text/html", text: "<p>a page, not a view</p>" }));
  const template = (uri) => new ResourceTemplate(uri, { list: undefined });
  server.registerResource("views", template("ui://chart/by/{id}"), { mimeType: RESOURCE_MIME_TYPE }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: RESOURCE_MIME_TYPE, text: HTML }],
  }));
  server.registerResource("notes", template("note://{id}"), {}, async (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
  server.registerPrompt("show", { description: "Shows the chart." }, () => ({
    messages: [
      { role: "user", content: words },
      { role: "user", content: embedded },
    ],
  }));
  return server;
}

async function legacy(request, response) {
  const server = build();
  const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => Promise.all([transport.close(), server.close()]));
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

const speaks = process.argv[2];
const options = { legacy: speaks === "dual" ? "stateless" : "reject", responseMode: speaks === "sse" ? "sse" : "auto" };
const handler = speaks === "legacy" ? legacy : toNodeHandler(createMcpHandler(build, options));
const http = createServer(handler);
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
