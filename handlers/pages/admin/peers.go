package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/api"
	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/templates"
)

// decisionsShown is the number of recent decisions that the list of portals shows.
const decisionsShown = 20

// declarePeers declares the routes of the operator's pages about other portals.
func (d *Pages) declarePeers(r chi.Router) {
	r.Get("/admin/peers", d.site.Page(operatorOnly(d.adminPeers)))
	r.Post("/admin/peers", changing(d, d.addPeer))
	r.Get("/admin/peers/policy", d.site.Page(operatorOnly(d.peerPolicy)))
	r.Post("/admin/peers/policy", changing(d, d.setPeerPolicy))
	r.Get("/admin/peers/{peer}", d.site.Page(operatorOnly(d.adminPeer)))
	r.Post("/admin/peers/{peer}", changing(d, d.setPeer))
	r.Post("/admin/peers/{peer}/forget", changing(d, d.forgetPeer))
	r.Post("/admin/peers/{peer}/release", changing(d, d.releasePeer))
	r.Post("/admin/peers/{peer}/attest", changing(d, d.attestPeer))
}

func (d *Pages) adminPeers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showPeers(w, r, actor, http.StatusOK, templates.AdminPeers{})
}

func (d *Pages) showPeers(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int,
	v templates.AdminPeers) error {
	d.peers.Watch()
	list, err := d.peers.List(r.Context(), actor)
	if err != nil {
		return err
	}
	pol, err := d.peers.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	v.Query, v.State = strings.TrimSpace(q.Get("q")), q.Get("state")
	v.Mode = modeText(pol)
	states := map[federation.State]int{}
	var fits []federation.Peer
	for _, p := range list {
		states[p.State]++
		if api.FitsPeer(p, q) {
			fits = append(fits, p)
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(states),
		func(a, b federation.State) int { return stateOrder(a) - stateOrder(b) }) {
		v.States = append(v.States, templates.Option{Value: string(s),
			Label: fmt.Sprintf("%s (%d)", stateText(s), states[s])})
	}
	sortPeers(fits, "state")
	page, _ := strconv.Atoi(q.Get("page"))
	from := min(max(page, 0)*tablePage, len(fits))
	to := min(from+tablePage, len(fits))
	for _, p := range fits[from:to] {
		v.Rows = append(v.Rows, d.peerRow(p))
	}
	if to < len(fits) {
		v.MoreHref = "/admin/peers?" + url.Values{"page": {strconv.Itoa(max(page, 0) + 1)}, "q": {v.Query},
			"state": {v.State}}.Encode()
	}
	v.Advice = d.advice(r, list)
	dht, looked, err := d.dhtView(w, r, actor)
	if err != nil {
		return err
	}
	if v.DHT = dht; code == http.StatusOK {
		code = looked
	}
	trace, followed, err := d.traceView(r)
	if err != nil {
		return err
	}
	if v.Trace = trace; code == http.StatusOK {
		code = followed
	}
	if v.Gossip, err = d.gossipView(r, actor); err != nil {
		return err
	}
	before, _ := strconv.ParseInt(q.Get("before"), 10, 64)
	decisions, err := d.peers.Decisions(r.Context(), actor, before, decisionsShown)
	if err != nil {
		return err
	}
	for _, e := range decisions {
		v.Decisions = append(v.Decisions, d.decisionRow(r, e))
	}
	if len(decisions) == decisionsShown {
		v.OlderHref = "/admin/peers?before=" + strconv.FormatInt(decisions[len(decisions)-1].ID, 10)
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "peers", Peers: &v})
}

func (d *Pages) peerRow(p federation.Peer) templates.PeerRow {
	row := templates.PeerRow{PortalRow: d.portalRow(p), Rule: ruleText(p.Rule.Stand), Note: p.Rule.Note,
		Faults: faultText(p.Faults), Held: cmp.Or(unshown(p), pages.FormatNumber(int64(p.Agents)))}
	if row.Asked {
		row.Held += " of " + pages.FormatNumber(int64(p.Listed))
	}
	if p.Rule.Follow != "" {
		row.Rule = strings.TrimPrefix(row.Rule+", its list is followed", ", ")
	}
	row.Href, row.Bars = "/admin/peers/"+url.PathEscape(address.PeerRef(p)), barsText(p)
	return row
}

// barsText returns a sentence about a portal that refuses this one, with the explanation that it sent; ""
// if it does not refuse.
func barsText(p federation.Peer) string {
	text := map[federation.Reason]string{
		federation.ReasonDenied:      "It shuts this portal out",
		federation.ReasonPending:     "It has yet to let this portal in",
		federation.ReasonQuarantined: "It holds this portal for a liar",
	}[p.Bars]
	switch {
	case text == "":
		return ""
	case p.BarsWhy == "":
		return text + "."
	}
	return text + ": “" + p.BarsWhy + "”"
}

func ruleText(stand string) string {
	switch stand {
	case federation.Allow:
		return "allowed"
	case federation.Pin:
		return "pinned"
	case federation.Deny:
		return "denied"
	}
	return ""
}

// faultText lists the three most frequent kinds of faults of a portal with their counts.
func faultText(faults map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(faults),
		func(a, b string) int { return cmp.Or(faults[b]-faults[a], cmp.Compare(a, b)) })
	parts := make([]string, 0, 3)
	for _, k := range kinds[:min(len(kinds), 3)] {
		parts = append(parts, pages.FormatNumber(int64(faults[k]))+" × "+k)
	}
	if len(kinds) > 3 {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

func modeText(p federation.Policy) string {
	text := map[string]string{
		federation.ModeOpen:      "All portals are allowed except blocked ones.",
		federation.ModeVouched:   "Portals are allowed if enough pinned portals vouch for them.",
		federation.ModeAllowlist: "Only portals that you allow are allowed.",
		federation.ModeClosed:    "No other portal is allowed.",
	}[p.Mode]
	switch p.Service {
	case federation.ServiceReadOnly:
		text += " This portal is read-only now."
	case federation.ServiceOff:
		text += " This portal is in maintenance and serves no other portal now."
	}
	return text
}

// advice returns recommendations for the operator about the given portals and about this portal's key.
func (d *Pages) advice(r *http.Request, list []federation.Peer) []templates.Advice {
	out := adviceOf(list, d.hub.Coverage(hub.Query{}).Tier == record.TierSummary)
	if e, ok := d.peers.Elsewhere(); ok {
		out = slices.Insert(out, 0, templates.Advice{Text: e.String() +
			" Stop the copy, then run agentsite keys rotate on the one that stays.",
			Href: "/docs/federation#what-if-a-copy-of-the-portal-runs-elsewhere", Link: "How"})
	}
	if len(list) > tablePage {
		return out
	}
	for _, p := range list {
		f, err := d.peers.Profile(r.Context(), true, address.PeerRef(p))
		if err != nil || p.Rule.Stand != "" {
			continue
		}
		for _, w := range f.Words {
			if by, ok := d.peers.Portal(r.Context(), string(w.By)); ok && by.Rule.Stand == federation.Pin &&
				w.Verdict != record.Vouch {
				out = advise(out, p, cmp.Or(by.Name,
					by.Host())+", which you pinned, "+verdictWord(w.Verdict)+" "+cmp.Or(p.Name, p.Host())+".", "Decide")
			}
		}
	}
	return out
}

// maxAdvice bounds the recommendations about single portals, so that a large outage does not fill the
// page.
const maxAdvice = 10

func advise(out []templates.Advice, p federation.Peer, text, link string) []templates.Advice {
	if len(out) < maxAdvice {
		out = append(out, templates.Advice{Text: text, Href: "/admin/peers/" + url.PathEscape(address.PeerRef(p)),
			Link: link})
	}
	return out
}

// adviceOf derives recommendations from the states of portals. summing is true if this portal keeps only
// summaries by its configuration, so that missing records need no advice.
func adviceOf(list []federation.Peer, summing bool) (out []templates.Advice) {
	waiting, silent, barring := 0, 0, 0
	for _, p := range list {
		name := cmp.Or(p.Name, p.Host())
		if text := barsText(p); text != "" && p.State != federation.Denied {
			if barring++; barring <= 3 {
				out = advise(out, p, name+strings.TrimPrefix(text, "It"), "Look")
			}
		}
		switch {
		case p.State == federation.Quarantined:
			out = advise(out, p, name+" was proved to lie.", "Look at the proof")
		case p.State == federation.Pending:
			if waiting++; waiting <= 3 {
				out = advise(out, p, name+" waits for your decision.", "Decide")
			}
		case p.State == federation.Stale && p.Rule.Stand != "":
			out = advise(out, p, name+" has not renewed the signature of its agents, so they are not found. Ask its operator, or remove it.", "Look")
		case p.State == federation.Silent:
			if silent++; p.Rule.Stand == federation.Pin {
				out = advise(out, p, name+" is pinned and does not answer.", "Look")
			}
		case p.Truncated && !summing:
			out = advise(out, p, name+" has more agents than its quota: none are kept here, and each search has to ask it.", "Raise it")
		}
	}
	if waiting > 3 {
		out = append(out, templates.Advice{Text: fmt.Sprintf("%d portals wait for your decision.", waiting),
			Href: "/admin/peers?state=pending", Link: "See them"})
	}
	if barring > 3 {
		out = append(out, templates.Advice{Text: fmt.Sprintf("%d portals refuse this one. If that is new, look at what this portal did: agentsite doctor.", barring)})
	}
	if silent >= 3 && silent*2 >= len(list) {
		out = append(out, templates.Advice{Text: "Half of all portals or more are silent. Look at this portal's own connection and clock first."})
	}
	return out
}

func verdictWord(v string) string {
	if v == record.Warn {
		return "warns of"
	}
	return "blocks"
}

func (d *Pages) decisionRow(r *http.Request, e federation.Entry) templates.DecisionRow {
	row := templates.DecisionRow{At: pages.FormatMoment(e.At), By: e.By, What: actText(e.Act), Subject: e.Subject,
		Why: e.Why}
	if p, ok := d.peers.Portal(r.Context(), e.Subject); ok {
		row.Subject, row.SubjectHref = cmp.Or(p.Name, p.Host()), "/admin/peers/"+url.PathEscape(address.PeerRef(p))
	} else if e.Act == "peers.policy" {
		row.Subject = ""
	}
	return row
}

func actText(act string) string {
	if text, ok := map[string]string{"peer.add": "Added", "peer.allow": "Allowed", "peer.pin": "Pinned",
		"peer.deny": "Denied", "peer.undecide": "Left to the policy", "peer.note": "Noted of",
		"peer.subscribe": "Followed the list of", "peer.unsubscribe": "Stopped following the list of",
		"peer.quota":  "Changed the quota of",
		"peer.forget": "Forgot", "peer.release": "Released", "peer.vouch": "Vouched for", "peer.warn": "Warned of",
		"peer.block": "Blocked in public", "peers.policy": "Changed the policy"}[act]; ok {
		return text
	}
	return act
}

func (d *Pages) addPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	peer, _, err := d.peers.Add(r.Context(), actor, in.Get("url"))
	if err != nil {
		messages, code, ok := pages.FieldErrors(w, err)
		if !ok {
			return err
		}
		if messages["url"] == "" {
			messages["url"] = messages[""]
		}
		return d.showPeers(w, r, actor, code, templates.AdminPeers{URL: in.Get("url"), Errors: messages})
	}
	return respond.SeeOther(w, r, "/admin/peers/"+url.PathEscape(address.PeerRef(peer)))
}
