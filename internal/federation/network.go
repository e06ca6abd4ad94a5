package federation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// Network is the public view of the known portals: those that are admitted, and those that were
// proved to lie, because every reader can check the proof.
type Network struct {
	Self    Peer
	Portals []Peer // by host
	// Links are the vouching statements among them.
	Links []Link
	// Agents counts those of all portals that are current, this one included.
	Agents int
}

// Link is between two portals.
type Link struct{ From, To record.PortalID }

// Map returns the network as it is seen from here.
func (p *Peers) Map(ctx context.Context) Network {
	out := Network{Self: p.ownPeer()}
	out.Agents = out.Self.Agents
	shown := map[record.PortalID]bool{out.Self.ID: true}
	for _, peer := range p.Portals(ctx) {
		if !isPublic(peer) {
			continue
		}
		peer.hidePrivate()
		out.Portals = append(out.Portals, peer)
		shown[peer.ID] = true
		if peer.State == Active || peer.State == Silent {
			out.Agents += p.countAgents(peer.Agents, peer.Listed)
		}
	}
	now := clock.Now()
	p.mu.RLock()
	for subject, by := range p.words {
		for from, w := range by {
			if w.Verdict == record.Vouch && w.Expires.After(now) && shown[subject] && shown[from] {
				out.Links = append(out.Links, Link{from, subject})
			}
		}
	}
	p.mu.RUnlock()
	slices.SortStableFunc(out.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.From, b.From),
			cmp.Compare(a.To, b.To))
	})
	return out
}

// ownPeer is this portal, as one among the others.
func (p *Peers) ownPeer() Peer {
	out := Peer{Name: p.cfg.Name, State: Active}
	if p.cfg.Signer != nil {
		out.ID, out.URL = p.cfg.Signer.ID(), p.cfg.Signer.Origin()
	}
	if p.cfg.Agents != nil {
		out.Agents = p.cfg.Agents()
		out.Listed = out.Agents
	}
	return out
}

// isPublic reports whether a portal is part of the public view.
func isPublic(p Peer) bool {
	switch p.State {
	case Active, Silent, Stale, Quarantined:
		return p.ID != ""
	}
	return false
}

// Counts returns how many portals there are that are current, this one
// included, and how many agents they have.
func (p *Peers) Counts() (portals, agents int) {
	own := p.ownPeer()
	portals, agents = 1, own.Agents
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, e := range p.entries {
		if e.state == Active || e.state == Silent {
			portals++
			agents += p.countAgents(e.Agents, e.Listed)
		}
	}
	return portals, agents
}

// countAgents is how many agents of a portal are found from here.
func (p *Peers) countAgents(held, listed int) int {
	if p.cfg.Summing != nil && p.cfg.Summing() {
		return max(held, listed)
	}
	return held
}

// Profile is the public view of one portal.
type Profile struct {
	Peer
	Keys []record.KeyID // those that speak for it
	// Words are the statements of others about it, newest first, with their names.
	Words   []Word
	Changes []Change // of its state, newest first
}

// historyShown bounds the changes and words of a Profile.
const historyShown = 50

// Profile returns a portal of the public view by its id or host; an operator sees the others too.
func (p *Peers) Profile(ctx context.Context, operator bool, name string) (Profile, error) {
	p.mu.RLock()
	e := p.findEntry(name)
	if e == nil {
		p.mu.RUnlock()
		return Profile{}, noPeer(name)
	}
	now := clock.Now()
	out := Profile{Peer: p.viewPeer(e, now), Keys: slices.Clone(e.Keys)}
	for _, w := range p.words[e.ID] {
		if w.Expires.After(now) {
			out.Words = append(out.Words, w)
		}
	}
	key := e.Key()
	p.mu.RUnlock()
	if !operator {
		if !isPublic(out.Peer) {
			return Profile{}, noPeer(name)
		}
		out.hidePrivate()
	}
	slices.SortStableFunc(out.Words, func(a, b Word) int {
		return cmp.Or(b.Issued.Compare(a.Issued),
			cmp.Compare(a.By, b.By))
	})
	out.Words = out.Words[:min(len(out.Words), historyShown)]
	var err error
	out.Changes, err = p.store.PeerChanges(ctx, key, historyShown)
	if !operator {
		out.Changes = publicChanges(out.Changes)
	}
	return out, err
}

// hidePrivate removes the fields for operators: notes, and the reasons of failed requests. The reasons
// name addresses that were looked up, open ports and answers of the other side.
func (p *Peer) hidePrivate() {
	p.Rule, p.Faults, p.Said, p.Refused = Rule{}, nil, nil, time.Time{}
	p.Reason = shortReason(p.State, p.Reason)
}

// publicChanges returns the state changes that are public: times and reasons of denials are not.
func publicChanges(list []Change) []Change {
	out := list[:0]
	for _, c := range list {
		if c.State == Denied || c.State == Pending {
			continue
		}
		c.Reason = shortReason(c.State, c.Reason)
		out = append(out, c)
	}
	return out
}

// shortReason returns a reason without the text of the error behind it.
func shortReason(s State, reason string) string {
	if s != Silent && s != Joining {
		return reason
	}
	text, _, cut := strings.Cut(reason, answersNot)
	if !cut {
		return reason
	}
	return text + "."
}
