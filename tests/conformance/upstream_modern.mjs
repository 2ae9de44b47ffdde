/**
 * The reference upstream that speaks 2026-07-28 and nothing else, on the official TypeScript SDK 2.x: a strict
 * endpoint without sessions, that asks by InputRequiredResult.
 *
 * Usage: node upstream_modern.mjs [PORT]     PORT 0 or none: the system chooses. Listens on 127.0.0.1 only and prints
 * `listening on http://127.0.0.1:PORT/mcp` once it does. SIGTERM ends it.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';

import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    CLIENT_CAPABILITIES_META_KEY,
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    McpServer,
    ProtocolError,
    ProtocolErrorCode,
    ResourceNotFoundError
} from '@modelcontextprotocol/server';

import * as catalogue from './catalogue.mjs';

const FRESH = { ttlMs: 300_000, cacheScope: 'public' };
const FRESH_LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'server/discover'];

// Entries that were added since the start, for every later request: a server instance lives for one request.
const tools = [...catalogue.tools];
const prompts = [...catalogue.prompts];
const states = createRequestStateCodec({ key: randomBytes(32) });

/** The asks of `round` that this request may be asked. */
function permitted(entry, round, ctx) {
    const declared = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const asks = Object.entries(round).filter(([, ask]) => !entry.declared || catalogue.capabilityOf(ask) in declared);
    return Object.fromEntries(asks);
}

/**
 * One leg of an asking tool or prompt: the next InputRequiredResult, or { answers } when nothing is left to ask.
 * Only a sealed entry remembers earlier rounds; the others have one round and need no memory.
 */
async function nextAsk(entry, args, ctx) {
    const { round: at, answers: earlier } = (entry.sealed && ctx.mcpReq.requestState()) || { round: 0, answers: {} };
    const given = ctx.mcpReq.inputResponses ?? {};
    const asked = permitted(entry, entry.rounds[at], ctx);
    const answered = Object.keys(asked).every(key => key in given);
    const now = answered ? Object.fromEntries(Object.keys(asked).map(key => [key, given[key]])) : {};
    const answers = { ...earlier, ...now };
    const round = answered ? at + 1 : at;
    if (round === entry.rounds.length) return { answers };
    const inputRequests = catalogue.fill(permitted(entry, entry.rounds[round], ctx), args);
    const requestState = entry.sealed ? await states.mint({ round, answers }) : undefined;
    return inputRequired({ inputRequests, requestState });
}

function addEntry(list) {
    if (list === 'tools') {
        tools.push(catalogue.addedTool(tools.length));
        handler.notify.toolsChanged();
    } else {
        prompts.push(catalogue.addedPrompt(prompts.length));
        handler.notify.promptsChanged();
    }
}

async function callTool(tool, args, ctx) {
    for (const line of tool.logs ?? []) await ctx.mcpReq.log('info', line);
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of (progressToken !== undefined && tool.progress) || []) {
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    // a stream of this era cannot be cut and resumed; but its answer, too, is worth waiting for on a stream
    if (tool.cutStream) await new Promise((resolve) => setTimeout(resolve, 200));
    if (tool.changes) addEntry(tool.changes);
    if (tool.fails) throw new Error(tool.fails);
    if (!tool.rounds) return { content: tool.content };
    const leg = await nextAsk(tool, args, ctx);
    return leg.answers ? { content: catalogue.toldContent(leg.answers) } : leg;
}

async function getPrompt({ params }, ctx) {
    const prompt = prompts.find(({ name }) => name === params.name);
    if (!prompt) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${params.name}`);
    if (!prompt.rounds) return { messages: catalogue.fill(prompt.messages, params.arguments) };
    const leg = await nextAsk(prompt, params.arguments, ctx);
    return leg.answers ? { messages: catalogue.toldMessages(leg.answers) } : leg;
}

function readResource({ params: { uri } }) {
    const id = catalogue.templateId(uri);
    const found = catalogue.resources.find(resource => resource.uri === uri);
    if (id === undefined && !found) throw new ResourceNotFoundError(uri);
    const { mimeType, body } = id === undefined ? found : { ...catalogue.template, body: catalogue.template.body(id) };
    return { contents: [{ uri, mimeType, ...body }], ...FRESH };
}

function complete({ params }) {
    const values = ['paris', 'park', 'party'].filter(value => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
}

function createInstance() {
    const mcp = new McpServer(
        { name: 'reference-upstream-modern', version: '1.0.0' },
        {
            capabilities: {
                tools: { listChanged: true },
                prompts: { listChanged: true },
                resources: { subscribe: true, listChanged: true },
                completions: {},
                logging: {}
            },
            cacheHints: Object.fromEntries(FRESH_LISTS.map(method => [method, FRESH])),
            requestState: { verify: states.verify }
        }
    );
    for (const tool of tools) {
        const { name, description, inputSchema } = tool;
        mcp.registerTool(name, { description, inputSchema: fromJsonSchema(inputSchema) }, (args, ctx) => callTool(tool, args, ctx));
    }
    const listed = prompts.map(({ name, description, arguments: args }) => ({ name, description, arguments: args }));
    const described = catalogue.resources.map(({ body, ...rest }) => rest);
    const { body, ...template } = catalogue.template;
    mcp.server.setRequestHandler('prompts/list', () => ({ prompts: listed }));
    mcp.server.setRequestHandler('prompts/get', getPrompt);
    mcp.server.setRequestHandler('resources/list', () => ({ resources: described }));
    mcp.server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [template] }));
    mcp.server.setRequestHandler('resources/read', readResource);
    mcp.server.setRequestHandler('completion/complete', complete);
    return mcp;
}

const handler = createMcpHandler(createInstance, { legacy: 'reject' });
const serve = toNodeHandler(handler);
const guards = [localhostHostValidation(), localhostOriginValidation()];

const http = createServer((req, res) => {
    if (!guards.every(guard => guard(req, res))) return;
    if (new URL(req.url, 'http://127.0.0.1').pathname !== '/mcp') {
        res.writeHead(404).end();
        return;
    }
    void serve(req, res);
});

http.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
    console.log(`listening on http://127.0.0.1:${http.address().port}/mcp`);
});
process.on('SIGTERM', () => process.exit(0));
