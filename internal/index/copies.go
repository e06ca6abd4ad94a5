package index

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"agentsite/internal/hub"
	"agentsite/internal/index/bm25"
)

// Every portal comes with the same built-in agents. Of those that say the very
// same of themselves, searches show one: this portal's, else of each state (of
// liveness, proof and portal) the one that has been here longest. Whoever comes
// later with somebody's words is shown below them and never instead, and one of
// this portal's own is never below another. A copy has the same words and the
// same values of facets as the one it stands below, but for the portal and what
// differs from this portal's own, so that counts hold: whoever asks for portals
// gets all of theirs.

// copies are the agents that have equals. The lock of the Index guards it.
type copies struct {
	groups map[sameKey]*group
	of     map[uint32]*group // by document
	folded bm25.Bits         // those shown below others
}

// sameKey is the hash of all that an agent says of itself.
type sameKey [16]byte

// group is agents with equal words.
type group struct {
	key     sameKey
	members []member       // in the order of their coming
	hosts   map[string]int // members by portal; nil as long as there was but one
}

type member struct {
	doc   uint32
	state state
	host  string // of its portal, "" for this one
}

// likeness is a member with what it says.
type likeness struct {
	member
	key sameKey
}

func (m member) own() bool { return m.host == "" }

// state is what a row shows of an agent beside its words, in one number.
type state uint32

func newCopies() *copies {
	return &copies{groups: make(map[sameKey]*group), of: make(map[uint32]*group)}
}

// foldable reports whether an agent may have equals. People's agents may not:
// who registers one twice has two. So has whoever publishes it under a domain.
func foldable(a *hub.Agent) bool {
	return a.Kind == hub.Builtin && a.Publisher == ""
}

// sameKeyOf hashes what an agent says of itself, its name included.
func sameKeyOf(a *hub.Agent) (key sameKey) {
	h := sha256.New()
	var n [4]byte
	size := func(i int) {
		binary.BigEndian.PutUint32(n[:], uint32(i))
		h.Write(n[:])
	}
	text := func(s string) {
		size(len(s))
		h.Write([]byte(s))
	}
	list := func(l []string) {
		size(len(l))
		for _, s := range l {
			text(s)
		}
	}
	for _, s := range []string{string(a.Kind), a.Name, a.Title, a.Description} {
		text(s)
	}
	size(len(a.Skills))
	for i := range a.Skills {
		s := &a.Skills[i]
		for _, t := range []string{s.ID, s.Name, s.Description} {
			text(t)
		}
		list(s.Tags)
		list(s.Examples)
	}
	list(a.Modalities())
	list(a.Languages)
	copy(key[:], h.Sum(nil))
	return key
}

// stateOf is the state of an agent: equal for those that no facet but that of
// portals tells apart.
func stateOf(a *hub.Agent) state {
	live := []hub.Live{hub.Alive, hub.NeedsAuth, hub.WrongProtocol, hub.Unreachable}
	proofs := []string{hub.Hosted, hub.Proved, hub.Claimed}
	s := state(slices.Index(live, a.Liveness.State)+1)<<8 | state(slices.Index(proofs, a.Proof.State)+1)<<4
	if a.Signed() {
		s |= 1
	}
	if a.Status.State == hub.Deprecated {
		s |= 2
	}
	return s
}

// put notes a document, or what became of it.
func (c *copies) put(doc uint32, a *hub.Agent) {
	g := c.of[doc]
	if g == nil && !foldable(a) {
		return
	}
	l := likeness{member: member{doc, stateOf(a), strings.Clone(a.Portal)}, key: sameKeyOf(a)}
	if g != nil && (!foldable(a) || g.key != l.key) {
		c.remove(doc)
		g = nil
	}
	switch {
	case g != nil: // it keeps its place
		at := &g.members[slices.IndexFunc(g.members, func(m member) bool { return m.doc == doc })]
		if was := *at; was != l.member {
			*at = l.member
			g.count(was.host, -1)
			g.count(l.host, 1)
			c.refold(g)
		}
	case foldable(a):
		c.add(l)
	}
}

// add notes a document that was none.
func (c *copies) add(l likeness) {
	g := c.groups[l.key]
	if g == nil {
		g = &group{key: l.key}
		c.groups[l.key] = g
	}
	c.of[l.doc] = g
	g.members = append(g.members, l.member)
	g.count(l.host, 1)
	switch {
	case len(g.members) == 1:
	case l.own():
		c.refold(g)
	case g.head(l.member) != l.doc:
		c.folded.Add(int(l.doc))
	}
}

// remove forgets a document.
func (c *copies) remove(doc uint32) {
	g := c.of[doc]
	if g == nil {
		return
	}
	delete(c.of, doc)
	c.folded.Drop(int(doc))
	i := slices.IndexFunc(g.members, func(m member) bool { return m.doc == doc })
	g.count(g.members[i].host, -1)
	g.members = slices.Delete(g.members, i, i+1)
	if len(g.members) == 0 {
		delete(c.groups, g.key)
		return
	}
	c.refold(g)
}

// count notes that a portal has so many members more, once there are several.
func (g *group) count(host string, n int) {
	switch {
	case g.hosts != nil:
		if g.hosts[host] += n; g.hosts[host] == 0 {
			delete(g.hosts, host)
		}
	case len(g.members) > 1:
		g.hosts = make(map[string]int)
		for _, m := range g.members {
			g.hosts[m.host]++
		}
	}
}

// head is the document that stands for a member of the group.
func (g *group) head(of member) uint32 {
	first, found := of.doc, false
	for _, m := range g.members {
		if m.own() {
			return m.doc
		}
		if !found && m.state == of.state {
			first, found = m.doc, true
		}
	}
	return first
}

// refold says anew which members of a group are shown below others.
func (c *copies) refold(g *group) {
	own := slices.ContainsFunc(g.members, func(m member) bool { return m.own() })
	seen := make(map[state]bool)
	for _, m := range g.members {
		if m.own() || !own && !seen[m.state] {
			seen[m.state] = true
			c.folded.Drop(int(m.doc))
		} else {
			c.folded.Add(int(m.doc))
		}
	}
}

// foldsUnder reports whether an agent that is not held would be shown below one
// that is.
func (c *copies) foldsUnder(a *hub.Agent) bool {
	if !foldable(a) {
		return false
	}
	g := c.groups[sameKeyOf(a)]
	s := stateOf(a)
	return g != nil && slices.ContainsFunc(g.members, func(m member) bool { return m.own() || m.state == s })
}

// foldsFor reports whether a query shows equal agents once.
func foldsFor(q *hub.Query) bool { return !q.Copies && q.Same == "" && len(q.Portals) == 0 }

// fold takes copies out of the matches of a query, and all but the equals of
// the agent that it asks for. It returns the matches with the copies, nil when
// there are none; the caller must hold mu.
func (x *Index) fold(match bm25.Bits, q *hub.Query, s *scratch) (whole bm25.Bits) {
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
	if !foldsFor(q) || match.CountAnd(x.copies.folded) == 0 {
		return nil
	}
	s.whole = append(s.whole[:0], match...)
	match.AndNot(x.copies.folded)
	return s.whole
}

// also says of a result which other portals have its equals; the caller must
// hold mu.
func (x *Index) also(r *hub.Result, doc uint32) {
	g := x.copies.of[doc]
	if g == nil || len(g.members) == 1 {
		return
	}
	if r.Copies = len(g.hosts); g.hosts[r.Agent.Portal] > 0 {
		r.Copies--
	}
	for _, m := range g.members {
		if len(r.CopiesAt) == min(r.Copies, hub.MaxCopiesAt) {
			break
		}
		if m.host != r.Agent.Portal && !slices.Contains(r.CopiesAt, m.host) {
			r.CopiesAt = append(r.CopiesAt, m.host)
		}
	}
}
