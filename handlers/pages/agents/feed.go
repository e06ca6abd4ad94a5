package agents

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

// atomFeed is an Atom feed (RFC 4287), with the elements that feed readers need.
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

// agentFeed answers a search as an Atom feed, newest agents first. It contains the agents that a guest may see,
// because feed readers have no session.
func (d *Directory) agentFeed(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	q, err := d.searches.Query(r)
	if err != nil {
		return err
	}
	q.Sort, q.Limit, q.Cursor = hub.SortNewest, search.FeedEntries, ""
	page, err := d.hub.Search(r.Context(), ident.Actor{Kind: ident.Guest}, q)
	if err != nil {
		return err
	}
	query := search.Filters{Q: q}.Values()
	query.Del("sort")
	title := "Agents on " + d.portal.Name()
	if q.Text != "" {
		title = "“" + q.Text + "” on " + d.portal.Name()
	}
	here := d.portal.URL + search.PathWithQuery("/agents/feed", query)
	f := atomFeed{ID: here, Title: title, Author: atomAuthor{d.portal.Name()},
		Updated: cmp.Or(respond.FormatTime(d.portal.Started), respond.FormatTime(clock.Now())),
		Links: []atomLink{{Rel: "self", Href: here, Type: "application/atom+xml"},
			{Rel: "alternate", Href: d.portal.URL + search.PathWithQuery("/agents", query), Type: "text/html"}}}
	var updated time.Time
	for _, res := range page.Results {
		a := res.Agent
		if a.UpdatedAt.After(updated) {
			updated = a.UpdatedAt
			f.Updated = respond.FormatTime(updated)
		}
		e := atomEntry{ID: d.portal.URL + "/agents/" + a.Handle(), Title: a.Title,
			Published: respond.FormatTime(a.CreatedAt), Updated: respond.FormatTime(a.UpdatedAt),
			Summary: d.markup.Line(a.Description),
			Link:    atomLink{Rel: "alternate", Href: d.portal.URL + "/agents/" + a.Handle(), Type: "text/html"}}
		if a.OwnerName != "" {
			e.Author = &atomAuthor{a.OwnerName}
		}
		f.Entries = append(f.Entries, e)
	}
	buf := respond.NewBuffer()
	defer respond.FreeBuffer(buf)
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

// saveSearch saves the search that the list of agents shows.
func (d *Directory) saveSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	if !actor.IsPerson() {
		return fault.New(fault.Unauthenticated, "Log in to save searches.")
	}
	s, err := d.searches.Save(r, actor, in.Get("title"), in.Get("query"))
	if err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/agents?done=saved&"+s.Query)
}

// openSearch redirects to the results of a saved search, newest first, and stores the time, after which
// results count as new.
func (d *Directory) openSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	id := chi.URLParam(r, "id")
	list, err := d.hub.Searches.List(r.Context(), actor, func(string, time.Time) int { return 0 })
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.ID == id {
			if err := d.hub.Searches.MarkSeen(r.Context(), actor, id); err != nil {
				return err
			}
			return respond.SeeOther(w, r, "/agents?"+newestFirst(s.Query))
		}
	}
	return fault.New(fault.NotFound, "You have no such search.")
}

// newestFirst returns the query sorted by newest first, unless it has a sort order.
func newestFirst(query string) string {
	v, err := url.ParseQuery(query)
	if err != nil || v.Has("sort") {
		return query
	}
	v.Set("sort", hub.SortNewest)
	return v.Encode()
}

func (d *Directory) deleteSearch(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := d.hub.Searches.Delete(r.Context(), actor, chi.URLParam(r, "id")); err != nil {
		return err
	}
	return respond.SeeOther(w, r, "/account?done=search-deleted#searches")
}
