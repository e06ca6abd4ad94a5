package federation

import "encoding/json"

const (
	// MaxFound is the number of results of one portal for one search.
	MaxFound = 20
	// MaxQuery is the longest query text in bytes, MaxWanted the number of values in each filter.
	MaxQuery  = 500
	MaxWanted = 20
	// OfAll, as SearchQuestion.Of, asks an index portal to search the agents of all portals that it shows.
	OfAll = "all"
	// MaxIndexed is the size in bytes of an index portal's answer; hits that do not fit are left out.
	MaxIndexed = 192 << 10
)

// SearchQuestion asks another portal to search its own agents or, with Of, asks an index portal to
// search those of all portals; see docs/design/peering.md.
type SearchQuestion struct {
	Text      string   `json:"q"`
	Kinds     []string `json:"kind,omitempty"`
	Tags      []string `json:"tag,omitempty"`
	Skills    []string `json:"skill,omitempty"`
	Live      []string `json:"live,omitempty"`
	Languages []string `json:"language,omitempty"`
	Limit     int      `json:"limit,omitempty"`
	// Of is OfAll or empty; portals that are no index may ignore it. Portals restricts a search with Of
	// to these hosts; empty for all.
	Of      string   `json:"of,omitempty"`
	Portals []string `json:"portal,omitempty"`
}

// Check returns a Refusal for an invalid question.
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

// SearchAnswer holds the results of a portal, best first, each with a proof that its portal's head
// covers it. Total counts all matches, including those left out. The answer to OfAll includes agents of
// other portals: Heads has the head and card of each of these, in the order of their first result.
type SearchAnswer struct {
	Head    json.RawMessage `json:"head"`
	Total   int             `json:"total"`
	Results []Hit           `json:"results"`
	Heads   []Told          `json:"heads,omitempty"`
}

// Hit is one found agent. Scores are comparable only within one answer.
type Hit struct {
	Record json.RawMessage `json:"record"`
	Proof  json.RawMessage `json:"proof"`
	Score  float64         `json:"score"`
}
