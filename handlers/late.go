package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"agentsite/handlers/respond"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// What other portals answer comes later than what is held here. Whoever accepts
// server-sent events gets each answer when it is there: programs as results,
// the page as cards. Others get one answer when all have answered or the time
// is up.

// wantsEvents reports whether a request asks for server-sent events.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// apiSearchEach answers with a page of what is held here, what comes late, and
// at last how many answered.
func (d *Door) apiSearchEach(w http.ResponseWriter, r *http.Request, actor ident.Actor, q hub.Query) error {
	var e *respond.Events
	name := "page"
	err := d.hub.SearchEach(r.Context(), actor, q, func(page hub.Page) (err error) {
		if e == nil {
			if e, err = respond.OpenEvents(w); err != nil {
				return err
			}
		}
		if name == "late" && len(page.Results) == 0 {
			name = "end"
		}
		b, err := d.appendPage([]byte("event: "+name+"\ndata: "), &page)
		if err != nil {
			return err
		}
		name = "late"
		return e.Write(append(b, '\n'))
	})
	return ignoreGone(e, err)
}

// ignoreGone is err unless the answer has begun: who reads it went away, or
// finds that it ends.
func ignoreGone(e *respond.Events, err error) error {
	if e != nil {
		return nil
	}
	return err
}

// lateJSON is what a page is told of answers that come late.
type lateJSON struct {
	// HTML are cards, Count how many there are so far, in words.
	HTML  string `json:"html,omitempty"`
	Count string `json:"count"`
	// Coverage is that of the whole search, of the last event.
	Coverage string `json:"coverage,omitempty"`
}

// browseEach sends a page the cards of what other portals have.
func (d *Door) browseEach(w http.ResponseWriter, r *http.Request, actor ident.Actor, q hub.Query) error {
	var e *respond.Events
	first, n := true, 0
	err := d.hub.SearchEach(r.Context(), actor, q, func(page hub.Page) (err error) {
		if first { // the page has it
			first = false
			e, err = respond.OpenEvents(w)
			return err
		}
		var event string
		var out lateJSON
		n += len(page.Results)
		if event, out.Count = "late", countOf(n, "more agent", "more agents"); len(page.Results) == 0 {
			event, out.Coverage = "end", coverageText(page.Coverage)
			if n == 0 {
				out.Count = "No more agents"
			}
			out.Count += " from other portals"
			if s := len(page.Coverage.Silent); s > 0 {
				out.Count += fmt.Sprintf("; %s did not answer", countOf(s, "portal", "portals"))
			}
		} else {
			buf := newBuffer()
			defer freeBuffer(buf)
			if err := templates.AgentItems(d.cards(page.Results), 4).Render(r.Context(), buf); err != nil {
				return err
			}
			out.HTML = buf.String()
		}
		b, err := json.Marshal(out)
		if err != nil {
			return err
		}
		return e.Write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, b))
	})
	return ignoreGone(e, err)
}

// cards shows results.
func (d *Door) cards(list []hub.Result) []templates.AgentCard {
	out := make([]templates.AgentCard, len(list))
	for i, res := range list {
		out[i] = d.card(res.Agent, res.Matched...)
		out[i].Why = why(res.Why)
		if res.Copies > 0 {
			out[i].Copies, out[i].CopiesHref = countOf(res.Copies, "other portal", "other portals"), sameAs(res.Agent.Handle())
		}
	}
	return out
}

// lateView is how a page asks the other portals: with scripts by itself, else
// when somebody follows the link, which waits for them.
func lateView(f filters, asking int) *templates.LateView {
	v := f.values()
	at := browseAddress(v)
	v.Set("wait", "1")
	return &templates.LateView{Portals: countOf(asking, "other portal", "other portals"), Href: at, WaitHref: "/agents?" + v.Encode()}
}

// waits reports whether a page was asked to wait for other portals.
func waits(v url.Values) bool { return v.Get("wait") != "" }
