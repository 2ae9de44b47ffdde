// What both TypeScript drivers share: steps.py's plan, walk and document, for a client whose methods are those of the SDK.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

export const ANSWERS = {
  elicitation: { action: "accept", content: { name: "Änn", age: 7 } },
  sampling: {
    role: "assistant",
    content: { type: "text", text: "hi € ☃" },
    model: "a-model",
    stopReason: "endTurn",
  },
  roots: { roots: [{ uri: "file:///projects/x", name: "würzel" }] },
};

export function readPlan() {
  const plan = JSON.parse(readFileSync(0, "utf8"));
  if (typeof plan.asks === "object") Object.assign(ANSWERS, plan.asks);
  return plan;
}

export function packageVersion(name) {
  for (const folder of createRequire(import.meta.url).resolve.paths(name)) {
    try {
      return JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")).version;
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
  }
  throw new Error(`${name} is not installed above ${dirname(import.meta.url)}`);
}

const LISTS = {
  tools: ["listTools", "tools"],
  prompts: ["listPrompts", "prompts"],
  resources: ["listResources", "resources"],
  templates: ["listResourceTemplates", "resourceTemplates"],
};

async function listAll(client, what) {
  const [method, key] = LISTS[what];
  const names = [];
  let pages = 0;
  let cursor;
  do {
    const page = await client[method](cursor === undefined ? undefined : { cursor });
    names.push(...page[key].map((item) => item.name));
    cursor = page.nextCursor;
    if (++pages > 50) throw new Error("the pages never end");
  } while (cursor !== undefined);
  return { names, pages };
}

/** Asks for log messages from `level` on: for the session, or by the `_meta` it returns for the next call. */
async function setLevel(client, level) {
  if (client.getNegotiatedProtocolVersion?.() === "2026-07-28") return { "io.modelcontextprotocol/logLevel": level };
  await client.setLoggingLevel(level);
}

async function take(client, call, step) {
  const { id: _id, op, what, level, ...params } = step;
  const meta = level === undefined ? params.meta : await setLevel(client, level);
  delete params.meta;
  switch (op) {
    case "list":
      return listAll(client, what);
    case "call":
      return call({ ...params, ...(meta && { _meta: meta }) });
    case "read":
      return client.readResource(params);
    case "get":
      return client.getPrompt(params);
    case "complete":
      return client.complete(params);
    default:
      throw new Error(op);
  }
}

/** `call(params, onprogress)` calls a tool; `isRpcError(error)` tells a JSON-RPC error from a fault of the driver. The
 * tool that a step names under `then` is called once the step has reported progress. */
export async function walk(client, call, isRpcError, plan) {
  const steps = {};
  const progress = {};
  for (const step of plan.steps) {
    const reports = (progress[step.id] = []);
    const { then, ...own } = step;
    const reported = (report) => {
      if (reports.push(report) === 1 && then) void call({ name: then }, () => {});
    };
    try {
      steps[step.id] = { ok: await take(client, (params) => call(params, reported), own) };
    } catch (error) {
      if (!isRpcError(error)) throw error;
      steps[step.id] = { error: { code: error.code, message: error.message, data: error.data } };
    }
  }
  return { steps, progress };
}

/** Answers the three asks with ANSWERS; `handle(method, answerer)` registers with the SDK. */
export function answerAsks(handle) {
  const asked = [];
  const answer = (kind) => (request) => {
    asked.push({ kind, ...(request.params && { params: request.params }) });
    return ANSWERS[kind];
  };
  handle("elicitation/create", answer("elicitation"));
  handle("sampling/createMessage", answer("sampling"));
  handle("roots/list", answer("roots"));
  return asked;
}

export const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };

export const show = (document) => process.stdout.write(JSON.stringify(document));
