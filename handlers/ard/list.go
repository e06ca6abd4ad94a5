package ard

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// orders are the sort orders of lists. The specification and its OpenAPI document spell some differently;
// both spellings are accepted. The first is the default.
var orders = []struct{ name, sort string }{
	{"name", hub.SortName},
	{"createdAt DESC", hub.SortNewest}, {"created_at DESC", hub.SortNewest},
	{"updatedAt DESC", hub.SortUpdated}, {"updated_at DESC", hub.SortUpdated},
}

type listJSON struct {
	Items     []entry `json:"items"`
	Total     int     `json:"total"`
	PageToken string  `json:"pageToken,omitempty"`
}

// serveList answers with a page of entries in a fixed order, §5.3.5; a list has no search text.
func (d *Handler) serveList(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	q, card, err := d.decodeList(r)
	if err != nil {
		return err
	}
	page, err := d.cfg.Directory.Search(r.Context(), actor, q)
	if err != nil {
		return err
	}
	out := listJSON{Items: make([]entry, len(page.Results)), Total: page.Total, PageToken: page.NextCursor}
	for i := range page.Results {
		out.Items[i] = d.entryOf(&page.Results[i].Agent, card)
	}
	body, err := encodeJSON(out)
	if err != nil {
		return err
	}
	sendCached(w, r, jsonType, freshSeconds, body)
	return nil
}

// decodeList returns the query of a list request, and the media type that all entries must have, "" for
// any.
func (d *Handler) decodeList(r *http.Request) (q hub.Query, card string, err error) {
	v := r.URL.Query()
	for name, values := range v {
		if len(values) > 1 {
			return hub.Query{}, "", wrong(cutText(name, 80), "is given twice")
		}
	}
	of := new(query)
	if err := d.applyFilter(of, v.Get("filter")); err != nil {
		return hub.Query{}, "", err
	}
	of.Sort = ""
	by := strings.Join(strings.Fields(v.Get("orderBy")), " ")
	if by == "" || strings.EqualFold(by, "name ASC") {
		by = orders[0].name
	}
	for _, o := range orders {
		if strings.EqualFold(by, o.name) {
			of.Sort = o.sort
		}
	}
	if of.Sort == "" {
		return hub.Query{}, "", wrong("orderBy", "use name, createdAt DESC or updatedAt DESC")
	}
	of.Limit = defaultList
	if s := v.Get("pageSize"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxPage {
			return hub.Query{}, "", wrong("pageSize", "use a whole number from 1 to %d", maxPage)
		}
		of.Limit = n
	}
	of.Cursor = v.Get("pageToken")
	of.Scope = hub.ScopePortal // lists contain only agents of this portal
	d.limitPublishers(of)
	return of.finish(), of.card, nil
}

// applyFilter adds the clauses of a filter expression (Appendix A) to q. An unknown field is an error.
func (d *Handler) applyFilter(q *query, expression string) error {
	clauses, err := parseFilter(expression)
	if err != nil {
		return err
	}
	for _, c := range clauses {
		path := "filter." + cutText(c.field, 80)
		switch c.field {
		case "createdAfter", "updatedAfter":
			t, err := parseTime(c.value)
			if err != nil {
				return wrong(path, "use a time such as 2026-01-31 or 2026-01-31T12:00:00Z")
			}
			if c.operator == ">=" {
				t = t.Add(-time.Nanosecond)
			}
			at := &q.CreatedAfter
			if c.field == "updatedAfter" {
				at = &q.UpdatedAfter
			}
			if t.After(*at) {
				*at = t
			}
			continue
		}
		if c.operator != "=" {
			return wrong(path, "compares by = only")
		}
		term := c.field
		if term == "publisherId" {
			term = "publisher"
		}
		var values []string
		for v := range strings.SplitSeq(c.value, ",") {
			if v = strings.TrimSpace(v); v != "" {
				values = append(values, v)
			}
		}
		if len(values) == 0 || len(values) > maxValues {
			return wrong(path, "give 1 to %d values with commas between them", maxValues)
		}
		if _, known := terms[term]; !known {
			return wrong(path, "is not a field this registry filters by; it knows createdAfter, updatedAfter, publisherId, %s", knownTerms())
		}
		if err := d.addConstraint(q, term, path, values); err != nil {
			return err
		}
	}
	return nil
}

func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, s)
}
