package builtin

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// offer is a candidate with its score and the reasons for it.
type offer struct {
	agent    hub.Agent
	score    float64
	coverage float64 // weighted share of the need's words that the agent has
	trust    float64 // coverage with each word multiplied by its pieceTrust
	found    []found // one entry for each word of the need that the agent has
	// like is the part that is similar in meaning to the need, as the directory found it; How is "" if none is.
	like hub.Match
}

// offerReasons returns the reasons of an offer as phrases for an answer: the parts of the agent with the
// words of the need that they contain.
func (s *search) offerReasons(o offer) []string {
	type reason struct {
		piece int
		words []string
		worth float64
	}
	var list []reason
	for _, f := range o.found {
		said := s.quoteMatch(f)
		i := slices.IndexFunc(list, func(r reason) bool {
			a, b := s.pieces[r.piece], s.pieces[f.piece]
			return r.piece == f.piece || a.kind != tag && b.kind != tag && a.skill != "" && a.skill == b.skill &&
				a.kind != example && b.kind != example
		})
		if i < 0 {
			list = append(list, reason{f.piece, []string{said}, f.worth})
			continue
		}
		list[i].worth += f.worth
		if !slices.Contains(list[i].words, said) {
			list[i].words = append(list[i].words, said)
		}
	}
	slices.SortStableFunc(list, func(a, b reason) int { return cmp.Compare(b.worth, a.worth) })
	var out []string
	switch {
	case o.like.Field == "skills":
		out = append(out, "its skill “"+quoteText(o.like.Found, 60)+"” is similar in meaning")
	case o.like.How != "":
		out = append(out, "its profile is similar in meaning")
	}
	for _, r := range list[:min(len(list), maxReasons-len(out))] {
		p := s.pieces[r.piece]
		said := strings.Join(r.words, " and ")
		switch p.kind {
		case name:
			out = append(out, "its name says "+said)
		case title:
			out = append(out, "its title says "+said)
		case skillName, skillText:
			out = append(out, "its skill “"+quoteText(p.skill, 60)+"” mentions "+said)
		case tag:
			out = append(out, "it is tagged “"+quoteText(p.text, 32)+"”")
		case example:
			out = append(out, "one of its examples is “"+quoteText(p.text, 80)+"”")
		case description:
			out = append(out, "its description mentions "+said)
		}
	}
	return out
}

// quoteMatch quotes the matched word as it is written in the piece and, if it differs, the word of the
// question.
func (s *search) quoteMatch(f found) string {
	x := bm25.New(bm25.Field{Name: "w", Weight: 1, Length: 1})
	x.Put(0, "", x.Analyze([]string{f.as}))
	said := f.as
	for _, w := range strings.FieldsFunc(strings.ToLower(s.pieces[f.piece].text), notLetter) {
		if hasWord(x, w, 0) {
			said = w
			break
		}
	}
	out := "“" + quoteText(said, 40) + "”"
	if f.as != f.word {
		out += " (for “" + quoteText(f.word, 40) + "”)"
	}
	return out
}

// livenessText describes the liveness of an agent as Markdown text for an offer, with the age of the
// last exchange.
func livenessText(a hub.Agent, now time.Time) string {
	when := formatAgo(a.Liveness.CheckedAt, now)
	switch a.Liveness.State {
	case hub.Alive:
		if a.Kind == hub.Builtin && a.Portal == "" {
			return "It is alive: it runs on this portal."
		}
		if when == "" {
			return "It is alive."
		}
		return "It was alive" + when + "."
	case hub.NeedsAuth:
		return "It answered" + when + ", but wants a key or a login that its owner must give; talking to it " +
			"will probably fail."
	case hub.WrongProtocol:
		return "The server at its address was not such an agent" + when +
			"; talking to it will probably fail."
	case hub.Unreachable:
		return "It was unreachable when last checked" + strings.Replace(when, " when checked", "", 1) +
			"; talking to it will probably fail."
	}
	return "Its liveness has not been checked yet."
}

func formatAgo(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero() || d < 0:
		return ""
	case d < 2*time.Minute:
		return " when checked just now"
	case d < 2*time.Hour:
		return fmt.Sprintf(" when checked %d minutes ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf(" when checked %d hours ago", int(d.Hours()))
	}
	return fmt.Sprintf(" when checked %d days ago", int(d.Hours()/24))
}

// talkPath returns the path of the form on an agent's page, with the user's question already in the
// form.
func talkPath(a hub.Agent, asked string) string {
	if asked == "" || len(asked) > maxLinkText {
		return agentPath(a) + talkAnchor
	}
	return agentPath(a) + "?text=" + url.QueryEscape(asked) + talkAnchor
}

func agentPath(a hub.Agent) string { return "/agents/" + pathEscape(a.Handle()) }

// pathEscape escapes a path segment, and also the characters that would end a Markdown link.
func pathEscape(s string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", "*", "%2A", "_", "%5F", "~", "%7E").Replace(url.PathEscape(s))
}

// describeOffer returns one offer as the text of a Markdown list item: link, reasons, liveness. base is
// put before the path; "" in a browser.
func (s *search) describeOffer(o offer, base string, now time.Time) string {
	var b strings.Builder
	a := o.agent
	path := base + agentPath(a)
	fmt.Fprintf(&b, "[%s](%s)", quoteText(cmp.Or(a.Title, a.Name), 80), path)
	if d := firstSentence(a.Description); d != "" {
		b.WriteString(": " + quoteText(d, maxQuoted))
	}
	if r := s.offerReasons(o); len(r) > 0 {
		b.WriteString("\n  It fits because " + joinPhrases(r) + ".")
	}
	fmt.Fprintf(&b, "\n  %s [Talk to %s](%s)", livenessText(a, now), quoteText(a.Handle(), 80), base+
		talkPath(a, s.asked))
	return b.String()
}

// joinPhrases joins phrases with commas and "and"; "" for none.
func joinPhrases(phrases []string) string {
	switch n := len(phrases); n {
	case 0:
		return ""
	case 1:
		return phrases[0]
	default:
		return strings.Join(phrases[:n-1], ", ") + " and " + phrases[n-1]
	}
}

func unescapePath(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}
