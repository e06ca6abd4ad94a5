package main

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"agentsite/internal/hub"
	"agentsite/templates"
)

func render(w http.ResponseWriter, r *http.Request, c templ.Component) {
	var buf bytes.Buffer
	buf.Grow(16 << 10)
	if err := c.Render(r.Context(), &buf); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.Write(buf.Bytes())
}

// frame is the fixed part of a page around a list or a conversation.
var frame = templates.Page{Title: "Agents", Path: "/agents", PortalName: "floor", PortalHandle: "floor.example", CanSignUp: true, Version: "floor"}

func cardOf(a *hub.Agent) templates.AgentCard {
	c := templates.AgentCard{Ref: a.Name, Title: a.Title, Handle: a.Name + "@floor.example", Description: a.Description, Kind: string(a.Kind),
		Provenance: templates.Provenance{Verified: true, Live: string(a.Liveness.State)}, Tags: a.Tags()}
	for _, s := range a.Skills {
		if len(c.Examples) < 2 {
			c.Examples = append(c.Examples, s.Examples...)
		}
	}
	return c
}

// agentsPage serves the portal's page of 20 agents without filters, search or checks of rights: all its
// values are prepared before the first request, which only renders them.
func agentsPage(found hub.Page) http.HandlerFunc {
	v := templates.AgentsView{Total: found.Total}
	for _, r := range found.Results {
		v.Results = append(v.Results, cardOf(&r.Agent))
	}
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, templates.Agents(frame, v)) }
}

// browsePage serves the same page as agentsPage for a signed-in user, with facets.
func browsePage(found hub.Page) http.HandlerFunc {
	p := frame
	p.User, p.Feed = &templates.User{Name: "person-0"}, "/agents/feed?"
	v := templates.AgentsView{Total: found.Total, MoreHref: "/agents?cursor=floor", FeedHref: p.Feed, CanSave: true, LoginHref: "/login?next=%2Fagents",
		Sorts: []templates.Option{{Value: hub.SortName, Label: "name", Selected: true}, {Value: hub.SortNewest, Label: "newest"}, {Value: hub.SortUpdated, Label: "last changed"}}}
	for _, r := range found.Results {
		v.Results = append(v.Results, cardOf(&r.Agent))
	}
	for _, f := range []struct{ param, name string }{{"kind", "Kind"}, {"live", "State"}, {"tag", "Tag"}} {
		facet := templates.Facet{Name: f.name}
		for _, c := range found.Facets[f.param] {
			if len(facet.Options) < 10 {
				facet.Options = append(facet.Options, templates.FacetOption{Label: c.Value, Count: c.Count, Href: "/agents?" + f.param + "=" + c.Value})
			}
		}
		v.Facets = append(v.Facets, facet)
	}
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, templates.Agents(p, v)) }
}
