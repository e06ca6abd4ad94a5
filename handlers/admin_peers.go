package handlers

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/templates"
)

// decisionsShown is how many decisions the list of portals shows.
const decisionsShown = 20

// peerPages declares the operator's pages about other portals.
func (d *Door) peerPages(r chi.Router) {
	r.Get("/admin/peers", d.page(operatorOnly(d.adminPeers)))
	r.Post("/admin/peers", d.page(operatorOnly(d.addPeer)))
	r.Get("/admin/peers/policy", d.page(operatorOnly(d.peerPolicy)))
	r.Post("/admin/peers/policy", d.page(operatorOnly(d.setPeerPolicy)))
	r.Get("/admin/peers/{peer}", d.page(operatorOnly(d.adminPeer)))
	r.Post("/admin/peers/{peer}", d.page(operatorOnly(d.setPeer)))
	r.Post("/admin/peers/{peer}/forget", d.page(operatorOnly(d.forgetPeer)))
	r.Post("/admin/peers/{peer}/release", d.page(operatorOnly(d.releasePeer)))
	r.Post("/admin/peers/{peer}/attest", d.page(operatorOnly(d.attestPeer)))
}

func (d *Door) adminPeers(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showPeers(w, r, actor, http.StatusOK, templates.AdminPeers{})
}

func (d *Door) showPeers(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, v templates.AdminPeers) error {
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
		if fitsPeer(p, q) {
			fits = append(fits, p)
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(states), func(a, b federation.State) int { return stateOrder(a) - stateOrder(b) }) {
		v.States = append(v.States, templates.Option{Value: string(s), Label: fmt.Sprintf("%s (%d)", stateText(s), states[s])})
	}
	sortPeers(fits, "state")
	page, _ := strconv.Atoi(q.Get("page"))
	from := min(max(page, 0)*tablePage, len(fits))
	to := min(from+tablePage, len(fits))
	for _, p := range fits[from:to] {
		v.Rows = append(v.Rows, d.peerRow(p))
	}
	if to < len(fits) {
		v.MoreHref = "/admin/peers?" + url.Values{"page": {strconv.Itoa(max(page, 0) + 1)}, "q": {v.Query}, "state": {v.State}}.Encode()
	}
	v.Advice = d.advice(r, list)
	dht, looked, err := d.dhtView(w, r, actor)
	if err != nil {
		return err
	}
	if v.DHT = dht; code == http.StatusOK {
		code = looked
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

func (d *Door) peerRow(p federation.Peer) templates.PeerRow {
	row := templates.PeerRow{PortalRow: d.portalRow(p), Rule: ruleText(p.Rule.Stand), Note: p.Rule.Note, Faults: faultText(p.Faults), Held: cmp.Or(unshown(p), whole(int64(p.Agents)))}
	if row.Asked {
		row.Held += " of " + whole(int64(p.Listed))
	}
	if p.Rule.Follow != "" {
		row.Rule = strings.TrimPrefix(row.Rule+", its list is followed", ", ")
	}
	row.Href = "/admin/peers/" + url.PathEscape(peerRef(p))
	return row
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

// faultText says what was refused, most first.
func faultText(faults map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(faults), func(a, b string) int { return cmp.Or(faults[b]-faults[a], cmp.Compare(a, b)) })
	parts := make([]string, 0, 3)
	for _, k := range kinds[:min(len(kinds), 3)] {
		parts = append(parts, whole(int64(faults[k]))+" × "+k)
	}
	if len(kinds) > 3 {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

func modeText(p federation.Policy) string {
	text := map[string]string{
		federation.ModeOpen:      "Everybody is let in who is not denied.",
		federation.ModeVouched:   "Portals are let in for whom enough pinned ones vouch.",
		federation.ModeAllowlist: "Only portals are let in that you allow.",
		federation.ModeClosed:    "No other portal is let in.",
	}[p.Mode]
	switch p.Service {
	case federation.ServiceReadOnly:
		text += " This portal is read-only now."
	case federation.ServiceOff:
		text += " This portal is being worked on and deals with nobody now."
	}
	return text
}

// advice is what an operator had better look at.
func (d *Door) advice(r *http.Request, list []federation.Peer) []templates.Advice {
	out := adviceOf(list, d.hub.Coverage(hub.Query{}).Tier == record.TierSummary)
	if e, ok := d.peers.Elsewhere(); ok {
		out = slices.Insert(out, 0, templates.Advice{Text: e.String() + " Stop the copy, then run agentsite keys rotate on the one that stays.",
			Href: "/docs/federation#what-if-a-copy-of-the-portal-runs-elsewhere", Link: "How"})
	}
	if len(list) > tablePage {
		return out
	}
	for _, p := range list {
		f, err := d.peers.Profile(r.Context(), true, peerRef(p))
		if err != nil || p.Rule.Stand != "" {
			continue
		}
		for _, w := range f.Words {
			if by, ok := d.peers.Portal(r.Context(), string(w.By)); ok && by.Rule.Stand == federation.Pin && w.Verdict != record.Vouch {
				out = advise(out, p, cmp.Or(by.Name, by.Host())+", which you pinned, "+verdictWord(w.Verdict)+" "+cmp.Or(p.Name, p.Host())+".", "Decide")
			}
		}
	}
	return out
}

// maxAdvice is how much of it is about single portals.
const maxAdvice = 10

func advise(out []templates.Advice, p federation.Peer, text, link string) []templates.Advice {
	if len(out) < maxAdvice {
		out = append(out, templates.Advice{Text: text, Href: "/admin/peers/" + url.PathEscape(peerRef(p)), Link: link})
	}
	return out
}

// adviceOf is what follows from how portals stand. With summing this portal
// keeps all agents of none of them, as its operator wants it.
func adviceOf(list []federation.Peer, summing bool) (out []templates.Advice) {
	waiting, silent := 0, 0
	for _, p := range list {
		name := cmp.Or(p.Name, p.Host())
		switch {
		case p.State == federation.Quarantined:
			out = advise(out, p, name+" was proved to lie.", "Look at the proof")
		case p.State == federation.Pending:
			if waiting++; waiting <= 3 {
				out = advise(out, p, name+" waits for your word.", "Decide")
			}
		case p.State == federation.Stale && p.Rule.Stand != "":
			out = advise(out, p, name+" has not renewed its word for its agents; nobody finds them. Ask its operator, or forget it.", "Look")
		case p.State == federation.Silent:
			if silent++; p.Rule.Stand == federation.Pin {
				out = advise(out, p, name+" is pinned and does not answer.", "Look")
			}
		case p.Truncated && !summing:
			out = advise(out, p, name+" has more agents than its quota: none are kept here, and each search has to ask it.", "Raise it")
		}
	}
	if waiting > 3 {
		out = append(out, templates.Advice{Text: fmt.Sprintf("%d portals wait for your word.", waiting), Href: "/admin/peers?state=pending", Link: "See them"})
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

func (d *Door) decisionRow(r *http.Request, e federation.Entry) templates.DecisionRow {
	row := templates.DecisionRow{At: moment(e.At), By: e.By, What: actText(e.Act), Subject: e.Subject, Why: e.Why}
	if p, ok := d.peers.Portal(r.Context(), e.Subject); ok {
		row.Subject, row.SubjectHref = cmp.Or(p.Name, p.Host()), "/admin/peers/"+url.PathEscape(peerRef(p))
	} else if e.Act == "peers.policy" {
		row.Subject = ""
	}
	return row
}

func actText(act string) string {
	if text, ok := map[string]string{"peer.add": "Added", "peer.allow": "Allowed", "peer.pin": "Pinned", "peer.deny": "Denied", "peer.undecide": "Left to the policy", "peer.note": "Noted of", "peer.subscribe": "Followed the list of", "peer.unsubscribe": "Stopped following the list of", "peer.quota": "Changed the quota of",
		"peer.forget": "Forgot", "peer.release": "Released", "peer.vouch": "Vouched for", "peer.warn": "Warned of", "peer.block": "Blocked in public", "peers.policy": "Changed the policy"}[act]; ok {
		return text
	}
	return act
}

func (d *Door) addPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	peer, _, err := d.peers.Add(r.Context(), actor, in.Get("url"))
	if err != nil {
		messages, code, ok := d.wrong(w, err)
		if !ok {
			return err
		}
		if messages["url"] == "" {
			messages["url"] = messages[""]
		}
		return d.showPeers(w, r, actor, code, templates.AdminPeers{URL: in.Get("url"), Errors: messages})
	}
	return see(w, r, "/admin/peers/"+url.PathEscape(peerRef(peer)))
}

func (d *Door) adminPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	return d.showPeer(w, r, actor, http.StatusOK, nil, "")
}

// showPeer shows one portal; in is a rule that could not be stored, with what
// is wrong with it in messages, and release why a release was refused.
func (d *Door) showPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor, code int, in *ruleForm, release string) error {
	d.peers.Watch()
	name := peerName(r)
	f, err := d.peers.Profile(r.Context(), true, name)
	if err != nil {
		return err
	}
	pol, err := d.peers.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	p := f.Peer
	v := templates.AdminPeer{PeerRow: d.peerRow(p), Ref: url.PathEscape(peerRef(p)), URL: p.URL, Operator: p.Operator, Known: moment(p.Known), Proved: moment(p.Proved), Stand: p.Rule.Stand, Follow: p.Rule.Follow,
		DefaultAgents: whole(int64(pol.MaxAgents)), CanSpeak: p.ID != "", Refused: p.Refused.After(clock.Now())}
	if p.Rule.MaxAgents > 0 {
		v.MaxAgents = strconv.Itoa(p.Rule.MaxAgents)
	}
	for _, s := range p.Said {
		if p.State == federation.Denied && s.Denies {
			continue // the reason says it
		}
		text := s.Host + ", whose list is followed, " + verdictWord(s.Verdict) + " it"
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		v.Lists = append(v.Lists, text)
	}
	if in != nil {
		v.Follow = in.follow
		v.Stand, v.Note, v.MaxAgents, v.Errors = in.stand, in.note, in.most, in.errors
	}
	switch p.State {
	case federation.Active, federation.Silent, federation.Stale, federation.Quarantined:
		v.Public = p.ID != ""
	}
	for _, word := range f.Words {
		v.Words = append(v.Words, d.wordRow(r, word))
	}
	for _, c := range f.Changes {
		v.Changes = append(v.Changes, templates.ChangeRow{At: moment(c.At), State: string(c.State), StateText: stateText(c.State), Reason: c.Reason})
	}
	proof, err := d.peers.Proof(r.Context(), actor, name)
	switch {
	case err == nil:
		v.Proof = &templates.ForkView{What: recordText(proof.Type), Number: strconv.FormatInt(proof.Version.Seq, 10), Mark: proof.Mark, Error: release,
			A: templates.SaidView{Hash: proof.HashA, Says: proof.A, Issued: moment(proof.Issued), Expires: moment(proof.Expires)},
			B: templates.SaidView{Hash: proof.HashB, Says: proof.B, Issued: moment(proof.IssuedB), Expires: moment(proof.ExpireB)}}
	case !fault.Is(err, fault.NotFound):
		return err
	}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "peers", Peer: &v})
}

// recordText says what a record is, for operators.
func recordText(t record.Type) string {
	switch t {
	case record.TypeHead:
		return "its word for all of its agents,"
	case record.TypeCard:
		return "its card,"
	case record.TypeAgent:
		return "what it says of an agent,"
	}
	return string(t) + ","
}

// ruleForm is a rule as it was typed.
type ruleForm struct {
	stand, follow, note, most string
	errors                    templates.FieldErrors
}

func (d *Door) setPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	typed := &ruleForm{stand: in.Get("policy"), note: in.Get("note"), most: strings.TrimSpace(in.Get("max_agents"))}
	most, err := typedNumber(typed.most, "max_agents")
	if err == nil {
		change := federation.RuleChange{Stand: &typed.stand, Note: &typed.note, MaxAgents: &most}
		if in.Has("follow") {
			typed.follow = in.Get("follow")
			change.Follow = &typed.follow
		}
		_, err = d.peers.SetRule(r.Context(), actor, peerName(r), change)
	}
	if err != nil {
		messages, code, ok := d.wrong(w, err)
		if !ok || fault.Is(err, fault.NotFound) {
			return err
		}
		typed.errors = messages
		return d.showPeer(w, r, actor, code, typed, "")
	}
	return see(w, r, "/admin/peers/"+url.PathEscape(peerName(r)))
}

// typedNumber reads a number that may be left out, with separators or not.
func typedNumber(s, field string) (int, error) {
	if s = strings.NewReplacer(",", "", " ", "", "’", "").Replace(s); s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, &fault.Error{Kind: fault.Invalid, Safe: field + ": must be a whole number", Fields: map[string]string{field: "must be a whole number"}}
	}
	return n, nil
}

func (d *Door) forgetPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if err := d.peers.Forget(r.Context(), actor, peerName(r), in.Get("note")); err != nil {
		return err
	}
	return see(w, r, "/admin/peers")
}

func (d *Door) releasePeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if _, err := d.peers.Release(r.Context(), actor, peerName(r), in.Get("proof"), in.Get("note")); err != nil {
		messages, code, ok := d.wrong(w, err)
		if !ok || messages["proof"] == "" && messages["note"] == "" {
			return err
		}
		return d.showPeer(w, r, actor, code, nil, cmp.Or(messages["note"], "There is another proof by now. Look at it first."))
	}
	return see(w, r, "/admin/peers/"+url.PathEscape(peerName(r)))
}

func (d *Door) attestPeer(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	if err := d.peers.Attest(r.Context(), actor, peerName(r), in.Get("verdict"), in.Get("reason")); err != nil {
		return err
	}
	return see(w, r, "/admin/peers/"+url.PathEscape(peerName(r)))
}

func (d *Door) peerPolicy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	pol, err := d.peers.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	v := policyForm(pol)
	return d.showAdmin(w, r, actor, http.StatusOK, templates.AdminView{Tab: "peers", Policy: &v})
}

// megabyte is what operators count bytes in.
const megabyte = 1 << 20

func policyForm(p federation.Policy) templates.AdminPolicy {
	lines := func(list []string) string { return strings.Join(list, "\n") }
	commas := func(list []string) string { return strings.Join(list, ", ") }
	keys := make([]string, len(p.DenyKeys))
	for i, k := range p.DenyKeys {
		keys[i] = string(k)
	}
	nets := func(list []netip.Prefix) string {
		out := make([]string, len(list))
		for i, n := range list {
			out[i] = n.String()
		}
		return lines(out)
	}
	return templates.AdminPolicy{Mode: p.Mode, Service: p.Service, Export: p.Export.What, Vouchers: strconv.Itoa(p.Vouchers), MaxAgents: strconv.Itoa(p.MaxAgents),
		MaxMegabytes: strconv.FormatInt(p.MaxBytes/megabyte, 10), PerSecond: strconv.Itoa(p.PerSecond), CallsIn: p.CallsIn, CallsOut: p.CallsOut,
		AllowDomains: lines(p.AllowDomains), DenyDomains: lines(p.DenyDomains), DenyKeys: lines(keys), AllowNets: nets(p.AllowNets), DenyNets: nets(p.DenyNets),
		ExportTags: commas(p.Export.Tags), ExportExcept: commas(p.Export.Except), ExportLanguages: commas(p.Export.Languages),
		ImportProtocols: commas(p.Import.Protocols), ImportTags: commas(p.Import.Tags), ImportExcept: commas(p.Import.Except), ImportLanguages: commas(p.Import.Languages)}
}

func (d *Door) setPeerPolicy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := form(w, r)
	if err != nil {
		return err
	}
	pol, err := readPolicy(in)
	if err == nil {
		_, err = d.peers.SetPolicy(r.Context(), actor, pol, in.Get("note"))
	}
	if err == nil {
		return see(w, r, "/admin/peers")
	}
	messages, code, ok := d.wrong(w, err)
	if !ok {
		return err
	}
	v := templates.AdminPolicy{Mode: in.Get("mode"), Service: in.Get("service"), Export: in.Get("export"), Vouchers: in.Get("vouchers"), MaxAgents: in.Get("max_agents"), MaxMegabytes: in.Get("max_megabytes"),
		PerSecond: in.Get("requests_per_second"), CallsIn: in.Get("calls_in") != "", CallsOut: in.Get("calls_out") != "", AllowDomains: in.Get("allow_domains"), DenyDomains: in.Get("deny_domains"), DenyKeys: in.Get("deny_keys"),
		AllowNets: in.Get("allow_networks"), DenyNets: in.Get("deny_networks"), ExportTags: in.Get("export_tags"), ExportExcept: in.Get("export_except"), ExportLanguages: in.Get("export_languages"),
		ImportProtocols: in.Get("import_protocols"), ImportTags: in.Get("import_tags"), ImportExcept: in.Get("import_except"), ImportLanguages: in.Get("import_languages"), Note: in.Get("note"), Errors: messages}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "peers", Policy: &v})
}

// readPolicy reads the form of the policy.
func readPolicy(in url.Values) (p federation.Policy, err error) {
	words := func(name string) []string {
		return strings.FieldsFunc(in.Get(name), func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' || r == ';' })
	}
	var check fault.Check
	number := func(name string) int {
		n, err := typedNumber(in.Get(name), name)
		check.Field(err == nil, name, "must be a whole number")
		return n
	}
	nets := func(name string) []netip.Prefix {
		list, err := federation.ParseNets(words(name))
		if err != nil {
			check.Field(false, name, "%s", fault.As(err).Safe)
		}
		return list
	}
	p = federation.Policy{Mode: in.Get("mode"), Service: in.Get("service"), Vouchers: number("vouchers"), AllowDomains: words("allow_domains"), DenyDomains: words("deny_domains"),
		AllowNets: nets("allow_networks"), DenyNets: nets("deny_networks"), MaxAgents: number("max_agents"), MaxBytes: int64(number("max_megabytes")) * megabyte, PerSecond: number("requests_per_second"),
		CallsIn: in.Get("calls_in") != "", CallsOut: in.Get("calls_out") != "",
		Export: federation.Export{What: in.Get("export"), Tags: words("export_tags"), Except: words("export_except"), Languages: words("export_languages")},
		Import: federation.Import{Protocols: words("import_protocols"), Tags: words("import_tags"), Except: words("import_except"), Languages: words("import_languages")}}
	for _, k := range words("deny_keys") {
		p.DenyKeys = append(p.DenyKeys, record.KeyID(k))
	}
	return p, check.Err()
}
