// A client of tasks of 2025-11-25 on the official TypeScript SDK 1.x; plan and output as of client_py1.py.
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ResultSchema } from "@modelcontextprotocol/sdk/types.js";

const plan = JSON.parse(await text(process.stdin));
const client = new Client({ name: "tasks", version: "1" }, { capabilities: { elicitation: {}, sampling: {} } });
const hi = { role: "assistant", content: { type: "text", text: "hi" }, model: "m" };
client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "größe" } }));
client.setRequestHandler(CreateMessageRequestSchema, () => hi);
await client.connect(new StreamableHTTPClientTransport(new URL(plan.url)));
const tasks = client.experimental.tasks;
await client.listTools();

async function run(step) {
  const said = {};
  let task = "größe";
  try {
    if (step.do === "unknown") await tasks.getTask(task);
    const options = { task: { ttl: step.do === "expire" ? 1 : 60_000 } };
    for await (const seen of tasks.callToolStream({ name: step.tool, arguments: {} }, ResultSchema, options)) {
      if (seen.type === "taskCreated") {
        task = seen.task.taskId;
        if (step.do === "cancel") await tasks.cancelTask(task);
        while (step.do === "expire") await tasks.getTask(task);
      } else if (seen.type === "taskStatus") {
        Object.assign(said, { status: seen.task.status, message: seen.task.statusMessage });
      } else if (seen.type === "result") {
        said.result = seen.result;
      } else {
        throw seen.error;
      }
    }
  } catch (error) {
    said.error = { code: error.code, message: error.message };
  }
  return JSON.parse(JSON.stringify(said).replaceAll(task, "the task"));
}

const said = [];
for (const step of plan.steps) said.push(await run(step));
console.log(JSON.stringify(said));
await client.close();
