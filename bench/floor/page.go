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

// plainPage is the page that PERFORMANCE.md's figure is of: names, titles and
// descriptions, no look.
func plainPage(list []hub.Result) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, plain(list)) }
}

// agentsPage is the portal's page with its look and 20 cards, but without
// filters, search or checks: the views are there when the request comes.
func agentsPage(found hub.Page) http.HandlerFunc {
	p := templates.Page{Title: "Agents", Path: "/agents", PortalName: "floor", PortalHandle: "floor.example", CanSignUp: true, Version: "floor"}
	v := templates.AgentsView{Total: found.Total}
	for _, r := range found.Results {
		a := r.Agent
		c := templates.AgentCard{Ref: a.Name, Title: a.Title, Handle: a.Name + "@floor.example", Description: a.Description, Kind: string(a.Kind),
			Provenance: templates.Provenance{Verified: true, Live: string(a.Liveness.State)}, Tags: a.Tags()}
		for _, s := range a.Skills {
			if len(c.Examples) < 2 {
				c.Examples = append(c.Examples, s.Examples...)
			}
		}
		v.Results = append(v.Results, c)
	}
	return func(w http.ResponseWriter, r *http.Request) { render(w, r, templates.Agents(p, v)) }
}
