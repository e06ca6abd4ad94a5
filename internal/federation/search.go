package federation

import "encoding/json"

const (
	// MaxFound bounds the results of one portal for one search.
	MaxFound = 20
	// MaxQuery bounds the text that is searched, in bytes, and MaxWanted the
	// values of each filter.
	MaxQuery  = 500
	MaxWanted = 20
	// OfAll asks an index portal to look through all portals that it shows.
	OfAll = "all"
	// MaxIndexed bounds the answer to a question to an index portal, in bytes: hits that do not
	// fit are left out.
	MaxIndexed = 192 << 10
)

// SearchQuestion is a search of another portal in its own agents, or, with Of, of an index portal
// in all agents, see docs/design/peering.md.
type SearchQuestion struct {
	Text      string   `json:"q"`
	Kinds     []string `json:"kind,omitempty"`
	Tags      []string `json:"tag,omitempty"`
	Skills    []string `json:"skill,omitempty"`
	Live      []string `json:"live,omitempty"`
	Languages []string `json:"language,omitempty"`
	Limit     int      `json:"limit,omitempty"`
	// Of is OfAll or empty; portals that are no index may ignore it. Portals are hosts, none for
	// all; they count only with Of.
	Of      string   `json:"of,omitempty"`
	Portals []string `json:"portal,omitempty"`
}

// Check returns an error for an invalid question.
func (q *SearchQuestion) Check() error {
	if len(q.Text) > MaxQuery {
		return Refuse(ReasonMalformed, "q: use at most %d bytes.", MaxQuery)
	}
	for _, list := range [...][]string{q.Kinds, q.Tags, q.Skills, q.Live, q.Languages, q.Portals} {
		if len(list) > MaxWanted {
			return Refuse(ReasonMalformed, "Use at most %d values of a filter.", MaxWanted)
		}
		for _, v := range list {
			if len(v) > MaxQuery {
				return Refuse(ReasonMalformed, "A value of a filter has more than %d bytes.", MaxQuery)
			}
		}
	}
	if q.Limit < 0 || q.Limit > MaxFound {
		return Refuse(ReasonMalformed, "limit: use 1 to %d.", MaxFound)
	}
	if q.Of != "" && q.Of != OfAll {
		return Refuse(ReasonMalformed, "of: use %s, or leave it out.", OfAll)
	}
	return nil
}

// SearchAnswer holds the results of a portal, best first, each with the proof that Head covers it.
// Total counts all matches, those left out included. The answer to OfAll has agents of other
// portals too: Heads has the head of each of these portals, with its card, in the order of their
// first result.
type SearchAnswer struct {
	Head    json.RawMessage `json:"head"`
	Total   int             `json:"total"`
	Results []Hit           `json:"results"`
	Heads   []Told          `json:"heads,omitempty"`
}

// Hit is one agent that was found. The score means something only beside
// others of the same answer.
type Hit struct {
	Record json.RawMessage `json:"record"`
	Proof  json.RawMessage `json:"proof"`
	Score  float64         `json:"score"`
}
