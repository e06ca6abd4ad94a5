// Package search reads searches for agents from the addresses of pages and of
// the API, and writes them back as addresses.
package search

import (
	"context"
	"net/http"
	"strings"
	"time"

	"agentsite/handlers/address"
	"agentsite/handlers/request"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
)

// Searches parses searches for pages and API, and stores saved searches. Create it with New.
type Searches struct {
	portal address.Portal
	hub    *hub.Service
	open   *request.Connections
}

// New returns Searches over the directory of a portal. portal supplies the host that filters may name it
// by, open counts the streams of results.
func New(portal address.Portal, agents *hub.Service, open *request.Connections) *Searches {
	return &Searches{portal: portal, hub: agents, open: open}
}

// SearchEach is hub.Service.SearchEach for an answer that is an event stream of the actor.
func (d *Searches) SearchEach(ctx context.Context, actor ident.Actor, q hub.Query, each func(hub.Page) error) error {
	release, err := d.open.OpenStream(actor)
	if err != nil {
		return err
	}
	defer release()
	return d.hub.SearchEach(ctx, actor, q, each)
}

// FeedEntries is the number of agents in an Atom feed, the newest ones.
const FeedEntries = 50

// CountNew returns how many results of a saved search were registered after since, at most FeedEntries. A
// search that fails counts 0.
func (d *Searches) CountNew(r *http.Request, query string, since time.Time) int {
	q, err := d.ParseQuery(r, query)
	if err != nil {
		return 0
	}
	q.Sort, q.Limit, q.Cursor = hub.SortNewest, FeedEntries, ""
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

// ParseQuery parses the stored query of a saved search, which has the form of the parameters of the list
// of agents.
func (d *Searches) ParseQuery(r *http.Request, query string) (hub.Query, error) {
	probe := r.Clone(r.Context())
	probe.URL.RawQuery = query
	return d.Query(probe)
}

// Save stores a search for the actor. Without a title the name is made of the filters.
func (d *Searches) Save(r *http.Request, actor ident.Actor, title, query string) (hub.Saved, error) {
	if title == "" {
		q, err := d.ParseQuery(r, query)
		if err != nil {
			return hub.Saved{}, err
		}
		title = Filters{q}.searchTitle()
	}
	return d.hub.Searches.Save(r.Context(), actor, title, query)
}

// Query parses the parameters of a search or of the list of agents.
func (d *Searches) Query(r *http.Request) (hub.Query, error) {
	v := r.URL.Query()
	limit, err := request.QueryInt(r, "limit", 20)
	if err != nil {
		return hub.Query{}, err
	}
	q := hub.Query{Text: strings.TrimSpace(v.Get("q")), Kinds: request.SplitValues(v["kind"]),
		Tags: request.SplitValues(v["tag"]), Skills: request.NonEmptyValues(v["skill"]),
		Portals: request.SplitValues(v["portal"]), Live: request.SplitValues(v["live"]),
		Languages: request.SplitValues(v["language"]), Modalities: request.SplitValues(v["modality"]),
		Signed: request.SplitValues(v["signed"]), Proofs: request.SplitValues(v["proof"]),
		Publishers: request.SplitValues(v["publisher"]), Sort: v.Get("sort"), Mode: v.Get("mode"),
		Limit: int(limit), Cursor: v.Get("cursor")}
	for i, s := range q.Signed {
		switch s {
		case "1", "yes":
			q.Signed[i] = "true"
		case "0", "no":
			q.Signed[i] = "false"
		}
	}
	for i, p := range q.Portals {
		if q.Portals[i] = weborigin.ReadHost(p); q.Portals[i] == d.portal.Host {
			q.Portals[i] = "local"
		}
	}
	// live=true stands for alive agents, live=false for all other states.
	if len(q.Live) == 1 {
		switch q.Live[0] {
		case "true", "1", "yes":
			q.Live = []string{string(hub.Alive)}
		case "false", "0", "no":
			q.Live = []string{string(hub.NeedsAuth), string(hub.WrongProtocol), string(hub.Unreachable),
				string(hub.Unknown)}
		}
	}
	q.Scope = v.Get("scope")
	return q, nil
}
