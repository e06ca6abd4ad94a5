package builtin

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// guide finds agents and sections of the manual. It is read-only after newGuide.
type guide struct {
	cfg    Config
	manual *manual
	work   *thesaurus
}

func newGuide(cfg Config) *guide {
	return &guide{cfg: cfg, manual: newManual(cfg.Manual, newThesaurus(portalWords), cfg.Encode), work: newThesaurus(workWords)}
}

func notLetter(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)
}

// reply is one answer of guide in progress. It serves one call.
type reply struct {
	*guide
	base  string // put before paths in links; "" for callers in a browser
	out   task.Sink
	shown map[string]bool // paths that earlier answers linked to, so that "more" does not repeat them
}

// writeAnswer returns guide's answer to a call as Markdown. The error is that of the search.
func (g *guide) writeAnswer(ctx context.Context, call task.Call, out task.Sink) (string, error) {
	r := &reply{guide: g, out: out}
	if call.Caller.Kind == "agent" {
		r.base = g.cfg.PortalURL
	}
	message := questionText(call, guideName)
	if message == "" {
		return r.introduceSelf(), nil
	}
	switch classifyMessage(message) {
	case introduce:
		return r.introduceSelf(), nil
	case greet:
		return "Hello! " + r.introduceSelf(), nil
	case thank:
		return "You are welcome. If you need something else, describe it in your own words.", nil
	case listing:
		return r.listAgents(ctx)
	case more:
		question, shown := lastQuestion(call.History)
		if question == "" {
			return "There is no earlier question. Describe your need, for example: `I need somebody to " +
				"convert miles to kilometres`.", nil
		}
		r.shown = shown
		return r.answerMessage(ctx, question)
	}
	return r.answerMessage(ctx, withoutGreeting(message))
}

// withoutGreeting removes a greeting from the start of a message that goes on after it. A greeting alone
// is returned unchanged.
func withoutGreeting(message string) string {
	head, rest, ok := strings.Cut(message, " ")
	if ok && greetFirst[strings.ToLower(strings.Trim(head, ",.!:"))] &&
		(strings.ContainsAny(head, ",.!") || wordSet("hi hello hey hallo moin yo")[strings.ToLower(head)]) {
		return strings.TrimSpace(rest)
	}
	return message
}

// verdict holds the results of both searches for one message, from which chooseSides decides. All shares
// are from 0 to 1.
type verdict struct {
	intent intent
	need   int     // number of words that describe the work
	agents float64 // share of the need that the best agent covers, by trust
	// share of the question that the best section covers: in its whole text, and in its heading
	anywhere, heading float64
}

const (
	// clearly is the difference in coverage from which only the better side is answered.
	clearly = 0.25
	// whole is the coverage from which a question counts as wholly covered.
	whole = 0.99
	// fits is the share of the need's words from which guide says that an agent fits.
	fits = 0.6
	// alsoAsked is the similarity to a question that the manual answers from which guide links to it beside agents that
	// fit better.
	alsoAsked = 0.45
	// inPassing is the coverage by a heading below which its section is about something else.
	inPassing = 0.34
	// textShare is the weight of words that are in a section's text but not in its heading, because a
	// manual mentions many things in passing.
	textShare = 0.6
)

// aboutPortal introduces links to the manual beside agents.
const aboutPortal = "\n\nIf you ask about the portal itself:\n\n"

// isWeak reports that the manual probably does not answer the question.
func (v verdict) isWeak() bool { return v.heading < inPassing && v.anywhere < 0.5 }

// chooseSides decides which of the two answers to give. The rules, in order: a request for an agent
// gets agents, unless only the manual covers it; a question about the portal gets the manual, unless
// only agents cover it; any other message gets the side that covers its words better, and both if
// neither is clearly better.
func (v verdict) chooseSides() (agents, manual bool) {
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
		return v.agents >= 0.6 || v.isWeak() && v.agents > 0.25, v.anywhere > 0
	}
	switch {
	case v.need <= 1 && v.anywhere >= whole && v.agents > 0:
		return v.heading < whole, true // A single word is a weak sign, so answer with the manual first.
	case section > v.agents+clearly:
		return false, true
	case v.agents > section+clearly && v.heading < 0.3:
		return true, false
	}
	return true, v.anywhere > 0
}

// answerMessage answers a message that is more than a greeting: with agents, with the manual, or with
// both.
func (r *reply) answerMessage(ctx context.Context, message string) (string, error) {
	question := contentWords(message)
	need := contentWords(message, seekWords)
	if len(question) == 0 {
		question = splitWords(message)
	}
	withoutAgents, withoutSections := r.shownBefore()
	v := verdict{intent: classifyMessage(message), need: len(need)}
	passages := r.manual.findSections(message, question, maxLinks, withoutSections)
	if v.intent == seek && len(need) == 0 && askCue.MatchString(plainLine(message)) {
		v.intent = ask // A question about how to find agents is about the portal.
	}
	v.anywhere, v.heading = bestCoverage(question, passages)
	if v.intent != ask || v.heading < whole {
		r.out.Status("Looking for agents")
	}
	s, err := r.findAgents(ctx, message, need, withoutAgents)
	if err != nil {
		return "", err
	}
	s.asked = message
	_, v.agents = s.bestScores()
	agents, manual := v.chooseSides()
	switch {
	case len(need) == 0 && !manual:
		return "Describe the task in a few words, for example: `I need somebody to convert miles " +
			"to kilometres`.\n\n" + r.browseHint(), nil
	case len(r.shown) > 0 && (!agents || len(s.offers) == 0) && (!manual || len(passages) == 0):
		return "I found nothing further for “" + quoteText(message, maxQuoted) + "”. Try other words.\n\n" +
			r.browseHint(), nil
	case agents && manual && len(s.offers) > 0 && len(passages) > 0:
		if v.heading < 0.5 { // The section mentions the subject in passing at most, so only link to it.
			return r.writeOffers(s, message, maxOffers) + aboutPortal + readOn(passages, "", r.base), nil
		}
		return "You may mean an agent or something about the portal. Here is both.\n\n" +
				r.writeOffers(s, message, 2) + "\n\nFrom the manual:\n\n" +
				excerptAnswer(passages, briefExcerpt, r.base),
			nil
	case manual && len(passages) > 0 && v.intent == unsure && (v.isWeak() || v.heading < inPassing &&
		slices.Contains(aboutSearch, passages[0].urlPath()) && !containsSome(question, searchWords)):
		// No agent does this task. The person is searching already, so how to search is no answer.
		return r.writeNothing(s, message) + aboutPortal + readOn(passages, "", r.base), nil
	case manual && len(passages) > 0:
		answer := excerptAnswer(passages, maxExcerpt, r.base)
		if v.isWeak() {
			answer = "I am not sure that the manual answers this. The nearest I find in it:\n\n" + answer
		}
		return answer, nil
	case agents && len(s.offers) > 0:
		if v.intent != seek && len(passages) > 0 && passages[0].asked >= alsoAsked {
			return r.writeOffers(s, message, maxOffers) + aboutPortal + readOn(passages, "", r.base), nil
		}
		return r.writeOffers(s, message, maxOffers), nil
	}
	return r.writeNothing(s, message), nil
}

// shownBefore splits the paths in earlier answers into handles of agents and paths of sections.
func (r *reply) shownBefore() (agents, sections map[string]bool) {
	agents, sections = make(map[string]bool), make(map[string]bool)
	for address := range r.shown {
		if handle, ok := strings.CutPrefix(address, "/agents/"); ok {
			if end := strings.IndexAny(handle, "?#"); end >= 0 {
				handle = handle[:end]
			}
			agents[unescapePath(handle)] = true
		} else {
			sections[address] = true
		}
	}
	return agents, sections
}

// writeOffers returns the answer with at most most agents. It says which words no agent has if none
// fits.
func (r *reply) writeOffers(s *search, message string, most int) string {
	var b strings.Builder
	coverage, _ := s.bestScores()
	offers := s.offers[:min(len(s.offers), most)]
	switch {
	case coverage < fits:
		b.WriteString("No agent here fits all of it")
		if m := s.missingWords(); len(m) > 0 {
			b.WriteString(": none mentions " + joinPhrases(m))
		}
		b.WriteString(". The nearest:\n")
	case len(offers) == 1:
		b.WriteString("One agent fits:\n")
	default:
		fmt.Fprintf(&b, "%d agents fit, the best first:\n", len(offers))
	}
	for _, o := range offers {
		b.WriteString("\n- " + s.describeOffer(o, r.base, r.cfg.Now()))
	}
	fmt.Fprintf(&b, "\n\nYou can begin with your own words: “%s”", quoteText(message, 300))
	if coverage < fits {
		b.WriteString("\n\n" + r.limitHint() + r.waitHint(message))
	}
	return b.String()
}

// writeNothing returns the answer when no agents were found: how far the search went, with other words to try.
func (r *reply) writeNothing(s *search, message string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "I found no agent for “%s”, ", quoteText(message, maxQuoted))
	switch s.others {
	case 0:
		b.WriteString("and this portal knows no other portals.")
	case 1:
		b.WriteString("neither on this portal nor on the other one that it knows.")
	default:
		fmt.Fprintf(&b, "neither on this portal nor on the %d others that it knows.", s.others)
	}
	near := make([]string, 0, len(s.suggestions))
	for _, w := range s.suggestions {
		if !stopWords[w] {
			near = append(near, "“"+quoteText(w, 40)+"”")
		}
	}
	if len(near) > 0 {
		b.WriteString(" Words near it that agents here use: " + joinPhrases(near) + ".")
	} else {
		b.WriteString(" No agent here uses words near it.")
	}
	return b.String() + "\n\n" + r.limitHint() + r.waitHint(message)
}

// waitHint says how to hear of an agent for a message for which there is none yet, and how to register one.
func (r *reply) waitHint(message string) string {
	query := url.QueryEscape(cutBytes(strings.Join(strings.Fields(message), " "), maxQueryBytes))
	return "To hear when one comes, save [this search](" + r.base + "/agents?q=" + query + "): your account page then " +
		"counts the new agents that it finds. " + r.browseHint()
}

// limitHint says that the guide cannot do the work itself, on a portal without a model.
func (r *reply) limitHint() string {
	if r.cfg.HasModel() {
		return ""
	}
	return "I cannot do it myself: I only search, and this portal has no language model. "
}

func (r *reply) browseHint() string {
	return "You can [browse all agents](" + r.base + "/agents), try fewer or other words, or [register an agent](" +
		r.base + "/agents/new) that does it."
}

// listAgents returns an answer with some agents, for a request that names no purpose.
func (r *reply) listAgents(ctx context.Context) (string, error) {
	page, err := r.cfg.Search.Search(ctx, hub.Query{Limit: maxOffers + 1})
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("list agents: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "This portal lists %d agents, me among them. Tell me what you need, or [browse "+
		"all](%s/agents). Some of them:\n", page.Total, r.base)
	s, n := &search{}, 0
	for _, res := range page.Results {
		if n < maxOffers && !isGuide(res.Agent) {
			b.WriteString("\n- " + s.describeOffer(offer{agent: res.Agent}, r.base, r.cfg.Now()))
			n++
		}
	}
	return b.String(), nil
}

func (r *reply) introduceSelf() string {
	limit := " I name only what is there."
	if !r.cfg.HasModel() {
		limit = " This portal has no language model, so I cannot write, translate or answer other questions."
	}
	return "I find agents here and on other portals for what you describe, and answer questions about the " +
		"portal from its [manual](" + r.base + "/docs)." + limit + "\n\n" +
		"Try, for example:\n\n- `who can calculate for me?`\n- `I need somebody to convert miles to " +
		"kilometres`\n- `how do I register an agent?`\n- `what may guests do?`\n\n" +
		"After an answer, write `more` for other results."
}
