package index

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Portals publish the same built-in agents. Of those that say the very same of
// themselves, searches show one: this portal's own, else the oldest of each
// state (of liveness, proof and portal). An agent that copies the words of
// another one comes later and is hidden, so it cannot take its place; an own
// agent is never hidden. A hidden agent has the words and the values of facets
// of the one that is shown instead, but for the portal and the difference to
// this portal's own, so that counts hold. A search in given portals shows all
// of theirs.

// copies are the agents that may have equals. The lock of the Index guards it.
type copies struct {
	groups map[fingerprint]*group
	of     map[uint32]*group // by document
	hidden bm25.Bits
}

// fingerprint is the hash of all that an agent says of itself.
type fingerprint [16]byte

// group is agents with one fingerprint.
type group struct {
	print   fingerprint
	members []member // in the order of their coming
	portals int
}

type member struct {
	doc    uint32
	state  copyState
	portal string // "" for this one
}

// candidate is a member with its fingerprint.
type candidate struct {
	member
	print fingerprint
}

// copyState is the part of an agent that a result shows beside its words, as a
// number.
type copyState uint32

func newCopies() *copies {
	return &copies{groups: make(map[fingerprint]*group), of: make(map[uint32]*group)}
}

// candidateOf returns the candidate of an agent without its document, nil if the agent cannot have
// duplicates. Agents of users cannot: a user that registers one twice has two. An agent that is
// published under a domain cannot either.
func candidateOf(a *hub.Agent) *candidate {
	if a.Kind != hub.Builtin || a.Publisher != "" {
		return nil
	}
	return &candidate{member{state: copyStateOf(a), portal: strings.Clone(a.Portal)}, fingerprintOf(a)}
}

func fingerprintOf(a *hub.Agent) (print fingerprint) {
	hash := sha256.New()
	writeSize := func(n int) { hash.Write(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	write := func(list ...string) {
		for _, text := range list {
			writeSize(len(text))
			hash.Write([]byte(text))
		}
	}
	writeList := func(list []string) {
		writeSize(len(list))
		write(list...)
	}
	write(string(a.Kind), a.Name, a.Title, a.Description)
	writeSize(len(a.Skills))
	for i := range a.Skills {
		s := &a.Skills[i]
		write(s.ID, s.Name, s.Description)
		writeList(s.Tags)
		writeList(s.Examples)
	}
	writeList(a.Modalities())
	writeList(a.Languages)
	copy(print[:], hash.Sum(nil))
	return print
}

// copyStateOf returns one number for agents that differ in the facet of portals
// only.
func copyStateOf(a *hub.Agent) copyState {
	live := []hub.Live{hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable}
	proofs := []string{hub.Hosted, hub.Proved, hub.Claimed}
	s := copyState(slices.Index(live, a.Liveness.State)+1)<<8 | copyState(slices.Index(proofs, a.Proof.State)+1)<<4
	if a.Signed() {
		s |= 1
	}
	if a.Status.State == hub.Deprecated {
		s |= 2
	}
	return s
}

// putCandidate notes a document or its change. The candidate is nil if it cannot have
// equals.
func (c *copies) putCandidate(doc uint32, next *candidate) {
	g := c.of[doc]
	if g != nil && (next == nil || g.print != next.print) {
		c.removeDoc(doc)
		g = nil
	}
	if next == nil {
		return
	}
	next.doc = doc
	if g != nil { // it keeps its place
		g.members[g.indexOf(doc)] = next.member
		c.hideCopies(g)
		return
	}
	if g = c.groups[next.print]; g == nil {
		g = &group{print: next.print}
		c.groups[next.print] = g
	}
	c.of[doc] = g
	g.members = append(g.members, next.member)
	c.hideCopies(g)
}

// removeDoc forgets a document.
func (c *copies) removeDoc(doc uint32) {
	g := c.of[doc]
	if g == nil {
		return
	}
	delete(c.of, doc)
	c.hidden.Drop(int(doc))
	at := g.indexOf(doc)
	g.members = slices.Delete(g.members, at, at+1)
	if len(g.members) == 0 {
		delete(c.groups, g.print)
		return
	}
	c.hideCopies(g)
}

func (g *group) indexOf(doc uint32) int {
	return slices.IndexFunc(g.members, func(m member) bool { return m.doc == doc })
}

// hasOwn reports whether an agent of this portal is in the group.
func (g *group) hasOwn() bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.portal == "" })
}

// hideCopies decides which members of a group are hidden.
func (c *copies) hideCopies(g *group) {
	own := g.hasOwn()
	states, portals := make(map[copyState]bool), make(map[string]bool)
	for _, m := range g.members {
		if m.portal == "" || !own && !states[m.state] {
			c.hidden.Drop(int(m.doc))
		} else {
			c.hidden.Add(int(m.doc))
		}
		states[m.state], portals[m.portal] = true, true
	}
	g.portals = len(portals)
}

// wouldHide reports whether an agent that is not held would be hidden if it were.
func (c *copies) wouldHide(a *hub.Agent) bool {
	next := candidateOf(a)
	if next == nil {
		return false
	}
	g := c.groups[next.print]
	sameState := func(m member) bool { return m.state == next.state }
	return g != nil && (g.hasOwn() || slices.ContainsFunc(g.members, sameState))
}

// hidesCopies reports whether a query shows equal agents once.
func hidesCopies(q *hub.Query) bool { return !q.Copies && q.Same == "" && len(q.Portals) == 0 }

// collapseDuplicates takes hidden agents out of the matches of a query, and all but the
// equals of the agent that it asks for. It returns the matches with the hidden
// ones, nil when there are none; the caller must hold mu.
func (x *Index) collapseDuplicates(match bm25.Bits, q *hub.Query, s *scratch) (whole bm25.Bits) {
	if q.Same != "" {
		s.class = append(s.class[:0], make(bm25.Bits, len(match))...)
		if doc, ok := x.byID.Find(q.Same); ok {
			s.class.Add(int(doc))
			if g := x.copies.of[doc]; g != nil {
				for _, m := range g.members {
					s.class.Add(int(m.doc))
				}
			}
		}
		match.And(s.class)
		return nil
	}
	if !hidesCopies(q) || match.CountAnd(x.copies.hidden) == 0 {
		return nil
	}
	s.whole = append(s.whole[:0], match...)
	match.AndNot(x.copies.hidden)
	return s.whole
}

// addCopies adds to a result which other portals have its equals; the caller
// must hold mu.
func (x *Index) addCopies(r *hub.Result, doc uint32) {
	g := x.copies.of[doc]
	if g == nil || g.portals < 2 {
		return
	}
	r.Copies = g.portals - 1
	for _, m := range g.members {
		if len(r.CopiesAt) == min(r.Copies, hub.MaxCopiesAt) {
			break
		}
		if m.portal != r.Agent.Portal && !slices.Contains(r.CopiesAt, m.portal) {
			r.CopiesAt = append(r.CopiesAt, m.portal)
		}
	}
}
