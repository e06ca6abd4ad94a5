package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/templates"
)

const (
	tablePage    = 100
	portalAgents = 12
)

// network shows the known portals as a map and a table. With part=live the answer contains only the parts
// that change, which the page's script replaces.
func (d *Pages) network(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	d.peers.Watch()
	net := d.peers.Map(r.Context())
	work := map[string]int{}
	if d.teams != nil && actor.IsPerson() {
		var err error
		if work, err = d.teams.WorkByPortal(r.Context(), actor); err != nil {
			return err
		}
	}
	v := d.networkPage(net, r.URL.Query(), work)
	if r.URL.Query().Get("part") == "live" {
		return d.site.Render(w, r, http.StatusOK, templates.NetworkLive(v))
	}
	p := d.site.Frame(r, actor, "Network")
	p.Description = "The portals that " + d.portal.Name() + " finds agents on, and how they are doing."
	return d.site.Render(w, r, http.StatusOK, templates.Network(p, v))
}

// networkPage returns the page. work has the number of the viewer's tasks at agents of each portal, by its id.
func (d *Pages) networkPage(net federation.Network, q url.Values, work map[string]int) templates.NetworkPage {
	v := templates.NetworkPage{Query: strings.TrimSpace(q.Get("q")), State: q.Get("state"), Sort: q.Get("sort"),
		Portals: 1 + len(net.Portals), Agents: pages.FormatNumber(int64(net.Agents))}
	states := map[federation.State]int{}
	self := d.portalRow(net.Self)
	self.Self, self.Href, self.Host, self.Name = true, "/about", d.portal.Host, d.portal.Name()
	rows := []templates.PortalRow{self}
	var fits []federation.Peer
	for _, p := range net.Portals {
		states[p.State]++
		if api.FitsPeer(p, q) {
			fits = append(fits, p)
		}
	}
	v.Answering = 1 + states[federation.Active]
	for _, s := range []federation.State{federation.Active, federation.Silent, federation.Stale,
		federation.Quarantined} {
		if states[s] > 0 {
			v.States = append(v.States, templates.Option{Value: string(s),
				Label: fmt.Sprintf("%s (%d)", stateText(s), states[s])})
		}
	}
	sortPeers(fits, v.Sort)
	page, _ := strconv.Atoi(q.Get("page"))
	from := min(max(page, 0)*tablePage, len(fits))
	to := min(from+tablePage, len(fits))
	if v.Query != "" || v.State != "" || from > 0 {
		rows = nil // the row of this portal is shown on the first, unfiltered page only
	}
	for _, p := range fits[from:to] {
		rows = append(rows, withWork(d.portalRow(p), work))
	}
	v.Rows = rows
	if to < len(fits) {
		more := url.Values{"page": {strconv.Itoa(max(page, 0) + 1)}}
		for _, k := range []string{"q", "state", "sort"} {
			if s := q.Get(k); s != "" {
				more.Set(k, s)
			}
		}
		v.MoreHref = "/network?" + more.Encode()
	}
	v.Map, v.SmallMap = d.mapViews(net, self, work)
	return v
}

// sortPeers sorts portals by a column of the table. The sort is stable, and the portals are sorted by
// host before.
func sortPeers(list []federation.Peer, by string) {
	slices.SortStableFunc(list, func(a, b federation.Peer) int {
		switch by {
		case "agents":
			return cmp.Compare(agentsOf(b), agentsOf(a))
		case "state":
			return cmp.Compare(stateOrder(a.State), stateOrder(b.State))
		case "rtt":
			return cmp.Compare(cmp.Or(a.RTT, time.Hour), cmp.Or(b.RTT, time.Hour))
		case "seen":
			return b.LastSeen.Compare(a.LastSeen)
		case "name":
			return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
		}
		return 0
	})
}

// stateOrder returns the rank of a state: portals that need the operator's attention come first.
func stateOrder(s federation.State) int {
	return slices.Index([]federation.State{federation.Quarantined, federation.Pending, federation.Denied,
		federation.Stale, federation.Silent, federation.Joining, federation.Active}, s)
}

func stateText(s federation.State) string {
	switch s {
	case federation.Active:
		return "answers"
	case federation.Silent:
		return "silent"
	case federation.Stale:
		return "gone for long"
	case federation.Quarantined:
		return "proved to lie"
	case federation.Pending:
		return "waits"
	case federation.Denied:
		return "shut out"
	}
	return "joining"
}

// agentsOf returns the number of agents of a portal. For a portal that is not fully replicated it is the
// number in the portal's own head.
func agentsOf(p federation.Peer) int {
	if p.Partly() && unshown(p) == "" {
		return p.Listed
	}
	return p.Agents
}

// unshown returns a text about the agents of a portal that this portal neither shows nor asks, with the
// reason; "" if it does.
func unshown(p federation.Peer) string {
	why := ""
	switch p.State {
	case federation.Denied:
		why = "while it is shut out"
	case federation.Pending:
		why = "while it waits"
	case federation.Quarantined:
		why = "until an operator has looked at the proof"
	default:
		return ""
	}
	if p.Agents == 0 {
		return "none is kept, shown or asked here " + why
	}
	return pages.FormatNumber(int64(p.Agents)) + " kept here, none shown or asked " + why
}

func (d *Pages) portalRow(p federation.Peer) templates.PortalRow {
	row := templates.PortalRow{ID: string(p.ID), Host: p.Host(), Name: cmp.Or(p.Name, p.Host()),
		Href: address.NetworkPath(p), State: string(p.State), StateText: stateText(p.State), Reason: p.Reason,
		Agents: pages.FormatNumber(int64(agentsOf(p))), RTT: pages.FormatLatency(p.RTT),
		Seen: pages.FormatMoment(p.LastSeen), Version: p.Version}
	if p.State == federation.Silent || p.State == federation.Stale {
		row.RTT = "" // the last measured time says nothing about a portal that does not answer
	}
	row.Unshown = unshown(p)
	row.Asked = p.Partly() && row.Unshown == ""
	if p.Lag > 0 {
		row.Lag = pages.FormatSpan(p.Lag)
	}
	if !p.HeadIssued.IsZero() {
		row.HeadAge = pages.FormatSpan(clock.Now().Sub(p.HeadIssued))
	}
	return row
}

// withWork returns the row of a portal with the viewer's tasks at its agents.
func withWork(row templates.PortalRow, work map[string]int) templates.PortalRow {
	if n := work[row.ID]; n > 0 {
		row.Work = pages.FormatCounted(n, "task", "tasks") + " of your goals there now"
	}
	return row
}

// shorten cuts a text to n runes, the last of which becomes an ellipsis.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// shortenHost cuts a name like shorten. If it is a host with a port, the port stays, because portals on one machine differ
// by it alone.
func shortenHost(s string, n int) string {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || len(s)-i > 6 || utf8.RuneCountInString(s) <= n {
		return shorten(s, n)
	}
	return shorten(s[:i], n-(len(s)-i)) + s[i:]
}

// portalPage shows one portal to every visitor. Only the operator sees what the portal's records do not
// publish.
func (d *Pages) portalPage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	d.peers.Watch()
	f, err := d.peers.Profile(r.Context(), actor.IsOperator(), request.PathParam(r, "peer"))
	if err != nil {
		return err
	}
	v := templates.PortalView{PortalRow: d.portalRow(f.Peer), URL: f.URL, Operator: f.Operator, Contact: f.Contact,
		Since: pages.FormatMoment(f.Known), Proved: pages.FormatMoment(f.Proved), Tier: tierText(f.Tier),
		Head: pages.FormatMoment(f.HeadIssued), HeadEnds: pages.FormatMoment(f.HeadExpires),
		AgentsHref: "/agents?" + url.Values{"portal": {f.Host()}}.Encode()}
	if !f.Proved.IsZero() {
		v.ProvedAge = pages.FormatSpan(clock.Now().Sub(f.Proved))
	}
	for _, k := range f.Keys {
		v.Keys = append(v.Keys, string(k))
	}
	if actor.IsOperator() {
		v.AdminHref = "/admin/peers/" + url.PathEscape(address.PeerRef(f.Peer))
	}
	for _, word := range f.Words {
		v.Words = append(v.Words, d.wordRow(r, word))
	}
	for _, c := range f.Changes {
		v.Changes = append(v.Changes, templates.ChangeRow{At: pages.FormatMoment(c.At), State: string(c.State),
			StateText: stateText(c.State), Reason: c.Reason})
	}
	if f.State == federation.Active || f.State == federation.Silent {
		found, err := d.hub.Search(r.Context(), actor, hub.Query{Portals: []string{f.Host()}, Limit: portalAgents})
		if err != nil {
			return err
		}
		v.Found = found.Total
		for _, res := range found.Results {
			v.AgentCards = append(v.AgentCards, d.site.Card(res.Agent))
		}
	}
	p := d.site.Frame(r, actor, v.Name)
	return d.site.Render(w, r, http.StatusOK, templates.Portal(p, v))
}

func (d *Pages) wordRow(r *http.Request, w federation.Word) templates.WordRow {
	row := templates.WordRow{Verdict: verdictText(w.Verdict), Kind: w.Verdict, Reason: w.Reason,
		At: pages.FormatMoment(w.Issued), By: shorten(string(w.By), 14)}
	if p, ok := d.peers.Portal(r.Context(), string(w.By)); ok {
		row.By, row.ByHref = cmp.Or(p.Name, p.Host()), address.NetworkPath(p)
	} else if self := d.peers.Map(r.Context()).Self; self.ID == w.By {
		row.By, row.ByHref = d.portal.Name(), "/about"
	}
	return row
}

func verdictText(v string) string {
	switch v {
	case record.Vouch:
		return "vouches for it"
	case record.Warn:
		return "warns of it"
	}
	return "blocks it"
}

func tierText(t string) string {
	switch t {
	case record.TierReplica:
		return "keeps all that others publish"
	case record.TierSummary:
		return "keeps summaries of others"
	case record.TierIndex:
		return "keeps all it can and answers for others"
	case record.TierLeaf:
		return "cannot be reached from outside"
	}
	return ""
}
