package ard

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"slices"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// The federation mode of a search: auto, the default, searches agents of all portals with records on this
// portal holds; none searches this portal's agents only; referrals does the same and adds the registries
// of other portals to the answer.

// searchRequest is the body of POST /search after validation.
type searchRequest struct {
	hub.Query
	card      string // media type that all entries must have, "" for any; as in query
	referrals bool
	best      float64 // best score of the first page, from the page token; 0 on the first page
}

type searchJSON struct {
	Results   []resultJSON `json:"results"`
	Referrals *[]entry     `json:"referrals,omitempty"`
	PageToken string       `json:"pageToken,omitempty"`
}

type resultJSON struct {
	entry
	Score  int    `json:"score"`
	Source string `json:"source"`
}

func (d *Handler) decodeSearch(body []byte) (*searchRequest, error) {
	o, err := parseObject(body, "")
	if err != nil {
		return nil, err
	}
	if !o.has("query") {
		return nil, wrong("query", `is missing; send {"query":{"text":"…"}}`)
	}
	q, err := d.decodeQuery(o["query"], true)
	if err != nil {
		return nil, err
	}
	federation, err := o.textMember("federation", "federation")
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", "auto", "referrals", "none"}, federation) {
		return nil, wrong("federation", "use auto, referrals or none")
	}
	s := &searchRequest{card: q.card, referrals: federation == "referrals"}
	if q.Mode, err = o.textMember("mode", "mode"); err != nil {
		return nil, err
	}
	if q.Mode != "" && !slices.Contains(hub.Modes, q.Mode) {
		return nil, wrong("mode", "use auto, words or meaning")
	}
	if federation == "none" || s.referrals {
		q.Scope = hub.ScopePortal
	}
	d.limitPublishers(q)
	s.Query = q.finish()
	if s.Limit, err = o.numberMember("pageSize", "pageSize", defaultPage, 1, maxPage); err != nil {
		return nil, err
	}
	token, err := o.textMember("pageToken", "pageToken")
	if err != nil {
		return nil, err
	}
	s.best, s.Cursor, err = openToken(token)
	return s, err
}

func (d *Handler) serveSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	s, err := d.decodeSearch(body)
	if err != nil {
		return err
	}
	s.Wide = true // also ask other portals, unless the search is for this portal only
	page, err := d.cfg.Directory.Search(r.Context(), actor, s.Query)
	if err != nil {
		return err
	}
	best := s.best
	for i := range page.Results {
		best = max(best, page.Results[i].Score)
	}
	// The hub ranks agents that do not answer below the others. ARD ranks by relevance alone, so the
	// order is restored; metadata.liveness has the state.
	slices.SortStableFunc(page.Results, func(a, b hub.Result) int { return cmp.Compare(b.Score, a.Score) })
	out := searchJSON{Results: make([]resultJSON, len(page.Results))}
	for i := range page.Results {
		e := d.entryOf(&page.Results[i].Agent, s.card)
		e.Queries = nil // representative queries serve indexing and are not part of results, §5.3.2
		out.Results[i] = resultJSON{e, scaleScore(page.Results[i].Score, best), d.homeOf(&page.Results[i].Agent) + base}
	}
	if s.referrals {
		out.Referrals = new([]entry)
		*out.Referrals = d.otherRegistries()
	}
	if page.NextCursor != "" {
		out.PageToken = sealToken(best, page.NextCursor)
	}
	doc, err := encodeJSON(out)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	sendBody(w, http.StatusOK, jsonType, doc)
	return nil
}

// scaleScore returns a score of the index, which has no upper bound, as a percentage of the best
// score of the same search: the best hit has 100, every hit at least 1. Scores of two searches are
// not comparable. A search without ranking, such as exclusions only, has 0 throughout.
func scaleScore(score, best float64) int {
	if best <= 0 || score <= 0 {
		return 0
	}
	return min(max(int(math.Round(100*score/best)), 1), 100)
}

// A page token contains the best score of the search and the hub's cursor, which is valid for the same
// query only.

const tokenVersion = 1

func sealToken(best float64, cursor string) string {
	b := binary.BigEndian.AppendUint64([]byte{tokenVersion}, math.Float64bits(best))
	return base64.RawURLEncoding.EncodeToString(append(b, cursor...))
}

func openToken(token string) (best float64, cursor string, err error) {
	if token == "" {
		return 0, "", nil
	}
	unknown := wrong("pageToken", "is not one that this search returned; start again without it")
	if len(token) > maxTokenBytes {
		return 0, "", unknown
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) <= 9 || b[0] != tokenVersion {
		return 0, "", unknown
	}
	best = math.Float64frombits(binary.BigEndian.Uint64(b[1:]))
	if math.IsNaN(best) || math.IsInf(best, 0) || best < 0 {
		return 0, "", unknown
	}
	return best, string(b[9:]), nil
}
