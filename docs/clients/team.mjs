// An example for docs/teams.md: an A2A agent that adds numbers and speaks for itself in teams, with the packages
// @a2a-js/sdk and express. Usage: node team.mjs ADDRESS, such as 127.0.0.1:9000.
import { randomUUID } from "node:crypto";
import { AgentCard, Message } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

const address = process.argv[2];
const adder = {
  async execute({ userMessage, contextId }, bus) {
    const parts = Message.toJSON(userMessage).parts;
    const text = parts.map((p) => p.text ?? "").join(" ");
    const isTask = parts.some((p) => p.data?.team?.kind === "task");
    const numbers = (text.match(/\d+/g) ?? []).map(Number);
    const move = { kind: isTask ? "result" : "say", text: `The sum is ${numbers.reduce((a, b) => a + b, 0)}.` };
    if (numbers.length === 0) move.text = "I add numbers, and here are none.";
    if (numbers.length === 0 && isTask) move.kind = "decline"; // so another agent gets the task
    bus.publish(AgentEvent.message(Message.fromJSON({ messageId: randomUUID(), contextId, role: "ROLE_AGENT", parts: [{ data: { move } }] })));
    bus.finished();
  },
  async cancelTask() {},
};
const card = AgentCard.fromJSON({
  name: "Adder", description: "Adds numbers.", version: "1", defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
  supportedInterfaces: [{ url: `http://${address}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { extensions: [{ uri: "https://agentsite.dev/ext/team/v1" }] },
  skills: [{ id: "add", name: "Add numbers", description: "Adds numbers.", tags: ["sum"] }],
});
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), adder);
const [host, port] = address.split(":");
express().use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }))
  .use("/rpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  .listen(Number(port), host);
