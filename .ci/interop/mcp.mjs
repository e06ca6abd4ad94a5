// The cases of MCP: both eras of the protocol, by the public clients of each
// as they are published, and by the inspector.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const me = { name: "interop", version: "1" };
const text = (result) => result.content.map((c) => c.text ?? "").join("\n");

// eras are the ways to connect: name, the version that is agreed on, connect.
const eras = [
  ["modern client", "2026-07-28", (c) => new Client(me, { versionNegotiation: { mode: { pin: "2026-07-28" } }, ...c }), StreamableHTTPClientTransport],
  ["client that finds out", "2026-07-28", (c) => new Client(me, { versionNegotiation: { mode: "auto" }, ...c }), StreamableHTTPClientTransport],
  ["new client, legacy", "2025-11-25", (c) => new Client(me, { versionNegotiation: { mode: "legacy" }, ...c }), StreamableHTTPClientTransport],
  ["legacy client", "2025-11-25", (c) => new OldClient(me, c), OldTransport],
];

export function mcpCases(portal, token, refused) {
  const cases = {};
  for (const [name, version, create, Transport] of eras) {
    const connect = async (path, key = `Bearer ${token}`, options) => {
      const client = create(options);
      await client.connect(new Transport(new URL(portal + path), { requestInit: { headers: key ? { Authorization: key } : {} } }));
      return client;
    };
    const withClient = async (path, key, use) => {
      const client = await connect(path, key);
      try { return await use(client); } finally { await client.close(); }
    };
    const was = (client, transport = client.transport) => client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;

    cases[`MCP ${name}: find, describe and ask at the portal`] = () => withClient("/mcp", undefined, async (c) => {
      assert.equal(was(c), version);
      const names = (await c.listTools()).tools.map((t) => t.name);
      for (const want of ["search_agents", "describe_agent", "ask_agent", "ask_agents"]) assert.ok(names.includes(want), `${want} in ${names}`);
      assert.match(text(await c.callTool({ name: "search_agents", arguments: { query: "calculate" } })), /calc/);
      assert.match(text(await c.callTool({ name: "describe_agent", arguments: { agent: "calc" } })), /calc/i);
      const answer = await c.callTool({ name: "ask_agent", arguments: { agent: "calc", text: "6*7" } });
      assert.match(text(answer), /\*\*42\*\*/);
      assert.ok(!answer.isError);
      const both = text(await c.callTool({ name: "ask_agents", arguments: { agents: ["calc", "guide"], text: "6*7" } }));
      assert.match(both, /\*\*42\*\*/);
    });
    cases[`MCP ${name}: the tools of an agent, a context goes on`] = () => withClient("/agents/calc/mcp", undefined, async (c) => {
      const { tools } = await c.listTools();
      assert.ok(tools.length > 0 && tools.every((t) => t.inputSchema.type === "object"), JSON.stringify(tools));
      const first = await c.callTool({ name: tools[0].name, arguments: { text: "2+2" } });
      assert.match(text(first), /\*\*4\*\*/);
      const { context_id } = first.structuredContent;
      const second = await c.callTool({ name: tools[0].name, arguments: { text: "times 3", context_id } });
      assert.match(text(second), /\*\*12\*\*/);
      assert.equal(second.structuredContent.context_id, context_id);
    });
    cases[`MCP ${name}: cards and transcripts are resources`] = () => withClient("/mcp", undefined, async (c) => {
      const card = await c.readResource({ uri: "agentsite://agents/calc" });
      assert.match(card.contents[0].text, /calc/);
      const { structuredContent: { context_id } } = await c.callTool({ name: "ask_agent", arguments: { agent: "calc", text: "6*7" } });
      const said = await c.readResource({ uri: `agentsite://conversations/${context_id}` });
      assert.match(said.contents[0].text, /42/);
      assert.ok((await c.listResourceTemplates()).resourceTemplates.length > 0);
      await refused(c.readResource({ uri: "agentsite://conversations/01ARZ3NDEKTSV4RRFFQ69G5FAV" }), /no |not /i);
    });
    cases[`MCP ${name}: bad arguments, unknown tools, a wrong key, none`] = async () => {
      await withClient("/mcp", undefined, async (c) => {
        const nobody = await c.callTool({ name: "ask_agent", arguments: { agent: "nobody-here", text: "Hello" } });
        assert.ok(nobody.isError);
        assert.match(text(nobody), /nobody-here/);
        const wrong = await c.callTool({ name: "ask_agent", arguments: { agent: 7 } }).catch((e) => ({ isError: true, content: [{ text: e.message }] }));
        assert.ok(wrong.isError);
        const none = await c.callTool({ name: "no_such_tool", arguments: {} }).catch((e) => ({ isError: true, content: [{ text: e.message }] }));
        assert.ok(none.isError);
        assert.match(text(none), /no_such_tool/);
      });
      await refused(connect("/mcp", "Bearer ags_wrong"), /401|[Uu]nauthorized|token/);
      await withClient("/mcp", "", async (c) => assert.match(text(await c.callTool({ name: "ask_agent", arguments: { agent: "calc", text: "6*7" } })), /\*\*42\*\*/));
    };
  }

  const at = "node_modules/@modelcontextprotocol/inspector";
  const command = `${at}/${JSON.parse(readFileSync(`${at}/package.json`)).bin["mcp-inspector"]}`;
  const inspect = async (path, ...args) => {
    const env = { ...process.env, HOME: process.cwd(), MCP_CATALOG_PATH: `${process.cwd()}/mcp.json` };
    const { stdout } = await promisify(execFile)("node", [command, "--cli", portal + path, "--transport", "http", "--header", `Authorization: Bearer ${token}`, ...args], { env });
    return JSON.parse(stdout);
  };
  cases["MCP inspector: tools, resources, a call"] = async () => {
    assert.ok((await inspect("/mcp", "--method", "tools/list", "--strict")).tools.length > 3);
    assert.ok((await inspect("/mcp", "--method", "resources/templates/list")).resourceTemplates.length > 0);
    const [tool] = (await inspect("/agents/calc/mcp", "--method", "tools/list", "--strict")).tools;
    assert.match(text(await inspect("/agents/calc/mcp", "--method", "tools/call", "--tool-name", tool.name, "--tool-arg", "text=6*7")), /\*\*42\*\*/);
  };
  return cases;
}
