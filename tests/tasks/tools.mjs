// A sessions-only upstream on the official TypeScript SDK 1.x whose tools run only as tasks of 2025-11-25. `statuses`, a
// plain tool, says how all tasks stand. Prints its URL when ready.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { CreateMessageResultSchema, ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";

const taskStore = new InMemoryTaskStore();
const said = (value, more) => ({ content: [{ type: "text", text: JSON.stringify(value) }], ...more });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
const message = { role: "user", content: { type: "text", text: "Say hi € ☃" } };

const WORK = {
  work: async (extra) => {
    await pause(300);
    return said({ done: true }, { _meta: { "v/x": 1 } });
  },
  ask: async (extra, relatedTask) => {
    const form = { method: "elicitation/create", params: { message: "Wer?", requestedSchema } };
    const who = await extra.sendRequest(form, ElicitResultSchema, { relatedTask });
    const sample = { method: "sampling/createMessage", params: { messages: [message], maxTokens: 5 } };
    const hi = await extra.sendRequest(sample, CreateMessageResultSchema, { relatedTask });
    return said({ who: [who.action, who.content], hi: hi.content });
  },
  fail: async () => said("größe", { isError: true }),
  endless: () => new Promise(() => {}),
  die: async () => process.exit(1),
};

function build() {
  const tasks = { cancel: {}, list: {}, requests: { tools: { call: {} } } };
  const options = { capabilities: { tasks, tools: {} }, taskStore, taskMessageQueue: new InMemoryTaskMessageQueue() };
  const server = new McpServer({ name: "tasks", version: "1" }, options);
  for (const [name, work] of Object.entries(WORK)) {
    const run = async (extra) => {
      const task = await extra.taskStore.createTask({ ttl: extra.taskRequestedTtl, pollInterval: 100 });
      setTimeout(async () => {
        const outcome = await work(extra, { taskId: task.taskId });
        const status = outcome.isError ? "failed" : "completed";
        await taskStore.storeTaskResult(task.taskId, status, outcome).catch(() => {});
      });
      return { task };
    };
    server.experimental.tasks.registerToolTask(name, { execution: { taskSupport: "required" } }, {
      createTask: run,
      getTask: (extra) => extra.taskStore.getTask(extra.taskId),
      getTaskResult: (extra) => extra.taskStore.getTaskResult(extra.taskId),
    });
  }
  server.registerTool("statuses", {}, async () => said(taskStore.getAllTasks().map((task) => task.status)));
  return server;
}

const transports = new Map();

async function serve(request, response) {
  const id = request.headers["mcp-session-id"];
  if (id !== undefined && !transports.has(id)) return response.writeHead(404).end();
  if (id !== undefined) return transports.get(id).handleRequest(request, response);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => transports.set(session, transport),
  });
  await build().connect(transport);
  await transport.handleRequest(request, response);
}

const http = createServer(serve);
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
