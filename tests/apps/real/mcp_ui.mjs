// Tools whose results hold what @mcp-ui/server makes, its last release of each line: every kind of content, encoding,
// adapter and metadata. One tool a kind, `<line>-<kind>`; serves 2026-07-28 and prints its URL when ready.
import { createServer } from "node:http";
import * as six from "@mcp-ui/server";
import * as five from "@mcp-ui/server-5";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { toNodeHandler } from "@modelcontextprotocol/node";

const html = { type: "rawHtml", htmlString: "<h1>Größe</h1><script>1</script>" };
const page = { type: "externalUrl", iframeUrl: "https://example.com/view" };
const KINDS = {
  html: { content: html },
  packed: { content: html, encoding: "blob" },
  page: { content: page },
  dom: { content: { type: "remoteDom", script: "root.append(1)", framework: "react" } },
  skybridge: { content: html, adapters: { appsSdk: { enabled: true } } },
  adapted: { content: html, adapters: { mcpApps: { enabled: true } } },
  described: {
    content: html,
    uiMetadata: { "preferred-frame-size": ["800px", "600px"], "initial-render-data": { a: 1 } },
    metadata: { "com.example/x": 1 },
    embeddedResourceProps: { annotations: { audience: ["user"] }, _meta: { "com.example/z": 1 } },
  },
};

function build() {
  const server = new McpServer({ name: "mcp-ui", version: "1.0" });
  for (const [line, { createUIResource }] of [[5, five], [6, six]]) {
    for (const [kind, options] of Object.entries(KINDS)) {
      if (line === 6 && kind === "dom") continue; // left the package with version 6
      const resource = createUIResource({ uri: `ui://mcp-ui/${line}/${kind}`, encoding: "text", ...options });
      server.registerTool(`${line}-${kind}`, { description: kind }, () => ({
        content: [{ type: "text", text: "in words" }, resource],
      }));
      server.registerTool(`${line}-${kind}-alone`, { description: kind }, () => ({ content: [resource] }));
    }
  }
  const note = "note://one";
  server.registerResource("note", note, {}, async () => ({ contents: [{ uri: note, text: "a note" }] }));
  return server;
}

const http = createServer(toNodeHandler(createMcpHandler(build, { legacy: "reject" })));
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
