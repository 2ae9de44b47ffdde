/**
 * The reference upstream that speaks sessions (2025-11-25 and earlier) and nothing else, on the official TypeScript
 * SDK 1.x: one server instance a session, resumable event streams, and asks that are real requests to the client.
 *
 * Usage: node upstream_legacy.mjs [PORT]     PORT 0 or none: the system chooses. Listens on 127.0.0.1 only and prints
 * `listening on http://127.0.0.1:PORT/mcp` once it does. SIGTERM ends it.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';

import * as catalogue from './catalogue.mjs';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const RESOURCE_NOT_FOUND = -32002; // of 2025-11-25; 2026-07-28 says -32602
const RETRY_MS = 100; // what a client is told to wait before it comes back for the rest of a cut stream

// What all sessions share: entries that were added since the start, and who is connected.
const tools = [...catalogue.tools];
const prompts = [...catalogue.prompts];
const sessions = new Map(); // session id -> { transport, server, level, subscribed }

const ANSWERS = {
    'elicitation/create': types.ElicitResultSchema,
    'sampling/createMessage': types.CreateMessageResultSchema,
    'roots/list': types.ListRootsResultSchema
};

/** Events of one session, by stream, so that a client can come back with Last-Event-ID. */
class EventLog {
    #events = [];

    async storeEvent(streamId, message) {
        return String(this.#events.push({ streamId, message }));
    }

    async getStreamIdForEventId(eventId) {
        return this.#events[Number(eventId) - 1]?.streamId;
    }

    async replayEventsAfter(lastEventId, { send }) {
        const streamId = await this.getStreamIdForEventId(lastEventId);
        if (streamId === undefined) throw new Error('unknown event');
        for (const [index, event] of this.#events.entries()) {
            // A priming event has nothing to replay.
            const due = index >= Number(lastEventId) && event.streamId === streamId && 'jsonrpc' in event.message;
            if (due) await send(String(index + 1), event.message);
        }
        return streamId;
    }
}

/** Asks round by round; the asks of one round are open at the same time. Resolves with all answers by key. */
async function askAll(entry, args, session, extra) {
    const declared = session.server.getClientCapabilities() ?? {};
    const answers = {};
    for (const round of entry.rounds) {
        const asks = Object.entries(round).filter(([, ask]) => !entry.declared || catalogue.capabilityOf(ask) in declared);
        const sent = asks.map(async ([key, ask]) => {
            answers[key] = await extra.sendRequest(catalogue.fill(ask, args), ANSWERS[ask.method]);
        });
        await Promise.all(sent);
    }
    return answers;
}

/** Every session hears of a change of a list, on its own stream. */
async function addEntry(list) {
    if (list === 'tools') tools.push(catalogue.addedTool(tools.length));
    else prompts.push(catalogue.addedPrompt(prompts.length));
    const told = [...sessions.values()].map(({ server }) =>
        list === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged()
    );
    await Promise.allSettled(told); // a session may be closing right now
}

async function callTool({ params }, extra, session) {
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
    for (const data of (LEVELS.indexOf('info') >= session.level && tool.logs) || []) {
        await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    }
    const progressToken = extra._meta?.progressToken;
    for (const progress of (progressToken !== undefined && tool.progress) || []) {
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    if (tool.cutStream) extra.closeSSEStream?.();
    if (tool.changes) await addEntry(tool.changes);
    if (tool.fails) return { content: [{ type: 'text', text: tool.fails }], isError: true };
    if (!tool.rounds) return { content: tool.content };
    try {
        return { content: catalogue.toldContent(await askAll(tool, params.arguments, session, extra)) };
    } catch (error) {
        return { content: [{ type: 'text', text: `The client did not answer: ${error.message}` }], isError: true };
    }
}

async function getPrompt({ params }, extra, session) {
    const prompt = prompts.find(({ name }) => name === params.name);
    if (!prompt) throw new types.McpError(types.ErrorCode.InvalidParams, `Unknown prompt: ${params.name}`);
    if (!prompt.rounds) return { messages: catalogue.fill(prompt.messages, params.arguments) };
    return { messages: catalogue.toldMessages(await askAll(prompt, params.arguments, session, extra)) };
}

function readResource({ params: { uri } }) {
    const id = catalogue.templateId(uri);
    const found = catalogue.resources.find(resource => resource.uri === uri);
    if (id === undefined && !found) throw new types.McpError(RESOURCE_NOT_FOUND, 'Resource not found', { uri });
    const { mimeType, body } = id === undefined ? found : { ...catalogue.template, body: catalogue.template.body(id) };
    return { contents: [{ uri, mimeType, ...body }] };
}

function complete({ params }) {
    const values = ['paris', 'park', 'party'].filter(value => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
}

const described = ({ name, description, inputSchema }) => ({ name, description, inputSchema });
const listedPrompt = ({ name, description, arguments: args }) => ({ name, description, arguments: args });
const withoutBody = ({ body, ...rest }) => rest;

function createInstance(session) {
    const server = new Server(
        { name: 'reference-upstream-legacy', version: '1.0.0' },
        {
            capabilities: {
                tools: { listChanged: true },
                prompts: { listChanged: true },
                resources: { subscribe: true, listChanged: true },
                completions: {},
                logging: {}
            }
        }
    );
    const handlers = [
        [types.ListToolsRequestSchema, () => ({ tools: tools.map(described) })],
        [types.CallToolRequestSchema, (request, extra) => callTool(request, extra, session)],
        [types.ListPromptsRequestSchema, () => ({ prompts: prompts.map(listedPrompt) })],
        [types.GetPromptRequestSchema, (request, extra) => getPrompt(request, extra, session)],
        [types.ListResourcesRequestSchema, () => ({ resources: catalogue.resources.map(withoutBody) })],
        [types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [withoutBody(catalogue.template)] })],
        [types.ReadResourceRequestSchema, readResource],
        [types.SubscribeRequestSchema, ({ params }) => (session.subscribed.add(params.uri), {})],
        [types.UnsubscribeRequestSchema, ({ params }) => (session.subscribed.delete(params.uri), {})],
        [types.SetLevelRequestSchema, ({ params }) => ((session.level = LEVELS.indexOf(params.level)), {})],
        [types.CompleteRequestSchema, complete]
    ];
    for (const [schema, handle] of handlers) server.setRequestHandler(schema, handle);
    return server;
}

async function openSession(port) {
    const names = [`127.0.0.1:${port}`, `localhost:${port}`];
    const session = { level: 0, subscribed: new Set() };
    session.transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new EventLog(),
        retryInterval: RETRY_MS,
        enableDnsRebindingProtection: true,
        allowedHosts: names,
        allowedOrigins: names.map(name => `http://${name}`),
        onsessioninitialized: id => void sessions.set(id, session),
        onsessionclosed: id => void sessions.delete(id)
    });
    session.server = createInstance(session);
    await session.server.connect(session.transport);
    return session;
}

function refuse(res, status, code, message) {
    res.writeHead(status, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
}

async function serve(req, res) {
    if (new URL(req.url, 'http://127.0.0.1').pathname !== '/mcp') {
        res.writeHead(404).end();
        return;
    }
    const id = req.headers['mcp-session-id'];
    if (id === undefined && req.method !== 'POST') {
        refuse(res, 400, -32000, 'Bad Request: Mcp-Session-Id header is required');
        return;
    }
    // A request without an id can only be the first of a new session; the transport refuses anything else.
    const session = id === undefined ? await openSession(http.address().port) : sessions.get(id);
    if (session) await session.transport.handleRequest(req, res);
    else refuse(res, 404, -32001, 'Session not found');
}

const http = createServer((req, res) => {
    serve(req, res).catch(error => {
        console.error(error);
        res.destroy();
    });
});

http.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
