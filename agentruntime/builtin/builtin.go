// Package builtin answers for the agents that every portal has without a key, a model or a network:
// guide, which finds agents for a described need and answers questions about the portal from its
// manual, and calc, which calculates. Both work by words, vectors of texts and rules; their answers come only from
// the directory, the manual and the arithmetic.
//
// The package does not depend on the storage of agents, the embedding of the manual, or access rights:
// the app passes a search limited to public agents, and the manual's sections.
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
	"unicode/utf8"

	"agentsite/agentruntime/builtin/calc"
	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// The names of the built-in agents. They are reserved, and part of handles.
const (
	guideName = "guide"
	calcName  = "calc"
)

const (
	// maxQuestionBytes bounds the part of a message that is read: longer than any description of a
	// need, short enough to be cheap.
	maxQuestionBytes = 4000
	// chunkBytes is the approximate size of one piece of a streamed answer.
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
	// Asked holds questions that the section answers, as people ask them. Sections are found by them too.
	Asked []string
}

// Config holds the dependencies of the built-in agents.
type Config struct {
	// Search finds agents with the rights of a guest, because every caller sees the results. Nil finds
	// nothing.
	Search Searcher
	// Manual holds the sections that guide answers from, in reading order.
	Manual []Section
	// Encode returns a vector of length 1 for the meaning of a text, nil if it has none, so that the manual is also
	// found by meaning. Nil finds it by words only.
	Encode func(text string) []float32
	// HasModel reports whether the portal has a language model; nil means that it has none.
	HasModel func() bool
	// PortalURL is put before links for callers that are no browsers; may be empty.
	PortalURL string
	// Now is the clock for dates in questions and for the age of liveness; nil means the portal's clock.
	Now clock.Clock
}

func (c Config) withDefaults() Config {
	if c.Search == nil {
		c.Search = emptyDirectory{}
	}
	if c.HasModel == nil {
		c.HasModel = func() bool { return false }
	}
	if c.Now == nil {
		c.Now = clock.Now
	}
	c.PortalURL = strings.TrimRight(c.PortalURL, "/")
	return c
}

// Searcher finds agents of the directory. A query without results is no error.
type Searcher interface {
	Search(ctx context.Context, q hub.Query) (hub.Page, error)
}

// emptyDirectory is the Searcher of a portal without a directory; it finds nothing.
type emptyDirectory struct{}

func (emptyDirectory) Search(context.Context, hub.Query) (hub.Page, error) { return hub.Page{}, nil }

// Driver runs the built-in agents. It stores nothing between calls and is safe for concurrent use.
type Driver struct {
	cfg     Config
	indexed sync.Once
	index   *guide // the agent guide; nil until its first question
}

var _ task.Agent = (*Driver)(nil)

// New returns the driver. The slices of cfg must not change afterwards, because the driver keeps them.
func New(cfg Config) *Driver {
	cfg = cfg.withDefaults()
	return &Driver{cfg: cfg}
}

// guide returns the agent guide. It indexes the manual at the first question, because most starts of a
// portal need none.
func (d *Driver) guide() *guide {
	d.indexed.Do(func() { d.index = newGuide(d.cfg) })
	return d.index
}

// Run implements task.Agent: it answers as the agent named in the call. A name that is no built-in agent
// fails the task. The error is that of ctx or of the search.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if err := ctx.Err(); err != nil {
		return task.Result{}, err
	}
	var answer string
	var err error
	switch call.Agent.Name {
	case guideName:
		answer, err = d.guide().writeAnswer(ctx, call, out)
	case calcName:
		answer = answerQuestion(call, d.cfg.Now())
	default:
		return task.Result{State: task.Failed,
			Reason: fmt.Sprintf("This portal has no built-in agent %q.", boundLine(call.Agent.Name, maxQuoted))}, nil
	}
	if err == nil {
		err = streamText(ctx, answer, out)
	}
	if err != nil {
		return task.Result{}, err
	}
	return task.Done(answer), nil
}

// CollectNotes returns the answer of the guide to a call, for an agent that answers by a model; "" for a message that
// is no question.
func (d *Driver) CollectNotes(ctx context.Context, call task.Call) (string, error) {
	switch classifyMessage(questionText(call, call.Agent.Name)) {
	case introduce, greet, thank:
		return "", nil
	}
	return d.guide().writeAnswer(ctx, call, quietSink{})
}

// quietSink takes the statuses of an answer that no reader sees. The guide calls nothing else of it.
type quietSink struct{ task.Sink }

func (quietSink) Status(string) {}

// streamText sends the answer in pieces that end at a line break, or at a space in a long line.
func streamText(ctx context.Context, answer string, out task.Sink) error {
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

// questionText returns the text of the call, bounded, without a mention of the agent at its start. For
// a message of another agent, which may contain more than the request, it returns the rest of the line
// after the mention.
func questionText(call task.Call, self string) string {
	var texts []string
	for _, p := range call.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if by := call.AskedBy(); by.Kind == "agent" && call.Caller.Kind != "agent" {
		for line := range strings.Lines(text) {
			for at := range len(line) {
				// Compare the name before the portal, because a line may be long.
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

// withoutMention bounds s and removes "@self", "@self@portal" and following punctuation from its start.
func withoutMention(s, self string) string {
	s = strings.TrimSpace(cutBytes(strings.ToValidUTF8(s, "\uFFFD"), maxQuestionBytes))
	if len(s) > len(self) && s[0] == '@' && strings.EqualFold(s[1:1+len(self)], self) {
		rest := s[1+len(self):]
		if strings.HasPrefix(rest, "@") { // a mention with the portal, such as @calc@portal.example
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

// Drafts returns the registrations of the built-in agents, for hub.Service.EnsureBuiltin.
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
			"Finds agents here and on other portals for what you describe and says why each fits, and answers "+
				"questions about the portal from its manual. It names only agents that are registered.",
			hub.Skill{
				ID: "find", Name: "Find an agent",
				Description: "Describe what you want to get done and get the agents that fit, with the reasons.",
				Tags:        []string{"search", "directory", "recommend"},
				Examples:    []string{"who can calculate for me?", "I need somebody to convert miles to kilometres"},
			},
			hub.Skill{
				ID: "manual", Name: "Answer questions about the portal",
				Description: "Ask how something works here and get the section of the manual that says it.",
				Tags:        []string{"help", "manual", "documentation"},
				Examples:    []string{"how do I register an agent?", "what may guests do?", "how do I make a backup?"},
			}),
		draft(calcName, "Calculator",
			"Calculates exactly: arithmetic with fractions and large numbers, percentages, units, dates. It "+
				"works without a language model and says what it did not understand.",
			hub.Skill{
				ID: "arithmetic", Name: "Arithmetic",
				Description: "Exact sums, products, powers, roots and fractions, typed as a formula or in words.",
				Tags:        []string{"math", "calculator", "numbers"},
				Examples:    calcExamples("0.1 + 0.2", "2/3 + 1/6", "sqrt(2) * 3^4", "average of 3, 4 and 8"),
			},
			hub.Skill{
				ID: "percent", Name: "Percentages",
				Description: "Shares, discounts, taxes, increase and decrease in percent.",
				Tags:        []string{"percent", "vat", "discount", "finance"},
				Examples:    calcExamples("what is 15% of 80?", "add 19% VAT to 250", "increase from 80 to 100"),
			},
			hub.Skill{
				ID: "units", Name: "Convert units",
				Description: "Length, weight, temperature, volume, time, speed, area and amounts of data.",
				Tags:        []string{"units", "conversion", "measure"},
				Examples:    calcExamples("5 km in miles", "72 f to c", "1.5 GiB in MB"),
			},
			hub.Skill{
				ID: "dates", Name: "Dates and times",
				Description: "Days between dates, dates some days on, weekdays and working days, hours between " +
					"clock times.",
				Tags: []string{"dates", "calendar", "days"},
				Examples: calcExamples("days between 2026-01-01 and 2026-12-25", "90 days from today",
					"hours between 09:30 and 17:15"),
			}),
	}
}

// calcExamples returns those of want that calc itself offers as examples, so that the agent card never
// promises a removed feature.
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
