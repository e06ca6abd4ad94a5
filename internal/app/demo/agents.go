package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// sorry is an error with an agent's answer to a text that it cannot work on. The agent sends the
// text as a normal answer, so its task completes.
type sorry string

func (s sorry) Error() string { return string(s) }

func sorryf(format string, args ...any) error { return sorry(fmt.Sprintf(format, args...)) }

// work computes an agent's answer to a text. A sorry error holds a sentence for the sender.
type work func(in string) (string, error)

// agent is the description of a demo agent that speaks A2A, from agents.json.
type agent struct {
	Name, Title, About string
	Tags               []string
	// Asks are questions for the agent. The first two are examples on its card and page.
	Asks []string
	// Do is the name of the agent's function in functions; loadAgents sets do to that function.
	Do string
	do work
}

// server is the description of a demo MCP server, from agents.json.
type server struct {
	Name, Title, About string
	Tags               []string
	Tools              []tool
}

// tool is a tool of a server. It has one text argument with the name Takes.
type tool struct {
	Name, About, Takes, Example string
	Do                          string
	do                          work
}

// functions maps the names in agents.json to the functions of agents and tools.
var functions = map[string]work{
	"dates": aboutMatch(writtenDate, describeDay), "dissectURL": aboutMatch(webAddress, firstField(dissectURL)),
	"explainStatus": aboutNumber(explainStatus), "formatJSON": aboutText(formatJSON),
	"fromBase64": fromBase64, "moon": aboutMatch(writtenDate, describeMoon), "network": aboutText(describeRange),
	"primeFactors": aboutNumber(primeFactors), "romanNumerals": aboutNumber(romanNumerals),
	"sortLines": aboutText(sortLines), "textStatistics": aboutText(textStatistics), "toBase64": toBase64,
}

// goals are the examples on the pages of the demo. Each needs agents of several portals, and some parts need the
// results of others.
var goals = []string{
	"How many days are between 2026-12-24 and 2027-03-01? Then take that number apart into prime factors. " +
		"Moon watch: how is the moon on 2026-12-24?",
	"Sort this list: pear, apple, fig, apple. Then count the words in it. " +
		"Write the year 1994 in Roman numerals. What is 15% of 80?",
	"Take the web address https://shop.example/search?q=red+shoes&page=2 apart. Explain the HTTP status 503. " +
		"Describe the IP range 10.1.2.0/22.",
}

//go:embed agents.json
var agentsFile []byte

// loadAgents reads agents.json: the agents and servers that castRoles distributes to the portals.
// Their order gives neighbouring portals different agents.
func loadAgents() ([]agent, []server) {
	var file struct {
		Agents  []agent
		Servers []server
	}
	if err := json.Unmarshal(agentsFile, &file); err != nil {
		panic("demo: agents.json: " + err.Error()) // cannot happen: a test loads the embedded file
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
