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
	// maxAsked is how many portals are asked: enough to tell one that is down
	// from a connection that is.
	maxAsked = 16
	// minClocks is how many have to say the same before this clock is in
	// doubt, clockOff how far it must be off to matter: signatures hold for a
	// minute.
	minClocks = 3
	clockOff  = 10 * time.Second
	// lagging is for how long a newer state of a portal may wait.
	lagging = 10 * time.Minute
)

// asked is what came of asking one portal.
type asked struct {
	peer  federation.Peer
	err   error         // it did not answer
	id    string        // who did
	off   time.Duration // its clock is ahead by this
	clock bool          // off is known
	// refused says why it does not let this portal in; held is the version of
	// this portal's head there, when known.
	refused string
	known   bool
	held    record.Version
}

// others looks at the other portals and at what is held of them.
func (s Subject) others(ctx context.Context, r *Report) {
	if s.Known == nil || s.Network == "" {
		return
	}
	list, err := s.Known(ctx)
	if err != nil {
		r.Add(Peers, Fault, "agentsite verify", "What is known of other portals cannot be read: %v.", err)
		return
	}
	if len(list) == 0 {
		r.Add(Peers, Note, "agentsite peers add https://PORTAL, or start with --join https://PORTAL", "No other portal is known.")
		return
	}
	answers := s.askAll(ctx, choose(list))
	s.clocks(r, answers)
	s.doors(ctx, r, answers)
	standing(r, list)
	replication(r, list)
}

// choose takes those worth asking: those that are let in, the healthy first.
func choose(list []federation.Peer) []federation.Peer {
	rank := map[federation.State]int{federation.Active: 1, federation.Silent: 2, federation.Stale: 3, federation.Pending: 4, federation.Joining: 5}
	var out []federation.Peer
	for _, p := range list {
		if rank[p.State] > 0 && p.Tier != record.TierLeaf && record.ValidOrigin(p.URL) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b federation.Peer) int { return cmp.Compare(rank[a.State], rank[b.State]) })
	return out[:min(len(out), maxAsked)]
}

// askAll asks portals at once.
func (s Subject) askAll(ctx context.Context, list []federation.Peer) []asked {
	if s.Web == nil {
		return nil
	}
	out := make([]asked, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		wg.Go(func() { out[i] = s.askOne(ctx, p) })
	}
	wg.Wait()
	return out
}

func (s Subject) askOne(ctx context.Context, p federation.Peer) asked {
	out := asked{peer: p}
	a, err := s.get(ctx, p.URL+"/peering/v1/status")
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("it answers %d", a.status)
	}
	var said struct {
		Portal string `json:"portal"`
	}
	if err == nil && json.Unmarshal(a.body, &said) != nil {
		err = fmt.Errorf("what answers is not a portal")
	}
	if err != nil {
		out.err = err
		return out
	}
	out.id = said.Portal
	if t, err := http.ParseTime(a.header.Get("Date")); err == nil {
		// The header has whole seconds, of somewhere between question and answer.
		out.off, out.clock = t.Add(time.Second/2).Sub(clock.Now().Add(-a.took/2)), true
	}
	if s.Caller != nil && p.ID != "" && p.State != federation.Pending && string(p.ID) == out.id {
		out.refused, out.held, out.known = s.headAt(ctx, p)
	}
	return out
}

// headAt asks a portal which head of this one it holds, or why it refuses to
// answer. known is false when neither is to be had.
func (s Subject) headAt(ctx context.Context, p federation.Peer) (refused string, held record.Version, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	a, err := s.Caller.Do(ctx, p.URL, p.ID, http.MethodGet, "/peering/v1/portals/"+string(s.ID)+"/head", nil, maxAnswer)
	switch {
	case err != nil:
		return "", held, false
	case a.Status == http.StatusForbidden || a.Status == http.StatusUnauthorized:
		return refusal(a), held, false
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
	// Only shown: what it says of this portal is not taken in.
	h, err := record.Open(s.Network, in.Head)
	if err != nil || h.Portal != s.ID || h.Type != record.TypeHead {
		return "", held, false
	}
	return "", h.Version(), true
}

// refusal is why a portal refused, as it says.
func refusal(a *federation.Answer) string {
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

// clocks compares this machine's clock with those of others.
func (s Subject) clocks(r *Report, answers []asked) {
	var off []time.Duration
	for _, a := range answers {
		if a.clock {
			off = append(off, a.off)
		}
	}
	if len(off) < minClocks {
		r.Add(Clock, Skipped, "", "%d of the %d portals it takes told the time: whether this clock is right cannot be said.", len(off), minClocks)
		return
	}
	slices.Sort(off)
	switch median := off[len(off)/2].Round(time.Second); {
	case median.Abs() < clockOff:
		r.Add(Clock, OK, "", "The clock agrees with those of %d portals.", len(off))
	case median > 0:
		r.Add(Clock, Fault, "Set the time by NTP.", "This clock is %s behind those of %d other portals. Beyond a minute, requests of this portal are refused.", median, len(off))
	default:
		r.Add(Clock, Fault, "Set the time by NTP.", "This clock is %s ahead of those of %d other portals. Beyond a minute, requests of this portal are refused.", -median, len(off))
	}
}

// doors says who answers, who lets this portal in, and who has its newest head.
func (s Subject) doors(ctx context.Context, r *Report, answers []asked) {
	if len(answers) == 0 {
		return
	}
	silent := few{r: r, check: Peers, level: Note, do: "Nothing: it is asked again by itself. If it is gone for good: agentsite peers forget PORTAL"}
	other := few{r: r, check: Peers, level: Fault, do: "Ask its operator. If the portal began anew: agentsite peers forget PORTAL, and add it again"}
	shut := few{r: r, check: Peers, level: Fault, do: "Ask its operator to let this portal in: agentsite peers allow " + string(s.ID)}
	behind := few{r: r, check: Peers, level: Note, do: "Nothing, if this was just now. Else let its operator run `agentsite doctor` there"}
	// Its word alone, so no fault: who lies must not make this portal ill.
	ahead := few{r: r, check: Peers, level: Note, do: "Stop the other one if this portal runs twice. Else start it again: it begins a new count"}
	own, _ := s.ownHead(ctx)
	there := 0
	for _, a := range answers {
		host := a.peer.Host()
		switch {
		case a.err != nil:
			silent.add("%s does not answer: %v.", host, a.err)
			continue
		case a.peer.ID != "" && a.id != string(a.peer.ID):
			other.add("At %s answers another portal (%.60s) than the one that is known there (%s).", host, a.id, a.peer.ID)
			continue
		}
		there++
		switch {
		case a.refused != "":
			shut.add("%s refuses this portal. It says %s", host, a.refused)
		case a.known && a.held == record.Version{}:
			behind.add("%s answers and holds no agents of this portal yet.", host)
		case a.known && a.held.Compare(own) < 0:
			behind.add("%s holds an older state of this portal (%s, here %s).", host, version(a.held), version(own))
		case a.known && a.held.Compare(own) > 0 && s.newer(ctx, a.held):
			ahead.add("%s says that it holds a newer state of this portal (%s) than it has itself: its folder is a copy of an older state, or it runs twice.", host, version(a.held))
		}
	}
	for _, f := range []*few{&silent, &other, &shut, &behind, &ahead} {
		f.done()
	}
	if there == 0 {
		r.Add(Peers, Fault, "Look at this machine's connection, DNS and firewall first.", "None of the %d portals that were asked answers.", len(answers))
		return
	}
	r.Add(Peers, OK, "", "%d of %d portals that were asked answer.", there, len(answers))
}

// newer reports whether a version is still newer than the own head, which may
// have grown since it was read.
func (s Subject) newer(ctx context.Context, v record.Version) bool {
	own, ok := s.ownHead(ctx)
	return ok && v.Compare(own) > 0
}

// ownHead is the version of this portal's newest head.
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

func version(v record.Version) string { return fmt.Sprintf("%d.%d", v.Epoch, v.Seq) }

// standing says whom an operator has to look at.
func standing(r *Report, list []federation.Peer) {
	lied := few{r: r, check: Peers, level: Fault, do: "Look at the proof: agentsite peers release PORTAL"}
	waits := few{r: r, check: Peers, level: Note, do: "agentsite peers allow PORTAL, or deny it"}
	forged := few{r: r, check: Peers, level: Note, do: "Nothing: it is let in again by itself. agentsite peers list --json shows what it sent"}
	stale := few{r: r, check: Peers, level: Note, do: "If it is gone for good: agentsite peers forget PORTAL"}
	now := clock.Now()
	for _, p := range list {
		name := p.Host()
		if p.ID != "" {
			name += " (" + string(p.ID) + ")"
		}
		switch {
		case p.State == federation.Quarantined:
			lied.add("%s is quarantined: %s", name, p.Reason)
		case p.Refused.After(now):
			forged.add("%s: %s", name, p.Reason)
		case p.State == federation.Pending:
			waits.add("%s waits: %s", name, p.Reason)
		case p.State == federation.Stale:
			stale.add("%s: %s", name, p.Reason)
		}
	}
	for _, f := range []*few{&lied, &waits, &forged, &stale} {
		f.done()
	}
}

// replication says how whole the copy of the others' agents is.
func replication(r *Report, list []federation.Peer) {
	late := few{r: r, check: Replication, level: Fault, do: "Let its operator look at it; it is asked again by itself. `agentsite verify` looks at the copy here"}
	cut := few{r: r, check: Replication, level: Note, do: "Raise its quota on /admin/peers if you want them all; searches ask it meanwhile"}
	partly := few{r: r, check: Replication, level: Note, do: "Nothing: the rest is fetched by itself"}
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
			cut.add("Of %s %d agents are listed, more than its quota: they are not held here.", p.Host(), p.Listed)
		case p.Lag > lagging:
			late.add("A newer state of %s has been waiting for %s: %s", p.Host(), p.Lag.Round(time.Minute), faults(p.Faults))
		case p.Agents < p.Listed:
			partly.add("Of %s %d of %d agents are held.", p.Host(), p.Agents, p.Listed)
		}
	}
	for _, f := range []*few{&late, &cut, &partly} {
		f.done()
	}
	if portals > 0 {
		r.Add(Replication, OK, "", "%d of %d agents of %d other portals are held; the oldest of their heads is %s old.", held, listed, portals, oldest.Round(time.Second))
	}
}

// faults writes what a portal sent that was refused, the most frequent first.
func faults(m map[string]int) string {
	if len(m) == 0 {
		return "nothing of it was refused."
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

// plain is the sentence of an error that may be shown.
func plain(err error) string {
	if f := fault.As(err); f.Kind != fault.Internal {
		return f.Safe
	}
	return err.Error()
}
