package builtin

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// guide is the agent that knows its way. All of it is read-only once made.
type guide struct {
	cfg    Config
	manual *manual
	work   *thesaurus
}

func newGuide(cfg Config) *guide {
	return &guide{cfg: cfg, manual: newManual(cfg.Manual, newThesaurus(portalWords)), work: newThesaurus(workWords)}
}

func notLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)
}

// reply is one answer in the making.
type reply struct {
	*guide
	base  string // before addresses; empty in a browser
	out   task.Sink
	shown map[string]bool // addresses given before
}

// answer writes guide's answer to a call.
func (g *guide) answer(ctx context.Context, call task.Call, out task.Sink) (string, error) {
	r := &reply{guide: g, out: out}
	if call.Caller.Kind == "agent" {
		r.base = g.cfg.PortalURL
	}
	message := asked(call, guideName)
	if message == "" {
		return r.introduction(), nil
	}
	switch rough(message) {
	case introduce:
		return r.introduction(), nil
	case greet:
		return "Hello! " + r.introduction(), nil
	case thank:
		return "You are welcome. If you need something else, describe it in your own words.", nil
	case listing:
		return r.listing(ctx)
	case more:
		question, shown := lastQuestion(call.History)
		if question == "" {
			return "I do not know what to go on from. Describe what you need, for example: `I need somebody to convert miles to kilometres`.", nil
		}
		r.shown = shown
		return r.respond(ctx, question)
	}
	return r.respond(ctx, withoutGreeting(message))
}

// withoutGreeting takes a greeting off the start of a message that goes on.
func withoutGreeting(message string) string {
	head, rest, ok := strings.Cut(message, " ")
	if ok && greetFirst[strings.ToLower(strings.Trim(head, ",.!:"))] && (strings.ContainsAny(head, ",.!") || set("hi hello hey hallo moin yo")[strings.ToLower(head)]) {
		return strings.TrimSpace(rest)
	}
	return message
}

// verdict is what two searches say about one message.
type verdict struct {
	intent            intent
	need              int     // words that say what somebody shall do
	agents            float64 // how much of the need the best agent covers
	anywhere, heading float64 // how much of the question the best section covers
}

const (
	// clearly is by how much one side must be better to be the only one.
	clearly = 0.25
	// whole is the coverage that leaves no word out.
	whole = 0.99
	// fits is the share of a need's words from which an agent is said to fit.
	fits = 0.6
	// textShare is what words are worth that stand in a section's text but
	// not in its heading: a manual speaks of many things in passing.
	textShare = 0.6
)

// weak reports that the manual probably does not answer.
func (v verdict) weak() bool { return v.heading < 0.34 && v.anywhere < 0.5 }

// sides decides which of the two answers to give. The rules, in order:
// whoever asks for somebody gets agents, unless the manual alone knows the
// matter; whoever asks how something is gets the manual, unless only agents
// know it; with no such sign the side that covers the words better, and both
// if neither does clearly.
func (v verdict) sides() (agents, manual bool) {
	section := max(v.heading, textShare*v.anywhere)
	switch v.intent {
	case seek:
		if v.heading >= whole && v.agents < 0.6 {
			return v.agents >= 0.5, true
		}
		return true, v.agents < 0.5 && v.heading >= 0.6
	case ask:
		switch {
		case v.heading >= 0.5 || v.anywhere >= 0.6 && v.agents < 0.6:
			return v.agents >= whole && v.heading < 0.5 || v.agents >= 0.5 && v.heading < 0.6, true
		case v.agents > v.anywhere:
			return true, section >= 0.3
		}
		return v.agents >= 0.6 || v.weak() && v.agents > 0.25, v.anywhere > 0
	}
	switch {
	case v.need <= 1 && v.anywhere >= whole && v.agents > 0:
		return v.heading < whole, true // one word says little
	case section > v.agents+clearly:
		return false, true
	case v.agents > section+clearly && v.heading < 0.3:
		return true, false
	}
	return true, v.anywhere > 0
}

// respond answers a message that is about something.
func (r *reply) respond(ctx context.Context, message string) (string, error) {
	question := content(message)
	need := content(message, seekWords)
	if len(question) == 0 {
		question = words(message)
	}
	withoutAgents, withoutSections := r.left()
	passages := r.manual.lookup(question, maxLinks, withoutSections)
	v := verdict{intent: rough(message), need: len(need)}
	if v.intent == seek && len(need) == 0 && askCue.MatchString(plainLine(message)) {
		v.intent = ask // how to find somebody is a question
	}
	v.anywhere, v.heading = worth(question, passages)
	if v.intent != ask || v.heading < whole {
		r.out.Status("Looking for agents")
	}
	s, err := r.find(ctx, need, withoutAgents)
	if err != nil {
		return "", err
	}
	s.asked = message
	_, v.agents = s.best()
	agents, manual := v.sides()
	switch {
	case len(need) == 0 && !manual:
		return "Tell me in a few words what the agent shall do, for example: `I need somebody to convert miles to kilometres`.\n\n" + r.browse(), nil
	case len(r.shown) > 0 && (!agents || len(s.offers) == 0) && (!manual || len(passages) == 0):
		return "I found nothing further for “" + quote(message, maxQuoted) + "”. Try other words.\n\n" + r.browse(), nil
	case agents && manual && len(s.offers) > 0 && len(passages) > 0:
		if v.heading < 0.5 { // the manual speaks of it in passing at most
			return r.offer(s, message, maxOffers) + "\n\nIf you ask about the portal itself:\n\n" + readOn(passages, "", r.base), nil
		}
		return "You may mean an agent or something about the portal. Here is both.\n\n" +
			r.offer(s, message, 2) + "\n\nFrom the manual:\n\n" + leads(passages, briefExcerpt, r.base), nil
	case manual && len(passages) > 0:
		answer := leads(passages, maxExcerpt, r.base)
		if v.weak() {
			answer = "I am not sure that the manual answers this. The nearest I find in it:\n\n" + answer
		}
		return answer, nil
	case agents && len(s.offers) > 0:
		return r.offer(s, message, maxOffers), nil
	}
	return r.nothing(s, message), nil
}

// left splits the addresses given before into handles of agents and
// addresses of sections.
func (r *reply) left() (agents, sections map[string]bool) {
	agents, sections = make(map[string]bool), make(map[string]bool)
	for address := range r.shown {
		if handle, ok := strings.CutPrefix(address, "/agents/"); ok {
			if end := strings.IndexAny(handle, "?#"); end >= 0 {
				handle = handle[:end]
			}
			agents[unescape(handle)] = true
		} else {
			sections[address] = true
		}
	}
	return agents, sections
}

// offer writes the agents found.
func (r *reply) offer(s *search, message string, most int) string {
	var b strings.Builder
	coverage, _ := s.best()
	offers := s.offers[:min(len(s.offers), most)]
	switch {
	case coverage < fits:
		b.WriteString("No agent here fits all of it")
		if m := s.missing(); len(m) > 0 {
			b.WriteString(": none mentions " + enumerate(m))
		}
		b.WriteString(". The nearest:\n")
	case len(offers) == 1:
		b.WriteString("One agent fits:\n")
	default:
		fmt.Fprintf(&b, "%d agents fit, the best first:\n", len(offers))
	}
	for _, o := range offers {
		b.WriteString("\n- " + s.describe(o, r.base, r.cfg.Now()))
	}
	fmt.Fprintf(&b, "\n\nYou can begin with your own words: “%s”", quote(message, 300))
	if coverage < fits {
		b.WriteString("\n\n" + r.browse())
	}
	return b.String()
}

// nothing says honestly that nothing was found.
func (r *reply) nothing(s *search, message string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "I found no agent on this portal and no section of the manual for “%s”.", quote(message, maxQuoted))
	near := make([]string, 0, len(s.suggestions))
	for _, w := range s.suggestions {
		if !stopWords[w] {
			near = append(near, "“"+quote(w, 40)+"”")
		}
	}
	if len(near) > 0 {
		b.WriteString(" Words near it that agents here use: " + enumerate(near) + ".")
	} else {
		b.WriteString(" No agent here uses words near it.")
	}
	return b.String() + "\n\n" + r.browse()
}

func (r *reply) browse() string {
	return "You can [browse all agents](" + r.base + "/agents), try fewer or other words, or [register an agent](" + r.base + "/agents/new) that does it."
}

// listing names some agents for whoever has not said what for.
func (r *reply) listing(ctx context.Context) (string, error) {
	page, err := r.cfg.Search(ctx, hub.Query{Limit: maxOffers + 1})
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("list agents: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "This portal lists %d agents, me among them. Tell me what you need, or [browse all](%s/agents). Some of them:\n", page.Total, r.base)
	s, n := &search{}, 0
	for _, res := range page.Results {
		if n < maxOffers && !isGuide(res.Agent) {
			b.WriteString("\n- " + s.describe(offer{agent: res.Agent}, r.base, r.cfg.Now()))
			n++
		}
	}
	return b.String(), nil
}

func (r *reply) introduction() string {
	return "I find agents here and on other portals for what you describe, and answer questions about the portal from its [manual](" + r.base + "/docs). I use no language model: I name only what is there.\n\n" +
		"Try, for example:\n\n- `who can calculate for me?`\n- `I need somebody to convert miles to kilometres`\n- `how do I register an agent?`\n- `what may guests do?`\n\n" +
		"After an answer, write `more` for other results."
}
