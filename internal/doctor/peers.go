package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// maxAsked is the number of portals that are asked: enough to distinguish one unreachable portal
	// from a broken connection of this machine.
	maxAsked = 16
	// minClocks is the number of portals whose clocks must agree before this clock is in doubt. clockOff
	// is the tolerated difference; signatures are valid for only a minute.
	minClocks = 3
	clockOff  = 10 * time.Second
	// lagging is the delay in fetching a newer state of a portal from which on it is reported.
	lagging = 10 * time.Minute
)

// peerAnswer is the result of asking one portal. If err is set, the other fields are not valid.
type peerAnswer struct {
	peer  federation.Peer
	err   error         // reason why the portal did not answer
	id    string        // id of the portal that answered, which may be another than peer
	off   time.Duration // the amount by which its clock is ahead of this one
	clock bool          // true if off is known
	// refused is the reason why the portal refuses this one, else "". held is the version of this
	// portal's head that it has, valid if known is true.
	refused string
	known   bool
	held    record.Version
}

// checkPeers checks the other portals: reachability, clocks, states, and the replica of their records.
func (s Subject) checkPeers(ctx context.Context, r *Report) {
	if !s.knowsPeers() || s.Network == "" {
		return
	}
	list, err := s.listPeers(ctx)
	if err != nil {
		r.Add(Peers, Fault, "agentsite verify", "The list of other portals cannot be read: %v.", err)
		return
	}
	if len(list) == 0 {
		r.Add(Peers, Note, "agentsite peers add https://PORTAL, or start with --join https://PORTAL",
			"No other portal is known.")
		return
	}
	if s.Web != nil {
		answers := s.askAll(ctx, choosePeers(list))
		s.compareClocks(r, answers)
		s.reportPeers(ctx, r, answers)
	}
	reportStates(r, list)
	reportReplication(r, list)
}

// choosePeers selects the portals to ask, at most maxAsked: allowed portals with an address, the healthy
// ones first.
func choosePeers(list []federation.Peer) []federation.Peer {
	rank := map[federation.State]int{federation.Active: 1, federation.Silent: 2, federation.Stale: 3,
		federation.Pending: 4, federation.Joining: 5}
	var out []federation.Peer
	for _, p := range list {
		if rank[p.State] > 0 && p.Tier != record.TierLeaf && record.ValidOrigin(p.URL) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b federation.Peer) int { return cmp.Compare(rank[a.State], rank[b.State]) })
	return out[:min(len(out), maxAsked)]
}

// askAll asks several portals concurrently and returns their answers in the order of list.
func (s Subject) askAll(ctx context.Context, list []federation.Peer) []peerAnswer {
	out := make([]peerAnswer, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { out[i] = s.askOne(ctx, p) })
	}
	wg.Wait()
	return out
}

func (s Subject) askOne(ctx context.Context, p federation.Peer) peerAnswer {
	out := peerAnswer{peer: p}
	a, err := s.getURL(ctx, p.URL+"/peering/v1/status")
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("it answers %d", a.status)
	}
	var said struct {
		Portal string `json:"portal"`
	}
	if err == nil && json.Unmarshal(a.body, &said) != nil {
		err = fmt.Errorf("the server at its address is not a portal")
	}
	if err != nil {
		out.err = err
		return out
	}
	out.id = said.Portal
	if t, err := http.ParseTime(a.header.Get("Date")); err == nil {
		// The Date header has whole seconds, from a moment between request and answer.
		out.off, out.clock = t.Add(time.Second/2).Sub(clock.Now().Add(-a.took/2)), true
	}
	if s.Caller != nil && p.ID != "" && p.State != federation.Pending && string(p.ID) == out.id {
		out.refused, out.held, out.known = s.headAt(ctx, p)
	}
	return out
}

// headAt asks a portal for its version of this portal's head (held), or its reason to refuse the
// request. known is false if the portal gave no head.
func (s Subject) headAt(ctx context.Context, p federation.Peer) (refused string, held record.Version, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	a, err := s.Caller.Do(ctx, p.URL, p.ID, http.MethodGet, "/peering/v1/portals/"+string(s.ID)+"/head", nil, maxAnswer)
	switch {
	case err != nil:
		return "", held, false
	case a.Status == http.StatusForbidden || a.Status == http.StatusUnauthorized:
		return refusalText(a), held, false
	case a.Status == http.StatusNotFound:
		return "", held, true
	case a.Status != http.StatusOK:
		return "", held, false
	}
	var in struct {
		Head json.RawMessage `json:"head"`
	}
	if json.Unmarshal(a.Body, &in) != nil {
		return "", held, false
	}
	// Only display the result: it is a claim about this portal that nothing proves.
	h, err := record.Open(s.Network, in.Head)
	if err != nil || h.Portal != s.ID || h.Type != record.TypeHead {
		return "", held, false
	}
	return "", h.Version(), true
}

// refusalText returns the reason in a portal's refusal, as one line.
func refusalText(a *federation.Answer) string {
	var in struct {
		Error struct {
			Reason, Message string
		} `json:"error"`
	}
	if json.Unmarshal(a.Body, &in) != nil || in.Error.Reason == "" {
		return fmt.Sprintf("it answers %d", a.Status)
	}
	return fmt.Sprintf("%.40s: %.300s", in.Error.Reason, in.Error.Message)
}

// compareClocks reports this machine's clock as wrong if at least minClocks other portals agree on a
// different time.
func (s Subject) compareClocks(r *Report, answers []peerAnswer) {
	var off []time.Duration
	for _, a := range answers {
		if a.clock {
			off = append(off, a.off)
		}
	}
	if len(off) < minClocks {
		r.Add(Clock, Skipped, "", "Only %s gave the time and %d are needed: it is unknown whether "+
			"this clock is right.", counted(len(off), "portal", "portals"), minClocks)
		return
	}
	slices.Sort(off)
	switch median := off[len(off)/2].Round(time.Second); {
	case median.Abs() < clockOff:
		r.Add(Clock, OK, "", "The clock agrees with those of %s.", counted(len(off), "portal", "portals"))
	case median > 0:
		r.Add(Clock, Fault, "Set the time by NTP.",
			"This clock is %s behind those of %d other portals. Beyond a minute, requests of this portal are refused.",
			median, len(off))
	default:
		r.Add(Clock, Fault, "Set the time by NTP.",
			"This clock is %s ahead of those of %d other portals. Beyond a minute, requests of this portal are "+
				"refused.", -median, len(off))
	}
}

// reportPeers reports which of the asked portals answer, accept this portal, and have its newest head.
func (s Subject) reportPeers(ctx context.Context, r *Report, answers []peerAnswer) {
	if len(answers) == 0 {
		return
	}
	silent := cappedFindings{r: r, check: Peers, level: Note,
		do: "Nothing: it is tried again automatically. If it no longer exists: agentsite peers forget PORTAL"}
	other := cappedFindings{r: r, check: Peers, level: Fault,
		do: "Ask its operator. If the portal was set up again: agentsite peers forget PORTAL, and add it again"}
	shut := cappedFindings{r: r, check: Peers, level: Fault,
		do: "Ask its operator to allow this portal: agentsite peers allow " + string(s.ID)}
	behind := cappedFindings{r: r, check: Peers, level: Note,
		do: "Nothing, if this is recent. Otherwise ask its operator to run `agentsite doctor` there"}
	// A note and not a fault, because the claim is not verified: a lying portal must not make this one
	// unhealthy.
	ahead := cappedFindings{r: r, check: Peers, level: Note,
		do: "Stop the other one if this portal runs twice. Otherwise restart it: it begins a new count"}
	own, _ := s.ownHead(ctx)
	there := 0
	for _, a := range answers {
		host := a.peer.Host()
		switch {
		case a.err != nil:
			silent.addOne("%s does not answer: %v.", host, a.err)
			continue
		case a.peer.ID != "" && a.id != string(a.peer.ID):
			other.addOne("The portal at %s (%.60s) is not the one that is known there (%s).", host, a.id, a.peer.ID)
			continue
		}
		there++
		switch {
		case a.refused != "":
			shut.addOne("%s refuses this portal. It says %s", host, a.refused)
		case a.known && a.held == record.Version{}:
			behind.addOne("%s answers and has no agents of this portal yet.", host)
		case a.known && a.held.Compare(own) < 0:
			behind.addOne("%s has an older state of this portal (%s, here %s).", host, formatVersion(a.held),
				formatVersion(own))
		case a.known && a.held.Compare(own) > 0 && s.isNewer(ctx, a.held):
			ahead.addOne("%s says that it holds a newer state of this portal (%s) than it has itself: its "+
				"folder is a copy of an older state, or it runs twice.", host, formatVersion(a.held))
		}
	}
	for _, f := range []*cappedFindings{&silent, &other, &shut, &behind, &ahead} {
		f.addRest()
	}
	if there == 0 {
		r.Add(Peers, Fault, "Check this machine's connection, DNS and firewall first.",
			"No answer came from %s.", counted(len(answers), "requested portal", "requested portals"))
		return
	}
	r.Add(Peers, OK, "", "Answers came from %d of %s.", there,
		counted(len(answers), "requested portal", "requested portals"))
}

// isNewer reports whether v is newer than this portal's own head, read again because the head may have
// changed since the request.
func (s Subject) isNewer(ctx context.Context, v record.Version) bool {
	own, ok := s.ownHead(ctx)
	return ok && v.Compare(own) > 0
}

// ownHead returns the version of this portal's newest head; ok is false if there is none.
func (s Subject) ownHead(ctx context.Context) (v record.Version, ok bool) {
	if s.Replica == nil {
		return v, false
	}
	wire, err := s.Replica.Head(ctx, s.ID)
	if err != nil || wire == nil {
		return v, false
	}
	h, err := record.Open(s.Network, wire)
	if err != nil {
		return v, false
	}
	return h.Version(), true
}

func formatVersion(v record.Version) string { return fmt.Sprintf("%d.%d", v.Epoch, v.Seq) }

// PortalFinding is a finding about a portal in a state.
type PortalFinding struct {
	Finding
	State federation.State
}

// JudgePortals returns a finding for each portal about which the operator must decide, and for those that are stale.
func JudgePortals(list []federation.Peer) (out []PortalFinding) {
	for _, state := range []federation.State{federation.Quarantined, federation.Pending, federation.Stale} {
		var r Report
		reportStates(&r, slices.DeleteFunc(slices.Clone(list),
			func(p federation.Peer) bool { return p.State != state || p.Refused.After(clock.Now()) }))
		for _, f := range r.Findings {
			out = append(out, PortalFinding{f, state})
		}
	}
	return out
}

// reportStates reports the portals about which the operator must decide.
func reportStates(r *Report, list []federation.Peer) {
	lied := cappedFindings{r: r, check: Peers, level: Fault, do: "Check the proof: agentsite peers release PORTAL"}
	waits := cappedFindings{r: r, check: Peers, level: Note, do: "agentsite peers allow PORTAL, or deny it"}
	forged := cappedFindings{r: r, check: Peers, level: Note,
		do: "Nothing: it is allowed again automatically. agentsite peers list --json shows the refused messages"}
	stale := cappedFindings{r: r, check: Peers, level: Note,
		do: "If it no longer exists: agentsite peers forget PORTAL"}
	now := clock.Now()
	for _, p := range list {
		name := p.Host()
		if p.ID != "" {
			name += " (" + string(p.ID) + ")"
		}
		switch {
		case p.State == federation.Quarantined:
			lied.addOne("%s is quarantined: %s", name, p.Reason)
		case p.Refused.After(now):
			forged.addOne("%s: %s", name, p.Reason)
		case p.State == federation.Pending:
			waits.addOne("%s waits: %s", name, p.Reason)
		case p.State == federation.Stale:
			stale.addOne("%s: %s", name, p.Reason)
		}
	}
	for _, f := range []*cappedFindings{&lied, &waits, &forged, &stale} {
		f.addRest()
	}
}

// reportReplication reports how much of the other portals' records the replica holds.
func reportReplication(r *Report, list []federation.Peer) {
	late := cappedFindings{r: r, check: Replication, level: Fault,
		do: "Ask its operator to check it; it is tried again automatically. `agentsite verify` checks the replica here"}
	cut := cappedFindings{r: r, check: Replication, level: Note,
		do: "Raise its quota on /admin/peers to store all of them; until then searches ask the portal"}
	partly := cappedFindings{r: r, check: Replication, level: Note, do: "Nothing: the rest is fetched automatically"}
	now := clock.Now()
	portals, held, listed, oldest := 0, 0, 0, time.Duration(0)
	for _, p := range list {
		if p.State != federation.Active && p.State != federation.Silent {
			continue
		}
		portals, held, listed = portals+1, held+p.Agents, listed+p.Listed
		if !p.HeadIssued.IsZero() {
			oldest = max(oldest, now.Sub(p.HeadIssued))
		}
		switch {
		case p.Truncated:
			cut.addOne("%s lists %s, more than its quota: they are not stored here.", p.Host(),
				counted(p.Listed, "agent", "agents"))
		case p.Lag > lagging:
			late.addOne("A newer state of %s has been waiting for %s: %s", p.Host(), p.Lag.Round(time.Minute),
				formatFaults(p.Faults))
		case p.Agents < p.Listed:
			partly.addOne("%s: stored are %d of %s.", p.Host(), p.Agents,
				counted(p.Listed, "agent", "agents"))
		}
	}
	for _, f := range []*cappedFindings{&late, &cut, &partly} {
		f.addRest()
	}
	if portals > 0 {
		r.Add(Replication, OK, "", "Stored: %d of %s of %s; the oldest head is %s old.", held,
			counted(listed, "agent", "agents"), counted(portals, "other portal", "other portals"), oldest.Round(time.Second))
	}
}

// formatFaults lists the numbers of refused records by reason, the most frequent reason first.
func formatFaults(m map[string]int) string {
	if len(m) == 0 {
		return "none of its records was refused."
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, m[name])
	}
	return "refused since the start: " + strings.Join(names[:min(len(names), 5)], ", ") + "."
}

// plainError returns the sentence of a fault for users, or the text of any other error.
func plainError(err error) string {
	if f := fault.As(err); f.Kind != fault.Internal {
		return f.Safe
	}
	return err.Error()
}
