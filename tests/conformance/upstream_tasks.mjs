/**
 * The reference upstream with tasks: 2026-07-28 and the extension io.modelcontextprotocol/tasks, and nothing else.
 *
 * No official SDK can answer a call with a task yet (README.md in this folder says what hinders them), so that this one
 * is written after the text of the extension, on Node's own HTTP: a strict endpoint without sessions, whose tasks live
 * in its memory.
 *
 * Usage: node upstream_tasks.mjs [PORT]     PORT 0 or none: the system chooses. Listens on 127.0.0.1 only and prints
 * `listening on http://127.0.0.1:PORT/mcp` once it does. SIGTERM ends it.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

const VERSION = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';
const TASKS = { extensions: { [`${PREFIX}tasks`]: {} } };
const NAMED_BY = { 'tools/call': 'name', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };
const STATUS_OF = { [-32020]: 400, [-32021]: 400, [-32022]: 400, [-32601]: 404 };
const TTL_MS = 600_000;
const ENDED = ['completed', 'failed', 'cancelled'];

class Refusal extends Error {
    constructor(code, message, data) {
        super(message);
        this.error = { code, message, ...(data && { data }) };
    }
}

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
            throw new Refusal(-32603, 'the job broke off');
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
const listeners = new Set();

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
        for (const tell of listeners) tell(this);
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
            else this.become('failed', { statusMessage: error.message, error: error.error ?? { code: -32603, message: 'failed' } });
        }
    }

    cancel() {
        this.stop.abort();
        this.become('cancelled');
    }
}

// Methods

const complete = more => ({ resultType: 'complete', ...more });
const listed = more => complete({ ttlMs: 300_000, cacheScope: 'public', ...more });

function needTasks(declared) {
    if (!declared.extensions?.[`${PREFIX}tasks`]) {
        throw new Refusal(-32021, 'Missing required client capability', { requiredCapabilities: TASKS });
    }
}

function known({ taskId }) {
    if (!tasks.has(taskId)) throw new Refusal(-32602, 'Failed to retrieve task: Task not found');
    return tasks.get(taskId);
}

async function callTool({ name, arguments: args = {}, inputResponses }, declared) {
    const tool = TOOLS[name];
    if (!tool) throw new Refusal(-32602, `Unknown tool: ${name}`);
    if (tool.task === 'required') needTasks(declared);
    if (tool.task === 'never' || !declared.extensions?.[`${PREFIX}tasks`]) return complete(await tool.run(args));
    if (tool.before && !Object.keys(tool.before).every(key => key in (inputResponses ?? {}))) {
        return { resultType: 'input_required', inputRequests: tool.before };
    }
    const task = new Task();
    const created = { ...task.toJSON(), resultType: 'task' };
    setImmediate(() => void task.run(() => tool.run(args, task, inputResponses)));
    return created;
}

const METHODS = {
    'server/discover': () =>
        listed({
            supportedVersions: [VERSION],
            capabilities: { tools: {}, ...TASKS },
            _meta: { [`${PREFIX}serverInfo`]: { name: 'reference-upstream-tasks', version: '1.0.0' } }
        }),
    'tools/list': () => listed({ tools: Object.keys(TOOLS).map(name => ({ name, inputSchema: { type: 'object' } })) }),
    'tools/call': callTool,
    'tasks/get': (params, declared) => {
        needTasks(declared);
        return { ...known(params).toJSON(), resultType: 'complete' };
    },
    'tasks/update': (params, declared) => {
        needTasks(declared);
        known(params).update(params.inputResponses);
        return complete();
    },
    'tasks/cancel': (params, declared) => {
        needTasks(declared);
        known(params).cancel();
        return complete();
    }
};

/** Says what changes of the tasks that it asks for, until the client goes. */
function listen({ id, params }, res) {
    const asked = params.notifications?.taskIds;
    if (asked) needTasks(params._meta[`${PREFIX}clientCapabilities`]);
    const ids = (asked ?? []).filter(taskId => tasks.has(taskId));
    const send = (method, more) => {
        const _meta = { [`${PREFIX}subscriptionId`]: id };
        res.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...more, _meta } })}\n\n`);
    };
    const tell = task => ids.includes(task.id) && send('notifications/tasks', task.toJSON());
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
    send('notifications/subscriptions/acknowledged', { notifications: asked ? { taskIds: ids } : {} });
    listeners.add(tell);
    res.on('close', () => listeners.delete(tell));
}

// HTTP

const decoded = value => {
    const encoded = /^=\?base64\?(.*)\?=$/.exec(value ?? '');
    return encoded ? Buffer.from(encoded[1], 'base64').toString() : value;
};

function judge({ headers }, { method, params }) {
    const version = params?._meta?.[`${PREFIX}protocolVersion`];
    const name = params?.[NAMED_BY[method]];
    const agree =
        headers['mcp-protocol-version'] === version &&
        headers['mcp-method'] === method &&
        (name === undefined || decoded(headers['mcp-name']) === name);
    if (version !== undefined && version !== VERSION) {
        throw new Refusal(-32022, 'Unsupported protocol version', { supported: [VERSION], requested: version });
    }
    if (!agree) throw new Refusal(-32020, 'Header mismatch');
    if (!params?._meta?.[`${PREFIX}clientCapabilities`]) throw new Refusal(-32602, 'the client declares nothing');
}

async function answer(req, message, res) {
    const reply = (status, body) => res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    const { id, method, params } = message;
    try {
        judge(req, message);
        if (method === 'subscriptions/listen') return listen(message, res);
        if (!Object.hasOwn(METHODS, method)) throw new Refusal(-32601, 'Method not found');
        const result = await METHODS[method](params, params._meta[`${PREFIX}clientCapabilities`]);
        reply(200, { jsonrpc: '2.0', id, result });
    } catch (error) {
        const told = error.error ?? { code: -32603, message: 'Internal error' };
        reply(STATUS_OF[told.code] ?? 200, { jsonrpc: '2.0', id, error: told });
    }
}

const http = createServer(async (req, res) => {
    if (req.method !== 'POST') return void res.writeHead(405, { Allow: 'POST' }).end();
    const body = [];
    for await (const piece of req) body.push(piece);
    const message = JSON.parse(Buffer.concat(body).toString());
    if (message.id === undefined) return void res.writeHead(202).end();
    void answer(req, message, res);
});

http.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
