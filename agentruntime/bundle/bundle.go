// Package bundle has the programs that come with every portal: a module that is built from package tools, and the
// registrations of its agents. They run in the sandbox of hosted programs like those of accounts.
package bundle

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"agentsite/agentruntime/bundle/tools"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

//go:generate go test . -run TestModule_IsBuiltFromTheSource -write

// packed is the module, compressed: the binary must not need Go where it runs.
//
//go:embed program.wasm.gz
var packed []byte

// sums has the hash of the module, the release of Go that built it, and the hash of its source.
//
//go:embed program.sum
var sums string

// Hash is the SHA-256 of the module in lower-case hexadecimal.
var Hash, _, _ = strings.Cut(sums, " ")

// maxModule bounds the module, in bytes.
const maxModule = 16 << 20

// Module returns the module. It is unpacked at each call, because the sandbox keeps it compiled on
// disk and rarely reads it.
func Module() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack the programs of the portal: %w", err)
	}
	return io.ReadAll(io.LimitReader(r, maxModule))
}

// Has reports whether an agent of the kind builtin is one of the programs.
func Has(name string) bool { return slices.Contains(tools.Names, name) }

// Driver runs the programs by the driver of hosted programs and passes other calls on. It is safe for concurrent use.
type Driver struct{ next, hosted task.Agent }

var _ task.Agent = (*Driver)(nil)

// New returns a driver.
func New(next, hosted task.Agent) *Driver { return &Driver{next, hosted} }

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if !Has(call.Agent.Name) {
		return d.next.Run(ctx, call, out)
	}
	config, err := json.Marshal(hub.WasmConfig{Module: Hash})
	if err != nil {
		return task.Result{}, err
	}
	call.Agent.Config = config
	return d.hosted.Run(ctx, call, out)
}

// AnswerAtOnce returns an agent for answers that are given at once, by next. It refuses the programs, whose processes
// start slowly: a checkpoint says that the answer needs a task.
func AnswerAtOnce(next task.Agent) task.Agent { return instant{next} }

type instant struct{ next task.Agent }

// Run implements task.Agent.
func (i instant) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if Has(call.Agent.Name) {
		return task.Result{}, out.Checkpoint(ctx, nil)
	}
	return i.next.Run(ctx, call, out)
}

// Drafts describes the agents of the programs.
func Drafts() []hub.Draft {
	var list []hub.Draft
	for _, e := range entries {
		name, title, description, kind, visibility := e.name, e.title, e.description, hub.Builtin, hub.Public
		list = append(list, hub.Draft{Name: &name, Title: &title, Description: &description, Kind: &kind,
			Visibility: &visibility, Skills: &[]hub.Skill{e.skill}, Config: map[string]json.RawMessage{}})
	}
	return list
}

// entry is the description of one program.
type entry struct {
	name, title, description string
	skill                    hub.Skill
}

// byRules ends the description of each program.
const byRules = " A program that works by rules, in the portal's sandbox."

var entries = []entry{
	{"tables", "Table reader", "Answers questions about a table that you paste as CSV or JSON: filters, groups, " +
		"sums, sorts." +
		byRules, hub.Skill{ID: "query", Name: "Query a table",
		Description: "select, where, group by, order by and limit on pasted CSV or JSON; “as csv” returns a file.",
		Tags:        []string{"csv", "json", "query", "spreadsheet"},
		Examples: []string{"city,amount\nRome,12\nOslo,7\nRome,3\nselect city, sum(amount) group by city",
			`[{"name":"Ada","age":36},{"name":"Bob","age":41}] where age > 40 as csv`}}},
	{"diff", "Text differences", "Shows the differences of two texts line by line, and applies a patch to a " +
		"text." + byRules,
		hub.Skill{ID: "diff", Name: "Compare and patch texts",
			Description: "Two texts with a line of --- between them; or a text and a unified patch.",
			Tags:        []string{"diff", "patch", "compare", "text"},
			Examples: []string{"milk\nbread\neggs\n---\nmilk\nbutter\neggs",
				"milk\nbread\n---\n@@ -2,1 +2,1 @@\n-bread\n+butter"}}},
	{"rates", "Currency table", "Converts currencies by the European Central Bank's reference rates of " +
		tools.RatesDay +
		", or by your own rate, and shows an amount in all currencies or units at once." + byRules,
		hub.Skill{ID: "convert", Name: "Convert currencies",
			Description: "Reference rates of " + tools.RatesDay + ", named in every answer. Tables of currencies " +
				"and units.",
			Tags:     []string{"currency", "exchange rate", "euro", "dollar"},
			Examples: []string{"100 EUR in USD", "250 DKK", "12 lb"}}},
	{"planner", "Date planner", "Plans steps backwards from a deadline in working days, and lists the dates of " +
		"something " +
		"that repeats." + byRules,
		hub.Skill{ID: "plan", Name: "Plan dates",
			Description: "Working days, own free days, deadlines, repeating dates.",
			Tags:        []string{"schedule", "deadline", "project plan"},
			Examples: []string{"deadline 2027-03-01: design 5d, build 10d, test 3d",
				"every 2 weeks from 2026-12-01, 6 times"}}},
	{"summary", "Summariser", "Summarises a Markdown text: main sentences, outline, open tasks, links. It only " +
		"repeats " +
		"sentences of the text." + byRules,
		hub.Skill{ID: "summarise", Name: "Summarise a text",
			Description: "Outline and main sentences of a document.",
			Tags:        []string{"summary", "markdown", "outline"},
			Examples: []string{"# Ferry\nThe ferry to the island leaves at nine. It is the only ferry of the day.\n" +
				"## Tickets\nTickets for the ferry are sold at the harbour. Children under six travel free.\n- [ ] " +
				"Buy tickets"}}},
}
