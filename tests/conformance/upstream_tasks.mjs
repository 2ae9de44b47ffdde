/**
 * The reference upstream with tasks: 2026-07-28 and the extension io.modelcontextprotocol/tasks, and nothing else, on the
 * official TypeScript SDK 2.x. The SDK carries the extension's messages; the tasks themselves are kept here, in memory.
 *
 * Usage: node upstream_tasks.mjs [PORT]     PORT 0 or none: the system chooses. Listens on 127.0.0.1 only and prints
 * `listening on http://127.0.0.1:PORT/mcp` once it does. SIGTERM ends it.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    CLIENT_CAPABILITIES_META_KEY,
    createMcpHandler,
    fromJsonSchema,
    inputRequired,
    McpServer,
    ProtocolError,
    ProtocolErrorCode
} from '@modelcontextprotocol/server';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const TASKS = { extensions: { [EXTENSION]: {} } };
const TTL_MS = 600_000;
const ENDED = ['completed', 'failed', 'cancelled'];

// Tools: what each does. `task` is how it runs: not as a task, as one where the caller knows tasks, or in no other way.

const said = (text, more) => ({ content: [{ type: 'text', text }], ...more });
const elicit = (message, properties) => ({
    method: 'elicitation/create',
    params: { mode: 'form', message, requestedSchema: { type: 'object', properties } }
});
const CONFIRM = { confirm: { type: 'boolean' } };
const NAME = { name: { type: 'string' } };

const TOOLS = {
    greet: { task: 'never', run: async ({ name }) => said(`Hello, ${name}!`) },
    slow_compute: {
        task: 'optional',
        run: async ({ seconds = 0, label = '' }, task) => {
            await pause(seconds * 1000, undefined, { signal: task?.stop.signal });
            return said(`computed ${label}`);
        }
    },
    failing_job: {
        task: 'required',
        run: async () => {
            await pause(200);
            return said('the job has failed', { isError: true });
        }
    },
    protocol_error_job: {
        task: 'required',
        run: async () => {
            throw new ProtocolError(ProtocolErrorCode.InternalError, 'the job broke off');
        }
    },
    confirm_delete: {
        task: 'required',
        run: async ({ filename }, task) => {
            const answers = await task.ask({ [randomUUID()]: elicit(`Delete ${filename}?`, CONFIRM) });
            return said(`answered: ${JSON.stringify(Object.values(answers))}`);
        }
    },
    multi_input: {
        task: 'required',
        run: async (_, task) => {
            const asks = { [randomUUID()]: elicit('Who?', NAME), [randomUUID()]: elicit('Sure?', CONFIRM) };
            return said(`answered: ${JSON.stringify(Object.values(await task.ask(asks)))}`);
        }
    },
    test_tool_with_task: {
        task: 'required',
        before: { user_name: elicit('What is your name?', NAME) },
        run: async (_, __, answers) => said(`Hello, ${answers.user_name.content?.name}!`)
    }
};

// Tasks

const tasks = new Map();

class Task {
    constructor() {
        this.id = randomUUID();
        this.status = 'working';
        this.more = {};
        this.stop = new AbortController();
        this.createdAt = this.lastUpdatedAt = new Date().toISOString();
        tasks.set(this.id, this);
        setTimeout(() => tasks.delete(this.id), TTL_MS).unref();
    }

    toJSON() {
        const { id: taskId, status, createdAt, lastUpdatedAt, more } = this;
        return { taskId, status, createdAt, lastUpdatedAt, ttlMs: TTL_MS, pollIntervalMs: 100, ...more };
    }

    become(status, more = {}) {
        if (ENDED.includes(this.status)) return;
        Object.assign(this, { status, more, lastUpdatedAt: new Date().toISOString() });
    }

    /** Resolves with all answers by key; until then the task shows the questions that are still open. */
    ask(inputRequests) {
        return new Promise(resolve => {
            this.answers = {};
            this.answered = resolve;
            this.become('input_required', { inputRequests });
        });
    }

    update(inputResponses) {
        const open = { ...this.more.inputRequests };
        for (const key of Object.keys(open).filter(key => key in inputResponses)) {
            this.answers[key] = inputResponses[key];
            delete open[key];
        }
        if (this.status !== 'input_required') return;
        if (Object.keys(open).length) return this.become('input_required', { inputRequests: open });
        this.become('working');
        this.answered(this.answers);
    }

    async run(work) {
        try {
            this.become('completed', { result: await work(this) });
        } catch (error) {
            if (error.name === 'AbortError') this.become('cancelled');
            else this.become('failed', { statusMessage: error.message, error: { code: error.code, message: error.message } });
        }
    }

    cancel() {
        this.stop.abort();
        this.become('cancelled');
    }
}

// The server

/** What a client that makes this request has declared; refused where that lacks the extension. */
function needTasks(ctx) {
    if (!knowsTasks(ctx)) {
        throw new ProtocolError(-32021, 'Missing required client capability', { requiredCapabilities: TASKS });
    }
}

function knowsTasks(ctx) {
    return ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY]?.extensions?.[EXTENSION] !== undefined;
}

function known({ taskId }) {
    if (!tasks.has(taskId)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Failed to retrieve task: Task not found');
    return tasks.get(taskId);
}

async function callTool({ params: { name, arguments: args = {} } }, ctx) {
    const tool = TOOLS[name];
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name}`);
    if (tool.task === 'required') needTasks(ctx);
    if (tool.task === 'never' || !knowsTasks(ctx)) return tool.run(args);
    const answers = ctx.mcpReq.inputResponses ?? {};
    if (tool.before && !Object.keys(tool.before).every(key => key in answers)) {
        return inputRequired({ inputRequests: tool.before });
    }
    const task = new Task();
    const created = { ...task.toJSON(), resultType: 'task' };
    setImmediate(() => void task.run(() => tool.run(args, task, answers)));
    return created;
}

function createInstance() {
    const { server } = new McpServer(
        { name: 'reference-upstream-tasks', version: '1.0.0' },
        { capabilities: { tools: {}, ...TASKS } }
    );
    server.setRequestHandler('tools/list', () => ({
        tools: Object.keys(TOOLS).map(name => ({ name, inputSchema: { type: 'object' } }))
    }));
    server.setRequestHandler('tools/call', callTool);
    const about = (method, act) =>
        server.setRequestHandler(method, { params: fromJsonSchema({ type: 'object' }) }, (params, ctx) => {
            needTasks(ctx);
            return act(known(params), ctx) ?? {};
        });
    about('tasks/get', task => task.toJSON());
    about('tasks/update', (task, ctx) => task.update(ctx.mcpReq.inputResponses ?? {}));
    about('tasks/cancel', task => task.cancel());
    return server;
}

const serve = toNodeHandler(createMcpHandler(createInstance, { legacy: 'reject' }));
const http = createServer((req, res) => void serve(req, res));

http.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
