// Asks an agent by one of the public JavaScript clients and prints its answer.
// Usage: node ask.mjs CLIENT PORTAL AGENT TEXT, with a token in AGENTSITE_TOKEN.
import { randomUUID } from "node:crypto";
import { SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory, createAuthenticatingFetchWithRetry } from "@a2a-js/sdk/client";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
import OpenAI from "openai";

const [client, portal, agent, text] = process.argv.slice(2), apiKey = process.env.AGENTSITE_TOKEN;
const clients = {
  "a2a-js": async () => {
    const fetchImpl = createAuthenticatingFetchWithRetry(fetch,
      { headers: async () => ({ Authorization: `Bearer ${apiKey}` }), shouldRetryWithHeaders: async () => undefined });
    const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] });
    const a2a = await factory.createFromUrl(`${portal}/agents/${agent}/.well-known/agent-card.json`, "");
    const task = await a2a.sendMessage(SendMessageRequest.fromJSON(
      { message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }] }, configuration: {} }));
    return task.artifacts.flatMap((a) => a.parts).map((p) => p.content.value).join("");
  },
  openai: async () => {
    const openai = new OpenAI({ baseURL: `${portal}/v1`, apiKey });
    return (await openai.chat.completions.create({ model: agent, messages: [{ role: "user", content: text }] })).choices[0].message.content;
  },
  ai: async () => {
    const provider = createOpenAICompatible({ name: "agentsite", baseURL: `${portal}/v1`, apiKey });
    return (await generateText({ model: provider(agent), prompt: text })).text;
  },
};
process.stdout.write(await clients[client]());
