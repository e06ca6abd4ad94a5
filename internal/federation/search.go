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
	// MaxIndexed bounds the answer to such a question, in bytes: what does not
	// fit is left out.
	MaxIndexed = 192 << 10
)

// SearchQuestion is what a portal is asked to look for among its own agents, or
// an index portal with Of among all, see docs/design/peering.md.
type SearchQuestion struct {
	Text      string   `json:"q"`
	Kinds     []string `json:"kind,omitempty"`
	Tags      []string `json:"tag,omitempty"`
	Skills    []string `json:"skill,omitempty"`
	Live      []string `json:"live,omitempty"`
	Languages []string `json:"language,omitempty"`
	Limit     int      `json:"limit,omitempty"`
	// Of is OfAll or empty; who is no index portal need not know it. Portals are
	// hosts, none for all; they count only with it.
	Of      string   `json:"of,omitempty"`
	Portals []string `json:"portal,omitempty"`
}

// Check says what is wrong with the question.
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

// SearchAnswer is what a portal found, best first, each with the proof that
// Head covers it. Total is how many there are, the others included. In the
// answer to OfAll are agents of other portals too: of each of these the head
// that covers them is in Heads, with the card, in the order of their first hit.
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
