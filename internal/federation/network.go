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

// Network is the public view of the known portals: the admitted ones, and the quarantined ones, because
// every reader can verify the proof against those.
type Network struct {
	Self    Peer
	Portals []Peer // ordered by host
	// Links are the vouching statements between the portals of the view.
	Links []Link
	// Agents counts the agents of all portals with a valid head, including this one.
	Agents int
}

// Link is a valid vouching statement: From vouches for To.
type Link struct{ From, To record.PortalID }

// Map returns the public view of the network.
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

// ownPeer returns this portal in the form of a Peer, for lists of all portals.
func (p *Peers) ownPeer() Peer {
	out := Peer{Name: p.cfg.Live.NameOr(p.cfg.Name), State: Active}
	if p.cfg.Signer != nil {
		out.ID, out.URL = p.cfg.Signer.ID(), p.cfg.Signer.Origin()
	}
	if p.cfg.Agents != nil {
		out.Agents = p.cfg.Agents()
		out.Listed = out.Agents
	}
	return out
}

// isPublic reports whether a portal belongs to the public view.
func isPublic(p Peer) bool {
	switch p.State {
	case Active, Silent, Stale, Quarantined:
		return p.ID != ""
	}
	return false
}

// Counts returns the number of portals with a valid head, including this one, and the number of their agents.
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

// countAgents returns how many agents of a portal can be found from here: the stored ones or, if only
// summaries are kept, those that its head counts.
func (p *Peers) countAgents(held, listed int) int {
	if p.cfg.Summing != nil && p.cfg.Summing() {
		return max(held, listed)
	}
	return held
}

// Profile is the public view of one portal with its history.
type Profile struct {
	Peer
	Keys []record.KeyID // operational keys that sign for it
	// Words are the statements of other portals about it, newest first, with the names of their authors.
	Words   []Word
	Changes []Change // changes of its state, newest first
}

// historyShown is the number of changes and of statements in a Profile.
const historyShown = 50

// Profile returns a portal by its id or host if it belongs to the public view or the caller is an
// operator; else a NotFound fault.
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

// hidePrivate clears the fields for operators: notes, and error texts of failed requests. Error texts
// reveal looked-up addresses, open ports and answers of other hosts.
func (p *Peer) hidePrivate() {
	p.Rule, p.Faults, p.Said, p.Refused = Rule{}, nil, nil, time.Time{}
	p.Reason = shortReason(p.State, p.Reason)
}

// publicChanges returns the changes that are public. Times and reasons of denials are removed.
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

// shortReason returns the part of a reason before answersNot, without the error text.
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
