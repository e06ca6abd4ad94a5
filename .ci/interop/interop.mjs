// Asks a portal's built-in agents by the public clients as they are published.
// Usage: node interop.mjs PORTAL-URL, with a token with chat:write in
// AGENTSITE_TOKEN and the a2a command, if there is one, in AGENTSITE_TEST_A2A.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Role, SendMessageRequest, TaskState, verifyAgentCardSignature } from "@a2a-js/sdk";
import * as sdk from "@a2a-js/sdk/client";
import { LegacyJsonRpcTransport } from "@a2a-js/sdk/compat/v0_3/client";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { mcpCases } from "./mcp.mjs";

const portal = process.argv[2], token = process.env.AGENTSITE_TOKEN, command = process.env.AGENTSITE_TEST_A2A;
const base = `${portal}/agents/calc`, key = `Bearer ${token}`;
const four = /^\*\*4\*\*/;

const withKey = (authorization) => sdk.createAuthenticatingFetchWithRetry(fetch,
  { headers: async () => (authorization ? { Authorization: authorization } : {}), shouldRetryWithHeaders: async () => undefined });
const card = (home) => `${home}/.well-known/agent-card.json`;
const client = (binding) => async (authorization = key, home = base) => {
  const how = { fetchImpl: withKey(authorization) };
  const transports = [new sdk.JsonRpcTransportFactory(how), new sdk.RestTransportFactory(how)];
  return new sdk.ClientFactory({ preferredTransports: [binding], transports }).createFromUrl(card(home), "");
};
const old = async (authorization = key) => new LegacyJsonRpcTransport({ endpoint: `${base}/a2a`, fetchImpl: withKey(authorization) });

const text = (parts = []) => parts.map((p) => (p.content?.$case === "text" ? p.content.value : "")).join("");
const answer = (task) => task.artifacts.map((a) => text(a.parts)).join("");
const says = (words, more = {}) => SendMessageRequest.fromJSON(
  { message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: words }], ...more }, configuration: {} });

// read follows a stream to its end: the task that it began with, the answer
// as it grew, and the state that it ended in.
async function read(stream) {
  let task, state, grown = "";
  for await (const { payload: { $case: kind, value } } of stream) {
    assert.equal(kind === "task", task === undefined, "a stream begins with the task, and only once");
    if (kind === "task") { task = value; grown = answer(value); }
    if (kind === "artifactUpdate") grown = (value.append ? grown : "") + text(value.artifact.parts);
    if (kind !== "artifactUpdate") state = value.status.state;
  }
  return { task, state, grown };
}

// refused checks that a promise is rejected, for the reasons wanted.
async function refused(promise, ...want) {
  const err = await promise.then((v) => assert.fail(`not refused: ${JSON.stringify(v)}`), (e) => e);
  for (const w of want) assert.match([err.constructor.name, err.code, err.status, err.message].join(" "), w);
}

// a2aCases are what holds for each client of A2A, in either version.
const a2aCases = (name, connect) => ({
  [`${name}: send, a context goes on, sent again is asked once`]: async () => {
    const c = await connect(), first = await c.sendMessage(says("2+2"));
    assert.equal(first.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(answer(first), four);
    assert.deepEqual(first.history.map((m) => m.role), [Role.ROLE_USER, Role.ROLE_AGENT]);
    assert.equal(text(first.history[1].parts), answer(first));
    const ask = says("6*7", { contextId: first.contextId }), second = await c.sendMessage(ask), again = await c.sendMessage(ask);
    assert.match(answer(second), /^\*\*42\*\*/);
    assert.deepEqual([second.contextId, again.id], [first.contextId, second.id]);
  },
  [`${name}: stream equals what is kept`]: async () => {
    const c = await connect(), s = await read(c.sendMessageStream(says("2+2")));
    assert.equal(s.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(s.grown, four);
    assert.equal(answer(await c.getTask({ tenant: "", id: s.task.id })), s.grown);
  },
  [`${name}: get, cancel and subscribe after the end`]: async () => {
    const c = await connect(), task = await c.sendMessage(says("2+2")), which = { tenant: "", id: task.id };
    const got = await c.getTask({ ...which, historyLength: 0 });
    assert.deepEqual([got.history, answer(got)], [[], answer(task)]);
    await refused(c.cancelTask(which), /nothing to cancel/);
    await refused(read(c.resubscribeTask(which)), /has ended/);
    await refused(c.getTask({ tenant: "", id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" }), /no such task/);
  },
  [`${name}: a wrong key, and none`]: async () => {
    const c = await connect("Bearer ags_wrong"), visitor = await connect(""), task = await (await connect()).sendMessage(says("2+2"));
    await refused(c.sendMessage(says("2+2")), /token is unknown/);
    await refused(read(c.sendMessageStream(says("2+2"))), /token is unknown/);
    assert.match(answer(await visitor.sendMessage(says("2+2"))), four);
    await refused(visitor.getTask({ tenant: "", id: task.id }), /no such task/);
  },
});

// newCases are what only 1.0 has.
const newCases = (name, connect) => ({
  [`${name}: list, and send without waiting`]: async () => {
    const c = await connect(), ask = says("2+2");
    ask.configuration.returnImmediately = true;
    const { id, contextId } = await c.sendMessage(ask);
    // It may have ended before it is subscribed to.
    await read(c.resubscribeTask({ tenant: "", id })).catch((e) => assert.match(e.message, /has ended/));
    const want = { tenant: "", contextId, status: TaskState.TASK_STATE_COMPLETED, pageToken: "", includeArtifacts: true };
    const list = await c.listTasks(want);
    assert.deepEqual([list.tasks.map((t) => t.id), list.totalSize, list.nextPageToken], [[id], 1, ""]);
    assert.match(answer(list.tasks[0]), four);
    assert.equal((await c.listTasks({ ...want, status: TaskState.TASK_STATE_WORKING })).totalSize, 0);
  },
  [`${name}: the guide, at the portal's own base`]: async () => {
    const c = await connect(key, portal), s = await read(c.sendMessageStream(says("Which agent can calculate?")));
    assert.match(s.grown, /calc/i);
    assert.equal(answer(await c.getTask({ tenant: "", id: s.task.id })), s.grown);
    const extensions = (await c.getAgentCard()).capabilities.extensions.map((e) => e.uri);
    assert.ok(extensions.includes("https://agentsite.dev/ext/listing/v1"), `the extended card: ${extensions}`);
  },
});

// shown are the programs that the page of an agent shows, by their label.
const unescaped = (s) => s.replace(/&(lt|gt|#34|#39|amp);/g, (_, c) => ({ lt: "<", gt: ">", "#34": '"', "#39": "'", amp: "&" })[c]);
async function shown(name) {
  const page = await (await fetch(`${portal}/agents/${name}`)).text();
  return new Map([...page.matchAll(/<h3>([^<]*)<\/h3>\s*<span[^>]*><code[^>]*>([^<]*)<\/code>/g)].map(([, label, code]) => [unescaped(label), unescaped(code)]));
}
const runs = (label) => async () => {
  const code = (await shown("calc")).get(label);
  assert.ok(code, `the page shows no ${label}`);
  assert.match(execFileSync(process.execPath, ["--input-type=module", "--eval", code], { encoding: "utf8" }), /calculate/i);
};

const openai = new OpenAI({ baseURL: `${portal}/v1`, apiKey: token, maxRetries: 0 });
const ai = (apiKey) => createOpenAICompatible({ name: "agentsite", baseURL: `${portal}/v1`, apiKey, includeUsage: true });
const ask = (model, content) => ({ model, messages: [{ role: "user", content }] });

const cases = {
  "page: the program for the openai package": runs("JavaScript, package openai"),
  "page: the program for @a2a-js/sdk": runs("JavaScript, package @a2a-js/sdk"),
  ...a2aCases("A2A JSON-RPC", client("JSONRPC")), ...newCases("A2A JSON-RPC", client("JSONRPC")),
  ...a2aCases("A2A HTTP+JSON", client("HTTP+JSON")), ...newCases("A2A HTTP+JSON", client("HTTP+JSON")),
  ...a2aCases("A2A 0.3", old),
  "A2A: a signature of the card holds": async () => {
    const keyOf = async (kid, jku) => (await (await fetch(jku)).json()).keys.find((k) => k.kid === kid);
    await verifyAgentCardSignature(keyOf)(await new sdk.DefaultAgentCardResolver().resolve(card(base), ""));
  },
  "openai: models": async () => {
    const ids = (await openai.models.list()).data.map((m) => m.id);
    assert.ok(ids.includes("calc") && ids.includes("guide"), String(ids));
    assert.equal((await openai.models.retrieve("calc")).id, "calc");
  },
  "openai: answer, and a conversation that goes on": async () => {
    const { data, response } = await openai.chat.completions.create(ask("calc", "2+2")).withResponse();
    const [choice] = data.choices, headers = { "X-Conversation-Id": response.headers.get("X-Conversation-Id") };
    assert.match(choice.message.content, four);
    assert.deepEqual([choice.finish_reason, choice.message.role, data.model], ["stop", "assistant", "calc"]);
    assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
    const next = await openai.chat.completions.create(ask("calc", "times 3"), { headers });
    assert.match(next.choices[0].message.content, /^\*\*12\*\*/);
  },
  "openai: stream equals the answer": async () => {
    for (const [model, words] of [["calc", "2+2"], ["guide", "Which agent can calculate?"]]) {
      const whole = (await openai.chat.completions.create(ask(model, words))).choices[0].message.content;
      const stream = openai.chat.completions.stream({ ...ask(model, words), stream_options: { include_usage: true } });
      assert.equal(await stream.finalContent(), whole);
      assert.ok((await stream.totalUsage()).completion_tokens > 0);
    }
  },
  "openai: wrong key, unknown model, what is not served": async () => {
    await refused(openai.withOptions({ apiKey: "ags_wrong" }).models.list(), /AuthenticationError/, /401/, /invalid_api_key/);
    await refused(openai.chat.completions.create(ask("nobody-here", "2+2")), /404/, /model_not_found/);
    await refused(openai.chat.completions.create({ ...ask("nobody-here", "2+2"), stream: true }), /404/, /model_not_found/);
    await refused(openai.chat.completions.create({ ...ask("calc", "2+2"), n: 2 }), /400/);
  },
  "ai: text, stream, wrong key, unknown model": async () => {
    const go = (apiKey, model) => generateText({ model: ai(apiKey)(model), prompt: "2+2", maxRetries: 0 });
    const { text: whole, finishReason, usage } = await go(token, "calc");
    assert.match(whole, four);
    assert.deepEqual([finishReason, usage.totalTokens > 0], ["stop", true]);
    assert.equal(await streamText({ model: ai(token)("calc"), prompt: "2+2" }).text, whole);
    await refused(go("ags_wrong", "calc"), /token is unknown/);
    await refused(go(token, "nobody-here"), /nobody-here/);
  },
  ...mcpCases(portal, token, refused),
  ...(command && Object.fromEntries(["rest", "jsonrpc"].map((transport) => [`a2a command, ${transport}`, async () => {
    const a2a = (...args) => execFileSync(command, ["--transport", transport, "--auth", key, ...args], { encoding: "utf8", stdio: "pipe" });
    const task = JSON.parse(a2a("-o", "json", "send", `${base}/a2a`, "2+2"));
    assert.match(task.artifacts[0].parts[0].text, four);
    assert.match(a2a("send", "--stream", `${base}/a2a`, "2+2"), /\*\*4\*\*/);
    assert.match(a2a("list", "tasks", `${base}/a2a`), new RegExp(task.id));
    assert.match(a2a("get", "task", `${base}/a2a`, task.id), /\*\*4\*\*/);
    assert.throws(() => a2a("subscribe", `${base}/a2a`, task.id), /has ended/);
    assert.throws(() => a2a("cancel", `${base}/a2a`, task.id), /nothing to cancel/);
  }]))),
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  await run().then(() => console.log(`ok   ${name}`), (e) => { failed++; console.log(`FAIL ${name}\n`, e); });
}
console.log(`${Object.keys(cases).length - failed} of ${Object.keys(cases).length} cases passed`);
process.exit(failed ? 1 : 0);
