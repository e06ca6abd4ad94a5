package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"agentsite/handlers/pages"
	"agentsite/handlers/respond"
	"agentsite/handlers/search"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// Streaming search: other portals answer later than this one. A client that accepts server-sent events
// gets each portal's results as they arrive: programs as JSON, the page's script as HTML cards. Other
// clients get one answer when all portals have answered or the time is up.

// lateJSON is an event of the streaming search for the page's script.
type lateJSON struct {
	// HTML holds cards of agents. Count says in words how many cards arrived so far.
	HTML  string `json:"html,omitempty"`
	Count string `json:"count"`
	// Coverage describes the whole search; it is set in the last event only.
	Coverage string `json:"coverage,omitempty"`
}

// browseEach streams the cards of agents on other portals to the page's script.
func (d *Directory) browseEach(w http.ResponseWriter, r *http.Request, actor ident.Actor, q hub.Query) error {
	var e *respond.Events
	first, n := true, 0
	err := d.searches.SearchEach(r.Context(), actor, q, func(page hub.Page) (err error) {
		if first { // the first call has the local results, which the page contains already
			first = false
			e, err = respond.OpenEvents(w)
			return err
		}
		var event string
		var out lateJSON
		n += len(page.Results)
		if event, out.Count = "late", pages.FormatCounted(n, "more agent", "more agents"); len(page.Results) == 0 {
			event, out.Coverage = "end", search.CoverageText(page.Coverage)
			if n == 0 {
				out.Count = "No more agents"
			}
			out.Count += " from other portals"
			if s := len(page.Coverage.Silent); s > 0 {
				out.Count += fmt.Sprintf("; %s did not answer", pages.FormatCounted(s, "portal", "portals"))
			}
		} else {
			buf := respond.NewBuffer()
			defer respond.FreeBuffer(buf)
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
	return respond.IgnoreGone(e, err)
}

func (d *Directory) cards(list []hub.Result) []templates.AgentCard {
	out := make([]templates.AgentCard, len(list))
	for i, res := range list {
		out[i] = d.site.Card(res.Agent, res.Matched...)
		out[i].Why, out[i].Users = matchReason(res.Why), res.Users
	}
	return out
}

// lateView returns the part of the page that asks the other portals: a script does so at once, and
// without scripts a link leads to a page that waits for the answers.
func lateView(f search.Filters, asking int) *templates.LateView {
	v := f.Values()
	at := search.BrowseAddress(v)
	v.Set("wait", "1")
	return &templates.LateView{Portals: pages.FormatCounted(asking, "other portal", "other portals"), Href: at,
		WaitHref: "/agents?" + v.Encode()}
}

// waits reports whether the request asks for a page that waits for other portals.
func waits(v url.Values) bool { return v.Get("wait") != "" }
