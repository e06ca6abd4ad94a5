// Package agentkind is the table of the kinds of agents. A row holds the way an agent is reached or run
// and the texts and properties that pages, checks and other portals need. A new kind needs a row here,
// its settings in package hub and a driver.
package agentkind

import "slices"

// Kind is the way an agent is reached or run. The values appear in the API, the database and signed
// records.
type Kind string

// The kinds that a portal can reach or run.
const (
	Builtin Kind = "builtin" // code in this binary
	A2A     Kind = "a2a"     // an A2A agent at its own address
	MCP     Kind = "mcp"     // an MCP server (Streamable HTTP), whose tools are called
	OpenAI  Kind = "openai"  // a model or assistant with the OpenAI chat API
	Prompt  Kind = "prompt"  // instructions that the portal runs on a model
	Link    Kind = "link"    // a program that connects out to the portal
	Wasm    Kind = "wasm"    // a WebAssembly program that the portal runs in a sandbox
)

// Spec is one row of the table: the properties of a kind and the texts about it.
type Spec struct {
	Kind Kind
	// Label is the short name of the kind in lists. Help describes an agent of this portal on its page,
	// Remote an agent of another portal.
	Label, Help, Remote string
	// Choice, When and Example are texts of the registration form: name of the kind, when to choose it,
	// example of an address.
	Choice, When, Example string
	// Address is an example of an address in error messages; empty if agents of the kind have none.
	Address string
	// Secret is the name of the credential in requests and forms; empty if there is none.
	Secret string
	// Supplied is the name of the setting that is read from the description at the agent's address;
	// empty if registrations contain all settings.
	Supplied string
	// Registered is true if people can register agents of the kind. Only such agents are published to
	// other portals.
	Registered bool
	// Hosted is true if the portal runs the agents or holds their connections. Then there is no address
	// whose ownership must be proved.
	Hosted bool
	// Unprobed is true if the portal sends no requests to find out whether an agent is alive.
	Unprobed bool
}

// table lists the kinds in the order of the registration form; Builtin, which is not registered, is
// last.
var table = []Spec{
	{Kind: A2A, Label: "A2A", Help: "An A2A agent, reached at its owner's own address.",
		Remote: "Its portal reaches it at its owner’s own address.", Choice: "A2A agent",
		When:    "It already speaks A2A at an address that can be reached from here.",
		Example: "https://agent.example.org", Address: "https://example.org/a2a", Secret: "token", Supplied: "binding",
		Registered: true},
	{Kind: Prompt, Label: "prompt", Help: "Instructions that this portal runs on a model.",
		Remote: "Instructions that its portal runs on a model.", Choice: "Instructions",
		When: "You have no program: write what it shall do, and a model does it. " +
			"The quickest way to an agent.",
		Address: "http://127.0.0.1:11434/v1", Secret: "key", Registered: true, Hosted: true},
	{Kind: MCP, Label: "MCP", Help: "A server of tools, reached by MCP at its owner's own address.",
		Remote: "Its portal reaches it at its owner’s own address.", Choice: "MCP server",
		When: "It offers tools by the Model Context Protocol, over Streamable HTTP. " +
			"People call its tools here, and agents of yours may use them.",
		Example: "https://tools.example.org/mcp", Address: "https://example.org/mcp", Secret: "token", Supplied: "tools",
		Registered: true},
	{Kind: OpenAI, Label: "model", Help: "A model or assistant behind the OpenAI chat API, at its owner's own address.",
		Remote: "Its portal reaches it at its owner’s own address.", Choice: "Model or assistant",
		When:    "Anything that speaks the OpenAI chat API: Ollama, vLLM, llama.cpp, a hosted model.",
		Example: "http://127.0.0.1:11434/v1", Address: "http://127.0.0.1:11434/v1", Secret: "key",
		Registered: true},
	{Kind: Link, Label: "linked", Help: "A program on its owner's computer, which connects out to this portal.",
		Remote: "A program that connects out to its portal.", Choice: "A program on my computer",
		When:    "It connects out and needs no public address, so it may run on a laptop or behind a firewall.",
		Example: "agentsite agent run …", Registered: true, Hosted: true, Unprobed: true},
	{Kind: Wasm, Label: "hosted program", Help: "A program that this portal runs in a sandbox.",
		Remote: "A program that its portal runs in a sandbox.", Choice: "A program that runs here",
		When: "You wrote a program and have no server for it: upload it as WebAssembly, and this portal runs it. " +
			"It gets no files and no network but what you grant.",
		Registered: true, Hosted: true, Unprobed: true},
	{Kind: Builtin, Label: "built in", Help: "Part of this portal; it runs here.", Remote: "Part of its portal.",
		Hosted: true, Unprobed: true},
}

// All returns the rows of all kinds: first those that people register, in the order of the form. The
// caller may change the slice.
func All() []Spec { return slices.Clone(table) }

// Registered returns the kinds that people can register, in the order of the form.
func Registered() []Kind {
	var list []Kind
	for _, s := range table {
		if s.Registered {
			list = append(list, s.Kind)
		}
	}
	return list
}

// Of returns the row of a kind. For an unknown kind, for example of a newer portal, only texts are set,
// made from its name.
func Of(k Kind) Spec {
	if i := slices.IndexFunc(table, func(s Spec) bool { return s.Kind == k }); i >= 0 {
		return table[i]
	}
	return Spec{Kind: k, Label: string(k), Choice: string(k)}
}
