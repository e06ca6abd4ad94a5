package api

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/address"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
)

type peerJSON struct {
	// ID is the peer's network id, or the host as long as the peer has not answered.
	ID         string           `json:"id"`
	URL        string           `json:"url"`
	Name       string           `json:"name"`
	Operator   string           `json:"operator,omitempty"`
	Contact    string           `json:"contact,omitempty"`
	State      federation.State `json:"state"`
	Reason     string           `json:"reason,omitempty"`
	Version    string           `json:"version"`
	Tier       string           `json:"tier"`
	RTTMS      float64          `json:"rtt_ms"`
	Agents     int              `json:"agents"`
	Listed     int              `json:"listed"`
	Truncated  bool             `json:"truncated,omitempty"`
	KnownAt    string           `json:"known_at"`
	ProvedAt   string           `json:"proved_at"`
	LastSeen   string           `json:"last_seen"`
	Lag        float64          `json:"lag"` // replication lag in seconds
	HeadAt     string           `json:"head_at"`
	HeadEndsAt string           `json:"head_ends_at"`
	Policy     string           `json:"policy"`
	Note       string           `json:"note,omitempty"`
	MaxAgents  int              `json:"max_agents"`
	MaxBytes   int64            `json:"max_bytes"`
	Faults     map[string]int   `json:"faults"`
	// Refuses is the reason for which the peer refuses requests of this portal: denied, pending or
	// quarantined. RefusesWhy is the explanation that the peer sent.
	Refuses    federation.Reason `json:"refuses,omitempty"`
	RefusesWhy string            `json:"refuses_why,omitempty"`
	// Follow says how this portal uses the peer's published lists about other portals. Said holds the
	// entries about this peer in the lists that are followed.
	Follow string         `json:"follow,omitempty"`
	Said   []listSaidJSON `json:"said,omitempty"`
}

type listSaidJSON struct {
	Portal  string `json:"portal"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	Denies  bool   `json:"denies"`
}

func newPeerJSON(p federation.Peer) peerJSON {
	j := peerJSON{ID: address.PeerRef(p), URL: p.URL, Name: p.Name, Operator: p.Operator, Contact: p.Contact,
		State: p.State, Reason: p.Reason, Version: p.Version, Tier: p.Tier,
		RTTMS: float64(p.RTT.Microseconds()) / 1000, Agents: p.Agents, Listed: p.Listed, Truncated: p.Truncated,
		KnownAt: respond.FormatTime(p.Known), ProvedAt: respond.FormatTime(p.Proved),
		LastSeen: respond.FormatTime(p.LastSeen), Lag: float64(p.Lag.Milliseconds()) / 1000,
		HeadAt: respond.FormatTime(p.HeadIssued), HeadEndsAt: respond.FormatTime(p.HeadExpires),
		Policy: p.Rule.Stand, Note: p.Rule.Note, MaxAgents: p.Rule.MaxAgents, MaxBytes: p.Rule.MaxBytes,
		Faults: p.Faults, Refuses: p.Bars, RefusesWhy: p.BarsWhy, Follow: p.Rule.Follow}
	for _, s := range p.Said {
		j.Said = append(j.Said, listSaidJSON{s.Host, s.Verdict, s.Reason, s.Denies})
	}
	if j.Faults == nil {
		j.Faults = map[string]int{}
	}
	return j
}

// peerBody changes the policy for one peer. Nil fields stay unchanged.
type peerBody struct {
	Policy    *string `json:"policy"`
	Note      *string `json:"note"`
	MaxAgents *int    `json:"max_agents"`
	MaxBytes  *int64  `json:"max_bytes"`
	Follow    *string `json:"follow"`
}

func (b peerBody) change() federation.RuleChange {
	return federation.RuleChange{Stand: b.Policy, Note: b.Note, MaxAgents: b.MaxAgents, MaxBytes: b.MaxBytes,
		Follow: b.Follow}
}

type addPeerBody struct {
	URL string `json:"url"`
}

type addedPeerJSON struct {
	Peer  peerJSON `json:"peer"`
	Found string   `json:"found"`
}

type releaseBody struct {
	Proof string `json:"proof"`
	Note  string `json:"note"`
}

type attestBody struct {
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

type peerProofJSON struct {
	Type    record.Type     `json:"type"`
	About   string          `json:"about,omitempty"`
	Epoch   int64           `json:"epoch"`
	Seq     int64           `json:"seq"`
	Mark    string          `json:"proof"`
	Records []saidTwiceJSON `json:"records"`
}

type saidTwiceJSON struct {
	Hash      string `json:"hash,omitempty"`
	Says      string `json:"says"`
	Record    string `json:"record,omitempty"`
	IssuedAt  string `json:"issued_at"`
	ExpiresAt string `json:"expires_at"`
}

type decisionJSON struct {
	ID      int64  `json:"id"`
	At      string `json:"at"`
	By      string `json:"by"`
	Act     string `json:"act"`
	Subject string `json:"subject"`
	Note    string `json:"note,omitempty"`
}

// policyBody is the policy for all peers, or a change of it: nil fields stay unchanged.
type policyBody struct {
	Mode         *string            `json:"mode"`
	Vouchers     *int               `json:"vouchers"`
	Service      *string            `json:"service"`
	AllowDomains *[]string          `json:"allow_domains"`
	DenyDomains  *[]string          `json:"deny_domains"`
	DenyKeys     *[]record.KeyID    `json:"deny_keys"`
	AllowNets    *[]string          `json:"allow_networks"`
	DenyNets     *[]string          `json:"deny_networks"`
	MaxAgents    *int               `json:"max_agents"`
	MaxBytes     *int64             `json:"max_bytes"`
	PerSecond    *int               `json:"requests_per_second"`
	CallsIn      *bool              `json:"calls_in"`
	CallsOut     *bool              `json:"calls_out"`
	Export       *federation.Export `json:"export"`
	Import       *federation.Import `json:"import"`
	Note         string             `json:"note"`
}

func (b policyBody) apply(p *federation.Policy) error {
	set(&p.Mode, b.Mode)
	set(&p.Vouchers, b.Vouchers)
	set(&p.Service, b.Service)
	set(&p.AllowDomains, b.AllowDomains)
	set(&p.DenyDomains, b.DenyDomains)
	set(&p.DenyKeys, b.DenyKeys)
	set(&p.MaxAgents, b.MaxAgents)
	set(&p.MaxBytes, b.MaxBytes)
	set(&p.PerSecond, b.PerSecond)
	set(&p.CallsIn, b.CallsIn)
	set(&p.CallsOut, b.CallsOut)
	set(&p.Export, b.Export)
	set(&p.Import, b.Import)
	for field, n := range map[string]struct {
		to   *[]netip.Prefix
		from *[]string
	}{"allow_networks": {&p.AllowNets, b.AllowNets}, "deny_networks": {&p.DenyNets, b.DenyNets}} {
		if n.from == nil {
			continue
		}
		list, err := federation.ParseNets(*n.from)
		if err != nil {
			return fault.Field(field, fault.As(err).Safe)
		}
		*n.to = list
	}
	return nil
}

// set stores *from in *to, unless from is nil.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Peers has the API's routes about peers, for the operator. It is separate from API because the command
// line uses it with the database alone, without a running portal.
type Peers struct {
	service *federation.Peers
}

// PeersAs returns a handler that answers the requests about peers as the given actor and checks no
// credentials. It is for the command line: its user can read the data folder, and so has all rights
// already.
func PeersAs(service *federation.Peers, actor ident.Actor, log *slog.Logger) http.Handler {
	r := chi.NewRouter()
	p := Peers{service}
	p.routes(r, func(h request.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r, actor); err != nil {
				respond.Error(w, r, log, err)
			}
		}
	})
	r.NotFound(func(w http.ResponseWriter, r *http.Request) { respond.Error(w, r, log, noRoute("")) })
	return r
}

func (p Peers) routes(r chi.Router, adapt func(request.Handler) http.HandlerFunc) {
	r.Get("/peers", adapt(p.list))
	r.Post("/peers", adapt(p.add))
	r.Get("/peers/policy", adapt(p.policy))
	r.Patch("/peers/policy", adapt(p.setPolicy))
	r.Get("/peers/decisions", adapt(p.decisions))
	r.Get("/peers/dht", adapt(p.dht))
	r.Get("/peers/gossip", adapt(p.gossip))
	r.Get("/peers/dht/lookup", adapt(p.lookup))
	r.Get("/peers/{peer}", adapt(p.get))
	r.Patch("/peers/{peer}", adapt(p.set))
	r.Delete("/peers/{peer}", adapt(p.forget))
	r.Get("/peers/{peer}/proof", adapt(p.proof))
	r.Post("/peers/{peer}/release", adapt(p.release))
	r.Post("/peers/{peer}/attest", adapt(p.attest))
}

// list lists the peers by host. ?state= and ?q= restrict the list, see FitsPeer.
func (p Peers) list(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := peerLimit(r, 100, 1000)
	if err != nil {
		return err
	}
	all, err := p.service.List(r.Context(), actor)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	after, err := base64.RawURLEncoding.DecodeString(q.Get("cursor"))
	if err != nil {
		return fault.Field("cursor", "is not a cursor of this list")
	}
	out, next, last := []peerJSON{}, "", ""
	for _, peer := range all {
		key := peer.Host() + " " + string(peer.ID)
		if len(after) > 0 && key <= string(after) || !FitsPeer(peer, q) {
			continue
		}
		if len(out) == int(limit) {
			next = base64.RawURLEncoding.EncodeToString([]byte(last))
			break
		}
		out, last = append(out, newPeerJSON(peer)), key
	}
	respond.JSON(w, http.StatusOK, map[string]any{"peers": out, "next_cursor": next})
	return nil
}

// peerLimit returns ?limit=, by default usual, and an error unless it is from 1 to most.
func peerLimit(r *http.Request, usual, most int64) (int64, error) {
	n, err := request.QueryInt(r, "limit", usual)
	if err == nil && (n < 1 || n > most) {
		text := fmt.Sprintf("use 1 to %d", most)
		err = fault.Field("limit", text)
	}
	return n, err
}

// FitsPeer reports whether a peer has the state in ?state= and contains the text in ?q= in its name,
// address, id or operator. Missing parameters match every peer.
func FitsPeer(p federation.Peer, q url.Values) bool {
	if s := q.Get("state"); s != "" && string(p.State) != s {
		return false
	}
	text := strings.ToLower(strings.TrimSpace(q.Get("q")))
	return text == "" || strings.Contains(strings.ToLower(p.Name+" "+p.URL+" "+string(p.ID)+" "+p.Operator), text)
}

func PeerName(r *http.Request) string { return request.PathParam(r, "peer") }

func (p Peers) get(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	peer, err := p.service.Get(r.Context(), actor, PeerName(r))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newPeerJSON(peer))
	return nil
}

// add contacts the portal at the address in {url} and adds it as a peer.
func (p Peers) add(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in addPeerBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	peer, found, err := p.service.Add(r.Context(), actor, in.URL)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/peers/"+url.PathEscape(address.PeerRef(peer)))
	respond.JSON(w, http.StatusCreated, addedPeerJSON{newPeerJSON(peer), found})
	return nil
}

func (p Peers) set(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in peerBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	peer, err := p.service.SetRule(r.Context(), actor, PeerName(r), in.change())
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newPeerJSON(peer))
	return nil
}

func (p Peers) forget(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	if err := p.service.Forget(r.Context(), actor, PeerName(r), r.URL.Query().Get("note")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (p Peers) proof(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	f, err := p.service.Proof(r.Context(), actor, PeerName(r))
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, peerProofJSON{f.Type, f.About, f.Version.Epoch, f.Version.Seq, f.Mark,
		[]saidTwiceJSON{
			{f.HashA, f.A, f.WireA, respond.FormatTime(f.Issued), respond.FormatTime(f.Expires)},
			{f.HashB, f.B, f.WireB, respond.FormatTime(f.IssuedB), respond.FormatTime(f.ExpireB)}}})
	return nil
}

func (p Peers) release(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in releaseBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	peer, err := p.service.Release(r.Context(), actor, PeerName(r), in.Proof, in.Note)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, newPeerJSON(peer))
	return nil
}

func (p Peers) attest(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in attestBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	if err := p.service.Attest(r.Context(), actor, PeerName(r), in.Verdict, in.Reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (p Peers) policy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	pol, err := p.service.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, pol.Filled())
	return nil
}

func (p Peers) setPolicy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	var in policyBody
	if err := request.DecodeBody(w, r, &in); err != nil {
		return err
	}
	pol, err := p.service.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	if err := in.apply(&pol); err != nil {
		return err
	}
	if pol, err = p.service.SetPolicy(r.Context(), actor, pol, in.Note); err != nil {
		return err
	}
	respond.JSON(w, http.StatusOK, pol.Filled())
	return nil
}

// decisions lists the operators' decisions about portals, newest first, for an audit.
func (p Peers) decisions(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	limit, err := peerLimit(r, 50, 100)
	if err != nil {
		return err
	}
	before, err := request.QueryInt(r, "cursor", 0)
	if err != nil {
		return err
	}
	list, err := p.service.Decisions(r.Context(), actor, before, int(limit))
	if err != nil {
		return err
	}
	out, next := make([]decisionJSON, len(list)), ""
	for i, e := range list {
		out[i] = decisionJSON{e.ID, respond.FormatTime(e.At), e.By, e.Act, e.Subject, e.Why}
	}
	if len(list) == int(limit) {
		next = strconv.FormatInt(list[len(list)-1].ID, 10)
	}
	respond.JSON(w, http.StatusOK, map[string]any{"decisions": out, "next_cursor": next})
	return nil
}

type networkMapJSON struct {
	Portals    []networkPeerJSON `json:"portals"`
	Links      []networkLinkJSON `json:"links"`
	Known      int               `json:"known"`
	Agents     int               `json:"agents"`
	NextCursor string            `json:"next_cursor"`
}

type networkPeerJSON struct {
	ID       string           `json:"id"`
	URL      string           `json:"url"`
	Name     string           `json:"name"`
	Self     bool             `json:"self,omitempty"`
	State    federation.State `json:"state"`
	Reason   string           `json:"reason,omitempty"`
	Version  string           `json:"version"`
	Tier     string           `json:"tier"`
	Agents   int              `json:"agents"`
	RTTMS    float64          `json:"rtt_ms"`
	LastSeen string           `json:"last_seen"`
	HeadAt   string           `json:"head_at"`
	Lag      float64          `json:"lag"`
}

type networkLinkJSON struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func newNetworkPeerJSON(p federation.Peer) networkPeerJSON {
	j := newPeerJSON(p)
	return networkPeerJSON{ID: string(p.ID), URL: j.URL, Name: j.Name, State: j.State, Reason: j.Reason,
		Version: j.Version, Tier: j.Tier, Agents: j.Agents,
		RTTMS: j.RTTMS, LastSeen: j.LastSeen, HeadAt: j.HeadAt, Lag: j.Lag}
}

// apiNetwork lists this portal and then the peers in the network map. Every caller may read the list.
func (d *API) apiNetwork(w http.ResponseWriter, r *http.Request, _ ident.Actor) error {
	limit, err := peerLimit(r, 500, 1000)
	if err != nil {
		return err
	}
	skip, err := request.QueryInt(r, "cursor", 0)
	if err != nil {
		return err
	}
	d.peers.Watch()
	net := d.peers.Map(r.Context())
	self := newNetworkPeerJSON(net.Self)
	self.Self, self.Version = true, d.portal.Version
	all := append([]networkPeerJSON{self}, make([]networkPeerJSON, 0, len(net.Portals))...)
	for _, p := range net.Portals {
		all = append(all, newNetworkPeerJSON(p))
	}
	out := networkMapJSON{Known: len(all), Agents: net.Agents, Links: []networkLinkJSON{}}
	from := min(max(int(skip), 0), len(all))
	to := min(from+int(limit), len(all))
	if out.Portals = all[from:to]; to < len(all) {
		out.NextCursor = strconv.Itoa(to)
	}
	on := func(id record.PortalID) bool {
		return slices.ContainsFunc(out.Portals, func(p networkPeerJSON) bool { return p.ID == string(id) })
	}
	for _, l := range net.Links[:min(len(net.Links), 1000)] {
		if on(l.From) || on(l.To) {
			out.Links = append(out.Links, networkLinkJSON{string(l.From), string(l.To)})
		}
	}
	respond.JSON(w, http.StatusOK, out)
	return nil
}
