package main

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

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

// plainPage is the page that PERFORMANCE.md's figure is of: names, titles and
// descriptions, no look.
func plainPage(list []hub.Result) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, plain(list)) }
}

// frame is the page around a list or a profile.
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

// agentsPage is the portal's page with its look and 20 cards, but without
// filters, search or checks: the views are there when the request comes.
func agentsPage(found hub.Page) http.HandlerFunc {
	v := templates.AgentsView{Total: found.Total}
	for _, r := range found.Results {
		v.Results = append(v.Results, cardOf(&r.Agent))
	}
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, templates.Agents(frame, v)) }
}

// browsePage is that page as somebody sees it who is signed in, with what it
// offers to narrow the list by. With words its cards are those the plain index
// finds among cards; what else is on the page is there before.
func browsePage(found hub.Page, x *words, cards []templates.AgentCard) http.HandlerFunc {
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
	return func(w http.ResponseWriter, r *http.Request) {
		v := v
		if v.Query = r.URL.Query().Get("q"); v.Query != "" {
			v.Results = make([]templates.AgentCard, 0, 20)
			var list []hit
			list, v.Total = x.best(v.Query, 20)
			for _, h := range list {
				if int(h.agent) < len(cards) {
					v.Results = append(v.Results, cards[h.agent])
				}
			}
		}
		render(w, r, templates.Agents(p, v))
	}
}

// profiles are the pages of agents by name, from views made before.
func profiles(views map[string]templates.AgentView) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := views[chi.URLParam(r, "name")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		p := frame
		p.Title, p.Description = v.Title, v.Tagline
		render(w, r, templates.Agent(p, v))
	}
}

// profileOf is what the portal says of such an agent to somebody signed out.
func profileOf(a *hub.Agent) templates.AgentView {
	at := templates.Time{Text: "1 January 2026", ISO: "2026-01-01T00:00:00Z"}
	live := templates.Provenance{Verified: true, Live: string(a.Liveness.State)}
	const send = "curl -s http://127.0.0.1:8080/api/v1/conversations/$ID/messages \\\n  -H \"Authorization: Bearer $TOKEN\" -H \"Content-Type: application/json\" \\\n  -d '{\"client_id\":\"1\",\"text\":\"Hello\"}'"
	v := templates.AgentView{Ref: a.Name, Title: a.Title, Handle: a.Name + "@floor.example", Kind: string(a.Kind), KindHelp: "It is reached at its own address.", Provenance: live,
		Health:  templates.Health{Provenance: live, Line: "Alive since", Since: at, Checked: at, CheckedAgo: "just now", Latency: "20 ms"},
		Tagline: a.Description, Tags: a.Tags(), Owner: "person-0", OwnerHandle: "person-0@floor.example", Proof: hub.Unproven,
		ProofText: "Unproven: nothing at its address says that this owner may list it.", TextGoesTo: "agent.example",
		Limits: []string{"Everybody may talk to it, also without an account."}, Used: "not yet",
		Uses: []templates.Use{{ID: "terminal", Label: "Terminal", Commands: []templates.Command{{Label: "Ask it once", Code: "agentsite chat --portal http://127.0.0.1:8080 " + a.Name}}},
			{ID: "openai", Label: "OpenAI", Hint: "For whatever speaks the OpenAI chat API.", Commands: []templates.Command{{Label: "curl", Code: send}, {Label: "JavaScript", Code: send}, {Label: "Python", Code: send}}},
			{ID: "a2a", Label: "A2A", Hint: "All that clients need to know is in the card.", Commands: []templates.Command{{Label: "Agent card", Code: send}, {Label: "a2a command", Code: send}, {Label: "JavaScript", Code: send}}},
			{ID: "mcp", Label: "MCP", Hint: "Its skills are the tools of a server.", Commands: []templates.Command{{Label: "Address", Code: send}, {Label: "Settings", Code: send}, {Label: "Look at its tools", Code: send}}},
			{ID: "api", Label: "Our own API", Hint: "For conversations that go on.", Commands: []templates.Command{{Label: "Begin", Code: send}, {Label: "Say something", Code: send}, {Label: "Read the answer", Code: send}}}},
		TokenHint: "AGENTSITE_TOKEN stands for a token of yours: nobody gets an answer without one.",
		Share:     &templates.ShareView{Ref: a.Name, Title: a.Title, URL: "http://127.0.0.1:8080/agents/" + a.Name, AskURL: "http://127.0.0.1:8080/chat/new?agent=" + a.Name, QR: "/agents/" + a.Name + "/qr.svg"},
		Version:   "1", VersionsHref: "/agents/" + a.Name + "/versions", Updated: at, Created: at, Takes: "text", Gives: "text", Visibility: "public", Reportable: true}
	for _, s := range a.Skills {
		v.Examples = append(v.Examples, s.Examples...)
		v.Skills = append(v.Skills, templates.Skill{ID: s.ID, Name: s.Name, Description: s.Description, Tags: s.Tags})
	}
	return v
}
