package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// sorry is an agent's answer to a text that it cannot work on. It is an answer, not a failure.
type sorry string

func (s sorry) Error() string { return string(s) }

func sorryf(format string, args ...any) error { return sorry(fmt.Sprintf(format, args...)) }

// work is the function of an agent: it turns a text into an answer.
type work func(in string) (string, error)

// agent is an agent that speaks A2A.
type agent struct {
	Name, Title, About string
	Tags               []string
	// Asks are questions to it; the first is the example on its page.
	Asks []string
	// Do is the key of its function in functions, which is do.
	Do string
	do work
}

// server is an MCP server.
type server struct {
	Name, Title, About string
	Tags               []string
	Tools              []tool
}

// tool is a tool of a server, which takes one text.
type tool struct {
	Name, About, Takes, Example string
	Do                          string
	do                          work
}

// functions are the functions of agents.json by name.
var functions = map[string]work{
	"dates": describeDay, "dissectURL": dissectURL, "explainStatus": explainStatus, "formatJSON": formatJSON,
	"fromBase64": fromBase64,
	"moon":       describeMoon, "network": describeRange, "primeFactors": primeFactors, "romanNumerals": romanNumerals,
	"sortLines":      sortLines,
	"textStatistics": textStatistics, "toBase64": toBase64,
}

//go:embed agents.json
var agentsFile []byte

// loadAgents returns the agents and servers that portals choose from, in an
// order that gives neighbours different agents.
func loadAgents() ([]agent, []server) {
	var file struct {
		Agents  []agent
		Servers []server
	}
	if err := json.Unmarshal(agentsFile, &file); err != nil {
		panic("demo: agents.json: " + err.Error()) // a test reads the file
	}
	for i := range file.Agents {
		file.Agents[i].do = functions[file.Agents[i].Do]
	}
	for _, s := range file.Servers {
		for i := range s.Tools {
			s.Tools[i].do = functions[s.Tools[i].Do]
		}
	}
	return file.Agents, file.Servers
}
