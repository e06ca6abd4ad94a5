// Package archive answers other portals from the stored records: heads, ranges of logs, proofs and
// summaries. It serves the records of a portal only if rules and policy allow it and its log is complete
// here.
package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// maxTries is how often a read is repeated if the data changes during it.
const maxTries = 3

// Archive serves the stored records of all portals, including this one. Records of portals that rules,
// policy or quarantine exclude are hidden; so are incomplete logs, because a portal that forwards a log
// is responsible for omissions. Hidden and missing records give the same answer. It is safe for
// concurrent use.
type Archive struct {
	network string
	own     record.PortalID
	replica federation.Replica
	gate    federation.Gatekeeper
	trees   *Trees

	mu    sync.Mutex // guards heads
	heads map[record.PortalID]held
}

// held is a cached result of Head, valid while the portal's standing is unchanged. Most requests ask for
// the same few heads.
type held struct {
	standing record.Standing
	told     federation.Told
	head     *record.Head
}

// maxHeldHeads is the size of the cache of heads, at about 3 KB each.
const maxHeldHeads = 1024

// New returns an Archive; own is the id of this portal.
func New(network string, own record.PortalID, replica federation.Replica, gate federation.Gatekeeper,
	trees *Trees) *Archive {
	return &Archive{network: network, own: own, replica: replica, gate: gate, trees: trees,
		heads: make(map[record.PortalID]held)}
}

func errAbsent() error {
	return fault.New(fault.NotFound, "Nothing is known of it here that may be shown.")
}

func errBusy() error {
	f := fault.New(fault.Unavailable, "The log of that portal is just being taken in here. Ask the portal itself, or again.")
	f.RetryAfter = 5 * time.Second
	return f
}

// isShown reports whether a portal's records may be served: it is this portal, or the gatekeeper allows
// it and it is not quarantined.
func (a *Archive) isShown(ctx context.Context, portal record.PortalID) (bool, error) {
	if portal == a.own {
		return true, nil
	}
	if _, ok := portal.Digest(); !ok || !a.gate.Decide(ctx, portal, "").Show {
		return false, nil
	}
	s, err := a.replica.Standing(ctx, portal)
	return err == nil && s.Ring != nil && !s.Quarantined, err
}

// isComplete reports whether all records that a portal's head covers are stored here.
func (a *Archive) isComplete(ctx context.Context, portal record.PortalID, head record.Version) (bool, error) {
	if portal == a.own {
		return true, nil
	}
	at, err := a.replica.Position(ctx, portal)
	return at == head, err
}

// Head returns the card and the head of a portal, in wire form and decoded; a NotFound fault if there is
// none or it is hidden.
func (a *Archive) Head(ctx context.Context, portal record.PortalID) (federation.Told, *record.Head, error) {
	ok, err := a.isShown(ctx, portal)
	if err != nil || !ok {
		return federation.Told{}, nil, orAbsent(err)
	}
	// The standing is read first, so the records read afterwards are at least as new as the cached
	// standing says.
	standing, err := a.replica.Standing(ctx, portal)
	if err != nil {
		return federation.Told{}, nil, err
	}
	a.mu.Lock()
	h := a.heads[portal]
	a.mu.Unlock()
	if h.head != nil && h.standing == standing && h.head.Expires > clock.Now().UnixMilli() {
		return h.told, h.head, nil
	}
	card, err := a.replica.Card(ctx, portal)
	if err != nil || card == nil {
		return federation.Told{}, nil, orAbsent(err)
	}
	head, wire, err := a.readHead(ctx, portal)
	if err != nil {
		return federation.Told{}, nil, err
	}
	h = held{standing, federation.Told{Card: card, Head: wire}, head}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.heads) >= maxHeldHeads {
		clear(a.heads)
	}
	a.heads[portal] = h
	return h.told, head, nil
}

func orAbsent(err error) error {
	if err != nil {
		return err
	}
	return errAbsent()
}

func (a *Archive) readHead(ctx context.Context, portal record.PortalID) (*record.Head, json.RawMessage, error) {
	wire, err := a.replica.Head(ctx, portal)
	if err != nil || wire == nil {
		return nil, nil, orAbsent(err)
	}
	r, err := record.Open(a.network, wire)
	if err != nil {
		return nil, nil, fmt.Errorf("head of %s: %w", portal, err)
	}
	head, ok := r.Body.(*record.Head)
	if !ok || head.Expires <= clock.Now().UnixMilli() {
		return nil, nil, errAbsent()
	}
	return head, wire, nil
}

// Diff answers a DiffQuestion: the heads that are newer here or unknown to the asker, and the marks of
// portals of which the asker has newer heads.
func (a *Archive) Diff(ctx context.Context, q federation.DiffQuestion) (federation.DiffAnswer, error) {
	from, to := federation.Mark(0), ^federation.Mark(0)
	if q.From != nil && q.To != nil {
		from, to = *q.From, *q.To
	} else if q.From != nil || q.To != nil {
		return federation.DiffAnswer{}, fault.New(fault.Invalid, "from and to come together.")
	}
	have, err := federation.ParseVector(q.Have)
	if err != nil {
		return federation.DiffAnswer{}, fault.New(fault.Invalid, "The vector of heads is malformed: %v.", err)
	}
	rows, err := a.replica.Heads(ctx)
	if err != nil {
		return federation.DiffAnswer{}, err
	}
	answer := federation.DiffAnswer{Heads: []federation.Told{}, Behind: []federation.Mark{}}
	here := make(map[federation.Mark]record.Version, len(rows))
	now, size := clock.Now().UnixMilli(), 0
	for _, row := range rows {
		m := federation.MarkOf(row.Portal)
		here[m] = row.Version
		if m < from || m > to || row.Expires <= now || row.Compare(have.Of(m)) <= 0 {
			continue
		}
		whole, err := a.isComplete(ctx, row.Portal, row.Version)
		if err != nil {
			return federation.DiffAnswer{}, err
		}
		if !whole && !q.Bare {
			continue
		}
		told, _, err := a.Head(ctx, row.Portal)
		if err != nil && fault.As(err).Kind == fault.NotFound {
			continue
		}
		if err != nil {
			return federation.DiffAnswer{}, err
		}
		told.Bare = !whole
		size += len(told.Card) + len(told.Head)
		if len(answer.Heads) == federation.MaxHeads || size > federation.MaxAnswer-(64<<10) {
			answer.More = true
			break
		}
		answer.Heads = append(answer.Heads, told)
	}
	hidden := a.hiddenMarks(ctx, rows)
	for _, h := range have {
		if len(answer.Behind) == federation.MaxHeads {
			answer.More = true
			break
		}
		if h.Mark >= from && h.Mark <= to && h.Mark != federation.MarkOf(a.own) && !hidden[h.Mark] &&
			h.Compare(here[h.Mark]) > 0 {
			answer.Behind = append(answer.Behind, h.Mark)
		}
	}
	return answer, nil
}

// hiddenMarks returns the marks of the portals among rows whose records may not be served.
func (a *Archive) hiddenMarks(ctx context.Context, rows []federation.HeadRow) map[federation.Mark]bool {
	out := make(map[federation.Mark]bool)
	for _, row := range rows {
		if ok, err := a.isShown(ctx, row.Portal); err != nil || !ok {
			out[federation.MarkOf(row.Portal)] = true
		}
	}
	return out
}

// Page is a range of a log or of leaves: the head that covers it, the entries, and whether more follow.
type Page struct {
	Head    json.RawMessage
	Entries [][]byte
	More    bool
}

// Log returns the entries of a portal's log with a seq above after, at most limit. after is ignored if
// epoch is not that of the head. An Unavailable fault means that the log is incomplete here at present.
func (a *Archive) Log(ctx context.Context, portal record.PortalID, epoch, after int64, limit int) (*Page, error) {
	for range maxTries {
		told, head, err := a.Head(ctx, portal)
		if err != nil {
			return nil, err
		}
		if ok, err := a.isComplete(ctx, portal, head.Version()); err != nil || !ok {
			return nil, orBusy(err)
		}
		from := after
		if epoch != head.Epoch {
			from = 0
		}
		entries, err := a.replica.Log(ctx, portal, from, limit+1, federation.MaxAnswer-(64<<10))
		if err != nil {
			return nil, err
		}
		// This portal stores newly signed records before the head that covers them; those are left out.
		cut := len(entries)
		for cut > 0 && seqOf(a.network, entries[cut-1]) >= head.Seq {
			cut--
		}
		p := &Page{Head: told.Head, Entries: entries[:min(cut, limit)]}
		switch {
		case cut < len(entries):
			p.More = cut > limit
		case len(entries) > limit:
			p.More = true
		case len(entries) > 0:
			// The read may have ended because of the byte limit, so look for one more entry.
			rest, err := a.replica.Log(ctx, portal, seqOf(a.network, entries[len(entries)-1]), 1, 1)
			if err != nil {
				return nil, err
			}
			p.More = len(rest) > 0 && seqOf(a.network, rest[0]) < head.Seq
		}
		// If the head changed meanwhile, the entries may not fit it: read again.
		if _, again, err := a.readHead(ctx, portal); err != nil || string(again) != string(told.Head) {
			continue
		}
		if ok, err := a.isComplete(ctx, portal, head.Version()); err != nil || !ok {
			return nil, orBusy(err)
		}
		return p, nil
	}
	return nil, errBusy()
}

func seqOf(network string, wire []byte) int64 {
	r, err := record.Open(network, wire)
	if err != nil {
		return 1<<53 - 1
	}
	return r.Seq
}

func orBusy(err error) error {
	if err != nil {
		return err
	}
	return errBusy()
}

// withTree calls f with a portal's newest head and the Merkle tree it describes; an Unavailable fault if
// the tree is incomplete here.
func (a *Archive) withTree(ctx context.Context, portal record.PortalID,
	f func(federation.Told, *record.Head, *record.Tree) error) error {
	for range maxTries {
		told, head, err := a.Head(ctx, portal)
		if err != nil {
			return err
		}
		var said error
		ok, err := a.trees.Use(ctx, head, nil, nil, func(t *record.Tree) { said = f(told, head, t) })
		if err != nil || ok {
			return firstError(err, said)
		}
	}
	return errBusy()
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Leaves returns at most limit leaves of a portal's tree in wire form, ordered by key, beginning with
// the first key not below from.
func (a *Archive) Leaves(ctx context.Context, portal record.PortalID, from record.Hash, limit int) (*Page, error) {
	var p *Page
	err := a.withTree(ctx, portal, func(told federation.Told, _ *record.Head, t *record.Tree) error {
		p = &Page{Head: told.Head}
		for key, hash := range t.Leaves(from) {
			if len(p.Entries) == limit {
				p.More = true
				break
			}
			line, err := json.Marshal([2]record.Hash{key, hash})
			if err != nil {
				return err
			}
			p.Entries = append(p.Entries, line)
		}
		return nil
	})
	return p, err
}

// Proven is an agent's record with the proof that its portal lists it, or the proof that the portal
// lists no such agent; Record is then nil.
type Proven struct {
	Card   json.RawMessage `json:"card,omitempty"`
	Head   json.RawMessage `json:"head"`
	Record json.RawMessage `json:"record,omitempty"`
	Proof  json.RawMessage `json:"proof"`
}

// Prove returns the proof that a portal lists the agent with that network id, with the agent's record,
// or the proof that it does not.
func (a *Archive) Prove(ctx context.Context, portal record.PortalID, agentID string) (*Proven, error) {
	key := record.AgentKey(agentID)
	var p *Proven
	err := a.withTree(ctx, portal, func(told federation.Told, head *record.Head, t *record.Tree) error {
		proof := t.Prove(key)
		b, err := proof.Encode()
		if err != nil {
			return err
		}
		p = &Proven{Card: told.Card, Head: told.Head, Proof: b}
		if proof.Leaf == nil {
			return nil
		}
		wire, err := a.replica.Agent(ctx, portal, key)
		if err != nil {
			return err
		}
		r, err := record.Open(a.network, wire)
		if err != nil || !head.Covers(r, proof) {
			return errBusy() // The record has changed since the head was read; the caller may retry.
		}
		p.Record = wire
		return nil
	})
	return p, err
}

// Fetch returns the head of a portal and, in wire form, its covered agent records with the given keys;
// keys beyond MaxFetch are ignored.
func (a *Archive) Fetch(ctx context.Context, portal record.PortalID, keys []record.Hash) (*Page, error) {
	told, _, err := a.Head(ctx, portal)
	if err != nil {
		return nil, err
	}
	p := &Page{Head: told.Head}
	read := a.replica.CoveredAgent
	// Records of this portal that no head covers yet are served too, because its next head will.
	if portal == a.own {
		read = a.replica.Agent
	}
	for _, key := range keys[:min(len(keys), federation.MaxFetch)] {
		wire, err := read(ctx, portal, key)
		if err != nil {
			return nil, err
		}
		if wire != nil {
			p.Entries = append(p.Entries, wire)
		}
	}
	return p, nil
}
