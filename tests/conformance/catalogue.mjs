/**
 * What both reference upstreams offer: the tools, prompts and resources that the conformance scenarios of either era
 * name, as data. The upstreams differ in one thing only, the way in which they ask: upstream_modern.mjs returns an
 * InputRequiredResult, upstream_legacy.mjs sends real requests to the client. So a scenario that asks means the same
 * whichever era stands behind the gateway.
 *
 * A tool is { name, description, inputSchema, ... } and does what its other fields say, in this order:
 *   logs      texts to log at level "info", in order
 *   progress  values to report out of 100, in order, when the caller sent a progress token
 *   cutStream true: end the answer's event stream early, so that the client must come back for the rest (sessions only)
 *   changes   "tools" or "prompts": add one entry to that list and say so
 *   rounds    asks, round by round: each is { key: { method, params } }; the next round comes when all are answered
 *   sealed    true: the rounds carry a requestState (2026-07-28 only)
 *   declared  true: leaves out the asks for which the client declared no capability
 *   fails     the text of an error
 *   content   what the tool returns (without it: a text that tells the answers)
 * A prompt is { name, description, arguments, messages, rounds }. "{argument}" inside an ask, a message or a resource
 * stands for the value of that argument.
 *
 * Knows no SDK and no era.
 */

// One red pixel, and a WAV file of one silent sample.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==';

const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false };

const text = value => ({ type: 'text', text: value });
const image = () => ({ type: 'image', data: PNG, mimeType: 'image/png' });
const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });
const says = content => ({ role: 'user', content });

const form = (message, properties, required = Object.keys(properties)) => ({
    method: 'elicitation/create',
    params: { message, requestedSchema: { type: 'object', properties, required } }
});
const sample = (prompt, maxTokens = 100) => ({
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: text(prompt) }], maxTokens }
});
const roots = () => ({ method: 'roots/list', params: {} });

const confirm = () => ({ confirm: form('Please confirm', { ok: { type: 'boolean' } }) });
const titled = (word, values) => values.map(([value, title]) => ({ const: value, title: `${title} ${word}` }));
const NUMBERED = [
    ['value1', 'First'],
    ['value2', 'Second'],
    ['value3', 'Third']
];
const OPTIONS = ['option1', 'option2', 'option3'];

const plainTools = [
    { name: 'test_simple_text', description: 'Returns one text', content: [text('This is a simple text response for testing.')] },
    { name: 'test_image_content', description: 'Returns one image', content: [image()] },
    { name: 'test_audio_content', description: 'Returns one sound', content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
    {
        name: 'test_embedded_resource',
        description: 'Returns one embedded resource',
        content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')]
    },
    {
        name: 'test_multiple_content_types',
        description: 'Returns a text, an image and an embedded resource',
        content: [
            text('Multiple content types test:'),
            image(),
            embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')
        ]
    },
    { name: 'test_error_handling', description: 'Always fails', fails: 'This tool intentionally returns an error for testing' },
    {
        name: 'test_tool_with_logging',
        description: 'Logs three times while it runs',
        logs: ['Tool execution started', 'Tool processing data', 'Tool execution completed'],
        content: [text('Logged three times')]
    },
    { name: 'test_logging_tool', description: 'Logs once', logs: ['Logged by test_logging_tool'], content: [text('Logged once')] },
    {
        name: 'test_tool_with_progress',
        description: 'Reports progress three times while it runs',
        progress: [0, 50, 100],
        content: [text('Reported three times')]
    },
    {
        name: 'test_reconnection',
        description: 'Ends its event stream before the answer, which waits for the client to come back',
        cutStream: true,
        content: [text('The answer after the stream had ended')]
    },
    { name: 'test_trigger_tool_change', description: 'Adds a tool', changes: 'tools', content: [text('Added a tool')] },
    { name: 'test_trigger_prompt_change', description: 'Adds a prompt', changes: 'prompts', content: [text('Added a prompt')] },
    {
        name: 'test_x_mcp_header',
        description: 'Takes one argument that is mirrored in a header',
        inputSchema: {
            type: 'object',
            properties: { region: { type: 'string', description: 'Where', 'x-mcp-header': 'Region' } },
            required: ['region'],
            additionalProperties: false
        },
        content: [text('Took the argument')]
    },
    {
        name: 'json_schema_2020_12_tool',
        description: 'Tool with JSON Schema 2020-12 features',
        inputSchema: {
            $schema: 'https://json-schema.org/draft/2020-12/schema',
            type: 'object',
            $defs: {
                address: {
                    $anchor: 'addressDef',
                    type: 'object',
                    properties: { street: { type: 'string' }, city: { type: 'string' } }
                }
            },
            properties: {
                name: { type: 'string' },
                address: { $ref: '#/$defs/address' },
                contactMethod: { type: 'string', enum: ['phone', 'email'] },
                phone: { type: 'string' },
                email: { type: 'string' }
            },
            allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
            if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
            then: { required: ['phone'] },
            else: { required: ['email'] },
            additionalProperties: false
        },
        content: [text('Took the arguments')]
    }
];

// Named by the scenarios of the era of sessions.
const sessionAskers = [
    {
        name: 'test_sampling',
        description: 'Asks the client for a completion',
        inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
        rounds: [{ completion: sample('{prompt}') }]
    },
    {
        name: 'test_elicitation',
        description: 'Asks the user who they are',
        inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
        rounds: [
            {
                who: form('{message}', {
                    username: { type: 'string', description: "User's response" },
                    email: { type: 'string', description: "User's email address" }
                })
            }
        ]
    },
    {
        name: 'test_elicitation_sep1034_defaults',
        description: 'Asks with a default for every primitive type',
        rounds: [
            {
                profile: form(
                    'Please review the defaults',
                    {
                        name: { type: 'string', description: 'Name', default: 'John Doe' },
                        age: { type: 'integer', description: 'Age', default: 30 },
                        score: { type: 'number', description: 'Score', default: 95.5 },
                        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
                        verified: { type: 'boolean', description: 'Verified', default: true }
                    },
                    []
                )
            }
        ]
    },
    {
        name: 'test_elicitation_sep1330_enums',
        description: 'Asks with every kind of choice',
        rounds: [
            {
                choices: form(
                    'Please choose',
                    {
                        untitledSingle: { type: 'string', enum: OPTIONS },
                        titledSingle: { type: 'string', oneOf: titled('Option', NUMBERED) },
                        legacyEnum: {
                            type: 'string',
                            enum: ['opt1', 'opt2', 'opt3'],
                            enumNames: ['Option One', 'Option Two', 'Option Three']
                        },
                        untitledMulti: { type: 'array', items: { type: 'string', enum: OPTIONS } },
                        titledMulti: { type: 'array', items: { anyOf: titled('Choice', NUMBERED) } }
                    },
                    []
                )
            }
        ]
    }
];

// Named by the scenarios of 2026-07-28.
const statelessAskers = [
    {
        name: 'test_input_required_result_elicitation',
        description: 'Asks the user for their name',
        rounds: [{ user_name: form('What is your name?', { name: { type: 'string' } }) }]
    },
    {
        name: 'test_input_required_result_sampling',
        description: 'Asks the client for a completion',
        rounds: [{ capital_question: sample('What is the capital of France?') }]
    },
    {
        name: 'test_input_required_result_list_roots',
        description: 'Asks the client for its roots',
        rounds: [{ client_roots: roots() }]
    },
    { name: 'test_input_required_result_request_state', description: 'Keeps a state', sealed: true, rounds: [confirm()] },
    { name: 'test_input_required_result_tampered_state', description: 'Keeps a state', sealed: true, rounds: [confirm()] },
    {
        name: 'test_input_required_result_multiple_inputs',
        description: 'Asks three things at once',
        sealed: true,
        rounds: [
            {
                user_name: form('What is your name?', { name: { type: 'string' } }),
                greeting: sample('Generate a greeting', 50),
                client_roots: roots()
            }
        ]
    },
    {
        name: 'test_input_required_result_multi_round',
        description: 'Asks one thing after the other',
        sealed: true,
        rounds: [
            { step1: form('Step 1: What is your name?', { name: { type: 'string' } }) },
            { step2: form('Step 2: What is your favorite color?', { color: { type: 'string' } }) }
        ]
    },
    {
        name: 'test_input_required_result_capabilities',
        description: 'Asks only what the client says it can answer',
        declared: true,
        rounds: [{ name: form('What is your name?', { name: { type: 'string' } }), greeting: sample('Generate a greeting') }]
    },
    {
        name: 'test_missing_capability',
        description: 'Asks for a completion, whatever the client can do',
        rounds: [{ completion: sample('Say anything') }]
    },
    {
        name: 'test_streaming_elicitation',
        description: 'Asks the user for their name',
        rounds: [{ user_name: form('What is your name?', { name: { type: 'string' } }) }]
    }
];

export const tools = [...plainTools, ...sessionAskers, ...statelessAskers].map(tool => ({
    ...tool,
    inputSchema: tool.inputSchema ?? NO_ARGUMENTS
}));

export const prompts = [
    { name: 'test_simple_prompt', description: 'One text', messages: [says(text('This is a simple prompt for testing.'))] },
    {
        name: 'test_prompt_with_arguments',
        description: 'One text with two arguments in it',
        arguments: [
            { name: 'arg1', description: 'First test argument', required: true },
            { name: 'arg2', description: 'Second test argument', required: true }
        ],
        messages: [says(text("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
    },
    {
        name: 'test_prompt_with_embedded_resource',
        description: 'An embedded resource and a text',
        arguments: [{ name: 'resourceUri', description: 'URI of the resource to embed', required: true }],
        messages: [
            says(embedded('{resourceUri}', 'text/plain', 'Embedded resource content for testing.')),
            says(text('Please process the embedded resource above.'))
        ]
    },
    {
        name: 'test_prompt_with_image',
        description: 'An image and a text',
        messages: [says(image()), says(text('Please analyze the image above.'))]
    },
    {
        name: 'test_input_required_result_prompt',
        description: 'Asks the user for its context',
        rounds: [{ user_context: form('What context should the prompt use?', { context: { type: 'string' } }) }]
    }
];

export const resources = [
    {
        uri: 'test://static-text',
        name: 'static-text',
        description: 'A text',
        mimeType: 'text/plain',
        body: { text: 'This is the content of the static text resource.' }
    },
    { uri: 'test://static-binary', name: 'static-binary', description: 'An image', mimeType: 'image/png', body: { blob: PNG } },
    {
        uri: 'test://watched-resource',
        name: 'watched-resource',
        description: 'A text that one can subscribe to',
        mimeType: 'text/plain',
        body: { text: 'Watched resource content' }
    }
];

export const template = {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'JSON that tells the id',
    mimeType: 'application/json',
    body: id => ({ text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) })
};

/** The id in a URI of the template, or undefined. */
export const templateId = uri => /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];

/** What a list gains when test_trigger_tool_change or test_trigger_prompt_change adds its entry number `n`. */
export const addedTool = n => ({
    name: `added_tool_${n}`,
    description: 'A tool that was added',
    inputSchema: NO_ARGUMENTS,
    content: [text(`Added tool ${n}`)]
});
export const addedPrompt = n => ({
    name: `added_prompt_${n}`,
    description: 'A prompt that was added',
    messages: [says(text(`Added prompt ${n}`))]
});

/** `value` with "{argument}" replaced in every string within. Other braces stay. */
export function fill(value, args = {}) {
    if (typeof value === 'string') {
        return value.replace(/\{(\w+)\}/g, (whole, name) => (name in args ? String(args[name]) : whole));
    }
    if (Array.isArray(value)) return value.map(item => fill(item, args));
    if (value !== null && typeof value === 'object') {
        return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, args)]));
    }
    return value;
}

/** The client capability that an ask needs. */
export const capabilityOf = ask => ({ elicitation: 'elicitation', sampling: 'sampling', roots: 'roots' })[ask.method.split('/')[0]];

/** The texts that tell what the client answered: `answers` maps keys to bare results. */
export const toldContent = answers => [text(`Answers: ${JSON.stringify(answers)}`)];
export const toldMessages = answers => [says(text(`Answers: ${JSON.stringify(answers)}`))];
