package handlers

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// feedEntries is how many agents a feed holds.
const feedEntries = 50

// atomFeed is a feed as RFC 4287 describes it.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  atomAuthor  `xml:"author"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
	Type string `xml:"type,attr,omitempty"`
}

type atomEntry struct {
	ID        string      `xml:"id"`
	Title     string      `xml:"title"`
	Published string      `xml:"published"`
	Updated   string      `xml:"updated"`
	Summary   string      `xml:"summary"`
	Link      atomLink    `xml:"link"`
	Author    *atomAuthor `xml:"author,omitempty"`
}

// agentFeed is a search as an Atom feed, newest agents first. It shows what
// visitors may see, whoever asks: feed readers have no session.
func (d *Door) agentFeed(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	q, err := d.searchQuery(r)
	if err != nil {
		return err
	}
	q.Sort, q.Limit, q.Cursor = hub.SortNewest, feedEntries, ""
	page, err := d.hub.Search(r.Context(), ident.Actor{Kind: ident.Guest}, q)
	if err != nil {
		return err
	}
	query := filters{q}.values()
	query.Del("sort")
	title := "Agents on " + d.portal.Name
	if q.Text != "" {
		title = "“" + q.Text + "” on " + d.portal.Name
	}
	here := d.portal.URL + address("/agents/feed", query)
	f := atomFeed{ID: here, Title: title, Author: atomAuthor{d.portal.Name}, Updated: cmp.Or(stamp(d.portal.Started), stamp(clock.Now())),
		Links: []atomLink{{Rel: "self", Href: here, Type: "application/atom+xml"}, {Rel: "alternate", Href: d.portal.URL + address("/agents", query), Type: "text/html"}}}
	var updated time.Time
	for _, res := range page.Results {
		a := res.Agent
		if a.UpdatedAt.After(updated) {
			updated = a.UpdatedAt
			f.Updated = stamp(updated)
		}
		e := atomEntry{ID: d.portal.URL + "/agents/" + a.Handle(), Title: a.Title, Published: stamp(a.CreatedAt), Updated: stamp(a.UpdatedAt),
			Summary: d.markup.Line(a.Description), Link: atomLink{Rel: "alternate", Href: d.portal.URL + "/agents/" + a.Handle(), Type: "text/html"}}
		if a.OwnerName != "" {
			e.Author = &atomAuthor{a.OwnerName}
		}
		f.Entries = append(f.Entries, e)
	}
	buf := newBuffer()
	defer freeBuffer(buf)
	buf.WriteString(xml.Header)
	if err := xml.NewEncoder(buf).Encode(f); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/atom+xml; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=300")
	_, err = w.Write(buf.Bytes())
	return err
}

// address is a path with its query, if it has one.
func address(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// newSince counts what a saved search finds that was registered after a time,
// up to a feed's worth.
func (d *Door) newSince(r *http.Request, query string, since time.Time) int {
	q, err := d.queryOf(r, query)
	if err != nil {
		return 0
	}
	q.Sort, q.Limit, q.Cursor = hub.SortNewest, feedEntries, ""
	page, err := d.hub.Search(r.Context(), ident.Actor{Kind: ident.Guest}, q)
	if err != nil {
		return 0
	}
	n := 0
	for _, res := range page.Results {
		if res.Agent.CreatedAt.After(since) {
			n++
		}
	}
	return n
}

// queryOf reads a search out of the encoded query of a browse page.
func (d *Door) queryOf(r *http.Request, query string) (hub.Query, error) {
	probe := r.Clone(r.Context())
	probe.URL.RawQuery = query
	return d.searchQuery(probe)
}

// saveSearch keeps the search of a browse page.
func (d *Door) saveSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to save searches.")
	}
	s, err := d.saveQuery(r, actor, in.Get("title"), in.Get("query"))
	if err != nil {
		return err
	}
	return see(w, r, "/agents?done=saved&"+s.Query)
}

// saveQuery keeps a search, named by what it asks for unless it has a title.
func (d *Door) saveQuery(r *http.Request, actor ident.Actor, title, query string) (hub.Saved, error) {
	if title == "" {
		q, err := d.queryOf(r, query)
		if err != nil {
			return hub.Saved{}, err
		}
		title = filters{q}.title()
	}
	return d.hub.SaveSearch(r.Context(), actor, title, query)
}

// openSearch shows what a saved search finds now, newest first, and notes that
// it was looked at.
func (d *Door) openSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	list, err := d.hub.SavedSearches(r.Context(), actor, func(string, time.Time) int { return 0 })
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.ID == id {
			if err := d.hub.SeenSearch(r.Context(), actor, id); err != nil {
				return err
			}
			return see(w, r, "/agents?"+newestFirst(s.Query))
		}
	}
	return fault.New(fault.NotFound, "You have no such search.")
}

// newestFirst is a search in that order, unless it asks for another.
func newestFirst(query string) string {
	v, err := url.ParseQuery(query)
	if err != nil || v.Has("sort") {
		return query
	}
	v.Set("sort", hub.SortNewest)
	return v.Encode()
}

func (d *Door) deleteSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.DeleteSearch(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return see(w, r, "/account?done=search-deleted#searches")
}

// apiSearches lists the actor's saved searches.
func (d *Door) apiSearches(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	list, err := d.hub.SavedSearches(r.Context(), actor, func(q string, since time.Time) int { return d.newSince(r, q, since) })
	if err != nil {
		return err
	}
	out := make([]savedJSON, len(list))
	for i, s := range list {
		out[i] = d.savedJSON(s)
	}
	writeJSON(w, http.StatusOK, map[string]any{"searches": out, "next_cursor": ""})
	return nil
}

type savedJSON struct {
	ID        string `json:"id"`
	Title     string `json:"title"`
	Query     string `json:"query"`
	Feed      string `json:"feed"`
	New       int    `json:"new"`
	SeenAt    string `json:"seen_at"`
	CreatedAt string `json:"created_at"`
}

func (d *Door) savedJSON(s hub.Saved) savedJSON {
	return savedJSON{s.ID, s.Title, s.Query, d.portal.URL + "/agents/feed?" + s.Query, s.New, stamp(s.SeenAt), stamp(s.CreatedAt)}
}

type saveSearchBody struct {
	Title string `json:"title"`
	Query string `json:"query"`
}

// apiSaveSearch keeps a search: {title?, query}, query as the address of
// /search has it.
func (d *Door) apiSaveSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in saveSearchBody
	if err := decode(w, r, &in); err != nil {
		return err
	}
	s, err := d.saveQuery(r, actor, in.Title, in.Query)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if clock.Now().Sub(s.CreatedAt) > time.Minute {
		code = http.StatusOK // it was kept before
	}
	writeJSON(w, code, d.savedJSON(s))
	return nil
}

func (d *Door) apiDeleteSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.DeleteSearch(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
