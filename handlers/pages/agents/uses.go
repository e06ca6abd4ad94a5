package agents

import (
	"net/url"

	"agentsite/internal/a2a"
	"agentsite/internal/hub"
	"agentsite/templates"
)

// tokenHint returns the explanation of AGENTSITE_TOKEN in the commands.
func (d *Profile) tokenHint(a hub.Agent) string {
	if d.accounts.Guests() && a.Visibility == hub.Public && a.Limits.Callers == hub.AnyCaller {
		return "AGENTSITE_TOKEN stands for a token of yours. It may be left out, with its header: then you are a visitor, and bound by a visitor's limits."
	}
	return "AGENTSITE_TOKEN stands for a token of yours. It is required."
}

// uses returns the ways to reach an agent, one for each kind of program. Each command works unchanged once
// AGENTSITE_TOKEN is set: a test reads them from the page and runs them. server is the agent's name in the MCP
// registry, or empty.
func (d *Profile) uses(a hub.Agent, server string) []templates.Use {
	name, base := a.Handle(), d.portal.URL
	at := base + "/agents/" + name
	v1, card, mcp := base+"/v1", base+a2a.CardPath(name), at+"/mcp"
	uses := []templates.Use{
		{ID: "browser", Label: "Browser", Hint: "Open the link, or share it. With &text= it has a question filled in, which is sent only by the person that opens it.",
			Commands: []templates.Command{{Label: "Link to ask it", Code: base + askPath(a, "")}}},
		{ID: "terminal", Label: "Terminal", Hint: "With the agentsite command, which reads AGENTSITE_TOKEN by itself.",
			Commands: []templates.Command{
				{Label: "Ask it once", Code: "agentsite chat --portal " + base + " " + name + " 'Hello'"},
				{Label: "Talk to it", Code: "agentsite chat --portal " + base + " " + name}}},
		{ID: "openai", Label: "OpenAI", Hint: "For whatever speaks the OpenAI chat API: the base URL is " + v1 +
			", the key your token, and the model the agent's handle.", Commands: []templates.Command{
			{Label: "curl", Code: curlPost(v1+"/chat/completions",
				`{"model":"`+name+`","messages":[{"role":"user","content":"Hello"}]}`)},
			{Label: "JavaScript, package openai", Code: openAIScript(v1, name)},
			{Label: "Python, package openai", Code: openAIPython(v1, name)}}},
		{ID: "a2a", Label: "A2A", Hint: "For clients of A2A 1.0 and 0.3, over JSON-RPC and HTTP+JSON. All they need to know is in the card.", Commands: []templates.Command{
			{Label: "Agent card", Code: card},
			{Label: "a2a command", Code: `a2a --auth "Bearer $AGENTSITE_TOKEN" send ` + at + ` 'Hello'`},
			{Label: "JavaScript, package @a2a-js/sdk", Code: a2aScript(card)}}},
		{ID: "mcp", Label: "MCP", Hint: "Its skills are the tools of an MCP server (Streamable HTTP).",
			Commands: []templates.Command{
				{Label: "Address", Code: mcp},
				{Label: "Claude Code", Code: "claude mcp add --transport http " + a.Name + " " + mcp +
					` --header "Authorization: Bearer $AGENTSITE_TOKEN"`},
				{Label: "Settings of other clients, with a token in place of ags_…", Code: mcpSettings(a.Name, mcp)},
				{Label: "Look at its tools", Code: "npx @modelcontextprotocol/inspector --cli " + mcp +
					` --transport http --method tools/list --header "Authorization: Bearer $AGENTSITE_TOKEN"`}}},
		{ID: "api", Label: "Our own API", Hint: "For conversations that go on, with files, live events and several agents. It takes a token.", Commands: []templates.Command{
			{Label: "Begin", Code: "ID=$(" + curlPost(base+"/api/v1/conversations",
				`{"members":["`+name+`"]}`) + " | jq -r .id)"},
			{Label: "Say something", Code: curlPost(base+"/api/v1/conversations/$ID/messages",
				`{"client_id":"1","text":"Hello"}`)},
			{Label: "Read the answer as it comes, until you stop",
				Code: "curl -sN " + base + `/api/v1/conversations/$ID/live -H "Authorization: Bearer $AGENTSITE_TOKEN" -H 'Accept: text/event-stream'`}}},
	}
	if server != "" {
		uses = append(uses, templates.Use{ID: "registry", Label: "MCP registry",
			Hint: "It is an MCP server itself: clients of MCP registries find it as " + server + ". Give them " + base +
				" as the registry.",
			Commands: []templates.Command{{Label: "Look it up",
				Code: "curl -s " + base + "/v0.1/servers/" + url.PathEscape(server) + "/versions/latest"}}})
	}
	return uses
}

// curlPost returns a curl command that posts JSON with the user's token. body must not contain a single
// quote, because it is quoted so in the shell.
func curlPost(address, body string) string {
	return "curl -s " + address + ` \
  -H "Authorization: Bearer $AGENTSITE_TOKEN" -H 'Content-Type: application/json' \
  -d '` + body + "'"
}

func openAIScript(base, model string) string {
	return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "` + base + `", apiKey: process.env.AGENTSITE_TOKEN });
const answer = await client.chat.completions.create({
  model: "` + model + `",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`
}

func openAIPython(base, model string) string {
	return `import os
from openai import OpenAI

client = OpenAI(base_url="` + base + `", api_key=os.environ["AGENTSITE_TOKEN"])
answer = client.chat.completions.create(
    model="` + model + `", messages=[{"role": "user", "content": "Hello"}])
print(answer.choices[0].message.content)`
}

func a2aScript(card string) string {
	return `import { SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory, JsonRpcTransportFactory } from "@a2a-js/sdk/client";

const Authorization = "Bearer " + process.env.AGENTSITE_TOKEN;
const fetchImpl = (at, init) => fetch(at, { ...init, headers: { ...init?.headers, Authorization } });
const clients = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] });
const client = await clients.createFromUrl("` + card + `", "");
const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "Hello" }] };
const task = await client.sendMessage(SendMessageRequest.fromJSON({ message }));
console.log(task.artifacts[0].parts[0].content.value);`
}

// mcpSettings returns the JSON configuration of a server in the form that most MCP clients read.
func mcpSettings(name, address string) string {
	return `{
  "mcpServers": {
    "` + name + `": {
      "type": "http",
      "url": "` + address + `",
      "headers": { "Authorization": "Bearer ags_…" }
    }
  }
}`
}
