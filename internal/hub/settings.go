package hub

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/plaintext"
	"agentsite/internal/weborigin"
)

// Limits on the settings of kinds and on an agent's inputs and outputs; characters where noted, else
// numbers of entries.
const (
	maxTools           = 64
	maxToolName        = 128
	maxToolText        = 2000 // runes
	maxToolSchema      = 16 << 10
	maxToolSchemas     = 128 << 10
	maxServerText      = 4000 // runes
	maxPromptTools     = 8
	maxPromptExamples  = 10
	maxExchange        = 4000 // runes
	maxPromptText      = 20_000
	maxTokens          = 32_000
	maxModes           = 20
	maxLanguages       = 20
	maxConfigCharacter = 300
	maxHosts           = 16
	maxWasmSettings    = 8 << 10 // bytes of all names and values
)

// settings is implemented by the settings type of each kind, the content of Agent.Config.
type settings interface {
	// checkSettings cleans the settings, and reports invalid settings and an invalid address of a to c.
	checkSettings(c *fault.Check, a *Agent, rules rules)
}

// newSettings returns a pointer to empty settings of a kind; false for kinds without settings.
func newSettings(k Kind) (settings, bool) {
	switch k {
	case A2A:
		return new(A2AConfig), true
	case MCP:
		return new(MCPConfig), true
	case OpenAI:
		return new(OpenAIConfig), true
	case Prompt:
		return new(PromptConfig), true
	case Link:
		return new(LinkConfig), true
	case Wasm:
		return new(WasmConfig), true
	}
	return nil, false
}

func (conf *A2AConfig) checkSettings(c *fault.Check, a *Agent, rules rules) {
	checkEndpoint(c, rules.addresses, a.Endpoint, A2A)
	c.Field(headerName(conf.AuthHeader), "config.auth_header", "name one HTTP header, for example X-API-Key")
	c.Field(len(conf.CardURL) <= maxEndpoint, "config.card_url", "use at most %d characters", maxEndpoint)
	c.Field(len(conf.Tenant) <= maxTenant && conf.Tenant == plaintext.OneLine(conf.Tenant), "config.tenant",
		"use at most %d characters, on one line", maxTenant)
	c.Field(slices.Contains([]string{"", "JSONRPC", "HTTP+JSON"}, conf.Binding), "config.binding",
		"choose JSONRPC or HTTP+JSON")
	c.Field(slices.Contains([]string{"", "1.0", "0.3"}, conf.Version), "config.version", "choose 1.0 or 0.3")
	c.Field(!slices.Contains([]string{"host", "content-length", "content-type", "transfer-encoding", "connection"},
		strings.ToLower(conf.AuthHeader)), "config.auth_header",
		"this header has another use; choose the one the agent asks for")
	conf.Tools = grant.CheckTools(c, conf.Tools)
	c.Field(len(conf.Tools) == 0 || (conf.TakesTools || conf.Binding == "") && weborigin.IsConfidential(a.Endpoint),
		"config.tools", "an agent gets tools at an https address, if its card declares the extension for them")
}

func (conf *OpenAIConfig) checkSettings(c *fault.Check, a *Agent, rules rules) {
	a.Endpoint = strings.TrimRight(a.Endpoint, "/")
	checkEndpoint(c, rules.addresses, a.Endpoint, OpenAI)
	c.Field(conf.Model == plaintext.OneLine(conf.Model), "config.model",
		"write the name on one line, without control characters")
	c.Field(conf.Model != "", "config.model", "name the model, for example llama3.2")
	c.Field(len(conf.Model) <= maxModel, "config.model", "use at most %d characters", maxModel)
	conf.Instructions = plaintext.Clean(conf.Instructions)
	c.Field(utf8.RuneCountInString(conf.Instructions) <= maxInstructions, "config.instructions",
		"use at most %d characters", maxInstructions)
}

func (conf *WasmConfig) checkSettings(c *fault.Check, a *Agent, rules rules) {
	if rules.modules == nil {
		return // this service registers no hosted programs, which is said of the kind
	}
	c.Field(a.Endpoint == "", "endpoint", "a hosted program has no address; leave it empty")
	conf.Module = strings.TrimPrefix(strings.TrimSpace(conf.Module), "sha256:")
	err := rules.modules.CheckHosted(a.OwnerID, conf.Module)
	c.Field(err == nil, "config.module", "%v", err)
	conf.Tools = grant.CheckTools(c, conf.Tools)
	_, _, ok := rules.models.NamedModel(a.OwnerID, conf.Model)
	c.Field(ok || conf.Model == "", "config.model", "there is no model of that name here")
	conf.Hosts = weborigin.ReadHosts(plaintext.CleanList(conf.Hosts, true))
	c.Field(len(conf.Hosts) <= maxHosts, "config.hosts", "name at most %d", maxHosts)
	for _, host := range conf.Hosts {
		u, err := url.Parse("https://" + host)
		c.Field(err == nil && u.Host == host && u.Hostname() != "" && len(host) <= maxConfigCharacter,
			"config.hosts", "%.80q is no host; write for example api.example.org", host)
	}
	size := 0
	for name, value := range conf.Settings {
		size += len(name) + len(value)
	}
	c.Field(size <= maxWasmSettings, "config.settings", "use at most %d bytes", maxWasmSettings)
}

func (conf *LinkConfig) checkSettings(c *fault.Check, a *Agent, _ rules) {
	c.Field(a.Endpoint == "", "endpoint", "a linked agent dials in and has no address; leave it empty")
	conf.Client, conf.Tools = plaintext.OneLine(conf.Client), grant.CheckTools(c, conf.Tools)
	c.Field(len(conf.Client) <= maxConfigCharacter, "config.client", "use at most %d characters", maxConfigCharacter)
}

func (m *MCPConfig) checkSettings(c *fault.Check, a *Agent, rules rules) {
	checkEndpoint(c, rules.addresses, a.Endpoint, MCP)
	c.Field(headerName(m.AuthHeader), "config.auth_header", "name one HTTP header, for example X-API-Key")
	c.Field(!slices.Contains([]string{"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection",
		"Accept", "Mcp-Session-Id"},
		http.CanonicalHeaderKey(m.AuthHeader)), "config.auth_header",
		"this header has another use; choose the one the server asks for")
	m.Version, m.Server, m.Instructions = plaintext.OneLine(m.Version), plaintext.OneLine(m.Server), plaintext.Clean(m.Instructions)
	c.Field(len(m.Version) <= 20, "config.version", "is no version of the protocol")
	c.Field(len(m.Server) <= maxConfigCharacter, "config.server", "use at most %d characters", maxConfigCharacter)
	c.Field(utf8.RuneCountInString(m.Instructions) <= maxServerText, "config.instructions", "use at most %d characters",
		maxServerText)
	c.Field(len(m.Tools) <= maxTools, "config.tools", "list at most %d tools", maxTools)
	all := 0
	seen := make(map[string]bool)
	for i := range m.Tools {
		t := &m.Tools[i]
		t.Title, t.Description = plaintext.OneLine(t.Title), plaintext.Clean(t.Description)
		c.Field(t.Name != "" && len(t.Name) <= maxToolName && t.Name == plaintext.OneLine(t.Name), "config.tools",
			"%.80q is no name of a tool", t.Name)
		c.Field(!seen[t.Name], "config.tools", "%.80q is there twice", t.Name)
		seen[t.Name] = true
		c.Field(utf8.RuneCountInString(t.Title) <= maxConfigCharacter &&
			utf8.RuneCountInString(t.Description) <= maxToolText, "config.tools", "%.80q says too much about itself",
			t.Name)
		c.Field(len(t.InputSchema) <= maxToolSchema && (len(t.InputSchema) == 0 || json.Valid(t.InputSchema)),
			"config.tools", "the schema of %.80q is too large", t.Name)
		all += len(t.InputSchema)
	}
	c.Field(all <= maxToolSchemas, "config.tools", "the schemas are too large together")
}

func (p *PromptConfig) checkSettings(c *fault.Check, a *Agent, rules rules) {
	p.Instructions = plaintext.Clean(p.Instructions)
	c.Field(p.Instructions != "", "config.instructions", "say what the agent shall do, as you would tell a person")
	c.Field(utf8.RuneCountInString(p.Instructions) <= maxPromptText, "config.instructions", "use at most %d characters",
		maxPromptText)
	c.Field(p.Model == plaintext.OneLine(p.Model) && len(p.Model) <= maxModel, "config.model",
		"write the name on one line, at most %d characters", maxModel)
	c.Field(len(p.Examples) <= maxPromptExamples, "config.examples", "give at most %d", maxPromptExamples)
	for _, e := range p.Examples {
		c.Field(strings.TrimSpace(e.User) != "" && strings.TrimSpace(e.Agent) != "", "config.examples",
			"each needs a question and an answer")
		c.Field(utf8.RuneCountInString(e.User) <= maxExchange && utf8.RuneCountInString(e.Agent) <= maxExchange,
			"config.examples", "keep each within %d characters", maxExchange)
	}
	p.Tools = plaintext.CleanList(p.Tools, true)
	c.Field(len(p.Tools) <= maxPromptTools, "config.tools", "use at most %d", maxPromptTools)
	for i, name := range p.Tools {
		p.Tools[i] = weborigin.ReadName(strings.TrimPrefix(name, "@"))
		c.Field(isAgentName(p.Tools[i]), "config.tools",
			"%.80q is no agent; use a name, name@portal, %s", name, strings.Join(grant.PortalTools, ", "))
	}
	c.Field(p.Temperature == nil || *p.Temperature >= 0 && *p.Temperature <= 2, "config.temperature", "use 0 to 2")
	c.Field(p.MaxTokens >= 0 && p.MaxTokens <= maxTokens, "config.max_tokens", "use 0 (the portal's bound) to %d",
		maxTokens)
	c.Field(p.Output == nil || len(*p.Output) <= maxToolSchema && (*p.Output)[0] == '{', "config.output",
		"give a JSON Schema, an object of at most %d bytes", maxToolSchema)
	a.Endpoint = strings.TrimRight(a.Endpoint, "/")
	switch {
	case a.Endpoint != "":
		checkEndpoint(c, rules.addresses, a.Endpoint, Prompt)
		c.Field(p.Model != "", "config.model", "name the model, for example llama3.2")
	default:
		_, _, ok := rules.models.NamedModel(a.OwnerID, p.Model)
		c.Field(ok || p.Model == "", "config.model", "there is no model of that name here; leave it empty for the portal's")
		c.Field(ok || p.Model != "", "endpoint",
			"this portal has no model of its own; give the address of one, ending in /v1")
	}
}

func checkModes(c *fault.Check, field string, modes []string) {
	c.Field(len(modes) <= maxModes, field, "name at most %d media types", maxModes)
	for _, m := range modes {
		c.Field(plaintext.IsMediaType(m), field, "%.80q is no media type; write for example text/plain", m)
	}
}
