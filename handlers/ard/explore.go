package ard

import (
	"net/http"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// Bounds of one exploration request.
const (
	maxFacets     = 20
	defaultFacets = 20 // default number of values of one facet, §5.3.3
	maxBuckets    = 1000
)

// facetNames maps ARD terms to facets of the hub. The value is "" for a term without a facet there: its
// values follow from the portal and its card types.
var facetNames = map[string]string{
	"type": "", "publisher": "", attestations: "", "tags": "tag", "capabilities": "skill", "metadata.kind": "kind",
	"metadata.liveness": "live", "metadata.proof": "proof", "metadata.publisher": "publisher",
}

// facetRequest asks for the most frequent values of one term, at most limit of those with at least
// minCount entries.
type facetRequest struct {
	field           string // name of the term as the request spells it
	term            string
	limit, minCount int
}

type exploreRequest struct {
	hub.Query
	card   string // media type that all entries must have, "" for any; as in query
	facets []facetRequest
}

type exploreJSON struct {
	ResultType string               `json:"resultType"`
	Facets     map[string]facetJSON `json:"facets"`
}

type facetJSON struct {
	Buckets []bucketJSON `json:"buckets"`
	// Other is the number of entries with other values, nil if unknown.
	Other *int `json:"otherCount,omitempty"`
}

type bucketJSON struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

func (d *Handler) decodeExplore(body []byte) (*exploreRequest, error) {
	o, err := parseObject(body, "")
	if err != nil {
		return nil, err
	}
	q := new(query)
	if o.has("query") {
		if q, err = d.decodeQuery(o["query"], false); err != nil {
			return nil, err
		}
	}
	q.Scope = hub.ScopePortal // the counts of other portals are unknown
	d.limitPublishers(q)
	out := &exploreRequest{Query: q.finish(), card: q.card}
	out.Limit, out.CountMatches = 1, true
	if !o.has("resultType") {
		return nil, wrong("resultType", `is missing; send {"facets":[{"field":"tags"}]}`)
	}
	shape, err := parseObject(o["resultType"], "resultType")
	if err != nil {
		return nil, err
	}
	if !shape.has("facets") {
		return nil, wrong("resultType.facets", `is missing; send [{"field":"tags"}]`)
	}
	list, err := listOf(shape["facets"], "resultType.facets", maxFacets)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, wrong("resultType.facets", `is empty; send [{"field":"tags"}]`)
	}
	for _, raw := range list {
		f, err := decodeFacet(raw)
		if err != nil {
			return nil, err
		}
		out.facets = append(out.facets, f)
	}
	return out, nil
}

func decodeFacet(raw []byte) (f facetRequest, err error) {
	const path = "resultType.facets"
	o, err := parseObject(raw, path)
	if err != nil {
		return f, err
	}
	if f.field, err = o.textMember("field", path+".field"); err != nil {
		return f, err
	}
	f.term = bindings(nil).plainTerm(f.field)
	if _, known := facetNames[f.term]; !known {
		return f, wrong(path+".field", "%q is not a term this registry counts; it knows %s", cutText(f.field, 80),
			knownTerms())
	}
	if f.limit, err = o.numberMember("limit", path+".limit", defaultFacets, 1, maxBuckets); err != nil {
		return f, err
	}
	f.minCount, err = o.numberMember("minCount", path+".minCount", 1, 0, 1<<30)
	return f, err
}

func (d *Handler) serveExplore(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, err := d.decodeExplore(body)
	if err != nil {
		return err
	}
	page, err := d.cfg.Directory.Search(r.Context(), actor, req.Query)
	if err != nil {
		return err
	}
	out := exploreJSON{"facets", make(map[string]facetJSON, len(req.facets))}
	for _, f := range req.facets {
		out.Facets[f.field] = f.countValues(d.termValues(f.term, req.card, &page))
	}
	doc, err := encodeJSON(out)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	sendBody(w, http.StatusOK, jsonType, doc)
	return nil
}

// termValues returns the values of a term with their counts over all results. more is true if the hub
// left out rare values.
func (d *Handler) termValues(term, card string, page *hub.Page) (list []hub.FacetCount, more bool) {
	if name := facetNames[term]; name != "" {
		list = page.Facets[name]
		return list, len(list) >= hub.MaxFacetValues
	}
	if page.Total == 0 || term == attestations {
		return nil, false
	}
	of := []string{d.cfg.Publisher}
	if term == "type" { // each agent has an entry of each type, but a search returns one entry per agent
		if of = []string{cardType, serverType}; card != "" {
			of = []string{card}
		}
	}
	for _, v := range of {
		list = append(list, hub.FacetCount{Value: v, Count: page.Total})
	}
	return list, false
}

// countValues restricts values to the ones that the request wants. If the hub left out values, the number
// of entries with others is unknown, and Other is nil.
func (f facetRequest) countValues(list []hub.FacetCount, more bool) facetJSON {
	out := facetJSON{Buckets: []bucketJSON{}}
	other := 0
	for _, v := range list {
		switch {
		case v.Count < f.minCount:
			// The request's minimum count excludes the values that the hub left out, because they are
			// rarer.
			more = false
		case len(out.Buckets) < f.limit:
			out.Buckets = append(out.Buckets, bucketJSON(v))
		default:
			other += v.Count
		}
	}
	if !more {
		out.Other = &other
	}
	return out
}
