// Package builtin answers for the agents that every portal has without a key,
// a model or a network: guide, which finds agents for what somebody describes
// and answers questions about the portal from its manual, and calc, which
// calculates. Both work by words and rules alone; what they say comes from the
// directory, the manual and the arithmetic, never from anywhere else.
//
// The package does not know where agents are stored, how the manual is
// embedded, or who may see what: the app passes a search that sees what
// everybody may see, and the manual's sections.
//
//	d := builtin.New(builtin.Config{Search: public, Manual: sections})
//	result, err := d.Run(ctx, call, sink)
package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentsite/agentruntime/builtin/calc"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// The names of the built-in agents.
const (
	guideName = "guide"
	calcName  = "calc"
)

const (
	// maxQuestionBytes is what is read of a message: longer than anybody
	// describes a need, short enough to cost nothing.
	maxQuestionBytes = 4000
	// chunkBytes is about how much text is handed to readers at once.
	chunkBytes = 240
)

// Section is one answerable piece of the manual: the text below one heading
// of the page at /docs/<Page>, itself at #<Anchor>.
type Section struct {
	Page      string
	PageTitle string
	Title     string
	Anchor    string
	Text      string // Markdown, without the heading
}

// Config is what the built-in agents need of the portal.
type Config struct {
	// Search finds agents as somebody without any rights does: whatever it
	// returns may be shown to whoever asks. Nil finds nothing.
	Search func(ctx context.Context, q hub.Query) (hub.Page, error)
	// Manual is what guide answers from, in reading order.
	Manual []Section
	// PortalURL is put before the links given to callers that are no
	// browsers; may be empty.
	PortalURL string
	// Now is the time; nil means the portal's clock.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Search == nil {
		c.Search = func(context.Context, hub.Query) (hub.Page, error) { return hub.Page{}, nil }
	}
	if c.Now == nil {
		c.Now = clock.Now
	}
	c.PortalURL = strings.TrimRight(c.PortalURL, "/")
	return c
}

// Driver runs the built-in agents. It keeps nothing between calls and is safe
// for concurrent use.
type Driver struct {
	cfg   Config
	guide func() *guide // indexed at the first question, not at start
}

var _ task.Agent = (*Driver)(nil)

// New returns the driver. Config's slices must not change afterwards.
func New(cfg Config) *Driver {
	cfg = cfg.withDefaults()
	return &Driver{cfg: cfg, guide: sync.OnceValue(func() *guide { return newGuide(cfg) })}
}

// Run implements task.Agent: it answers as the agent named in the call. A
// name that is none of the built-in agents is a failed task. The error is the
// context's when that ended, or what the search reported.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if err := ctx.Err(); err != nil {
		return task.Result{}, err
	}
	var answer string
	var err error
	switch call.Agent.Name {
	case guideName:
		answer, err = d.guide().answer(ctx, call, out)
	case calcName:
		answer = calculate(call, d.cfg.Now())
	default:
		return task.Result{State: task.Failed, Reason: fmt.Sprintf("This portal has no built-in agent %q.", bounded(call.Agent.Name, maxQuoted))}, nil
	}
	if err == nil {
		err = stream(ctx, answer, out)
	}
	if err != nil {
		return task.Result{}, err
	}
	return task.Done(answer), nil
}

// stream hands the answer out in pieces that end where a line does, or where
// a long line has a space.
func stream(ctx context.Context, answer string, out task.Sink) error {
	for answer != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		cut := len(answer)
		if cut > chunkBytes {
			cut = chunkBytes
			if i := strings.LastIndexByte(answer[:cut], '\n'); i > 0 {
				cut = i + 1
			} else if i := strings.LastIndexByte(answer[:cut], ' '); i > 0 {
				cut = i + 1
			}
			for cut > 0 && !utf8.RuneStart(answer[cut]) {
				cut--
			}
		}
		out.Text(answer[:cut])
		answer = answer[cut:]
	}
	return nil
}

// asked is what the call says in text, bounded, without a mention of the
// agent itself at its start, as it is written in rooms. Of another agent, which
// says more than what it asks for, it is the rest of the line behind the
// mention.
func asked(call task.Call, self string) string {
	var texts []string
	for _, p := range call.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if by := call.Said(); by.Kind == "agent" && call.Caller.Kind != "agent" {
		for line := range strings.Lines(text) {
			for at := range len(line) {
				// The name is looked for first: a line may be long.
				name := at + 1 + len(self)
				if line[at] != '@' || name > len(line) || !strings.EqualFold(line[at+1:name], self) {
					continue
				}
				s := strings.TrimSpace(cutBytes(line[at:], maxQuestionBytes))
				if rest := withoutMention(s, self); rest != s {
					return rest
				}
			}
		}
	}
	return withoutMention(text, self)
}

// withoutMention bounds s and takes "@self", "@self@portal" and what
// punctuation follows off its start.
func withoutMention(s, self string) string {
	s = strings.TrimSpace(cutBytes(strings.ToValidUTF8(s, "\uFFFD"), maxQuestionBytes))
	if len(s) > len(self) && s[0] == '@' && strings.EqualFold(s[1:1+len(self)], self) {
		rest := s[1+len(self):]
		if strings.HasPrefix(rest, "@") { // @calc@portal.example
			_, rest, _ = strings.Cut(rest, " ")
			return strings.TrimSpace(rest)
		}
		if rest == "" || strings.ContainsAny(rest[:1], " \t\n,:;.!?-–") {
			s = strings.TrimLeft(rest, " \t\n,:;")
		}
	}
	return s
}

func cutBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Drafts are the registrations of the built-in agents, for
// hub.Service.EnsureBuiltin.
func Drafts() []hub.Draft {
	draft := func(name, title, description string, skills ...hub.Skill) hub.Draft {
		kind, visibility := hub.Builtin, hub.Public
		return hub.Draft{
			Name: &name, Title: &title, Description: &description,
			Kind: &kind, Visibility: &visibility, Skills: &skills,
			Config: map[string]json.RawMessage{},
		}
	}
	return []hub.Draft{
		draft(guideName, "Guide",
			"Finds agents here and on other portals for what you describe and says why each fits, and answers questions about the portal from its manual. It uses no language model, so it names only what is there.",
			hub.Skill{
				ID: "find", Name: "Find an agent", Description: "Describe what you want to get done and get the agents that fit, with the reasons.",
				Tags:     []string{"search", "directory", "recommend"},
				Examples: []string{"who can calculate for me?", "I need somebody to convert miles to kilometres"},
			},
			hub.Skill{
				ID: "manual", Name: "Answer questions about the portal", Description: "Ask how something works here and get the section of the manual that says it.",
				Tags:     []string{"help", "manual", "documentation"},
				Examples: []string{"how do I register an agent?", "what may guests do?", "how do I make a backup?"},
			}),
		draft(calcName, "Calculator",
			"Calculates exactly: arithmetic with fractions and large numbers, percentages, units, dates. It works without a language model and says what it did not understand.",
			hub.Skill{
				ID: "arithmetic", Name: "Arithmetic", Description: "Exact sums, products, powers, roots and fractions, typed as a formula or in words.",
				Tags: []string{"math", "calculator", "numbers"}, Examples: calcExamples("0.1 + 0.2", "2/3 + 1/6", "sqrt(2) * 3^4", "average of 3, 4 and 8"),
			},
			hub.Skill{
				ID: "percent", Name: "Percentages", Description: "Shares, discounts, taxes, increase and decrease in percent.",
				Tags: []string{"percent", "vat", "discount", "finance"}, Examples: calcExamples("what is 15% of 80?", "add 19% VAT to 250", "increase from 80 to 100"),
			},
			hub.Skill{
				ID: "units", Name: "Convert units", Description: "Length, weight, temperature, volume, time, speed, area and amounts of data.",
				Tags: []string{"units", "conversion", "measure"}, Examples: calcExamples("5 km in miles", "72 f to c", "1.5 GiB in MB"),
			},
			hub.Skill{
				ID: "dates", Name: "Dates and times", Description: "Days between dates, dates some days on, weekdays and working days, hours between clock times.",
				Tags: []string{"dates", "calendar", "days"}, Examples: calcExamples("days between 2026-01-01 and 2026-12-25", "90 days from today", "hours between 09:30 and 17:15"),
			}),
	}
}

// calcExamples returns those of the questions that calc itself offers, so
// that a card never promises what the engine has dropped.
func calcExamples(want ...string) []string {
	var list []string
	for _, e := range calc.Examples() {
		for _, w := range want {
			if e == w {
				list = append(list, e)
			}
		}
	}
	return list
}
