package replication

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

const (
	// Omitted is the reason of a fault: a portal passed a log on and left
	// something out, which its head proves.
	Omitted = "omitted"
	// maxMissing bounds the records that are asked for one by one; when more
	// are missing, the log is pulled anew from somebody else.
	maxMissing = 4096
	// maxLacking bounds the leaves that may be lacking while the rest counts:
	// records that nobody has, or that are refused here.
	maxLacking = 1000
	// repairEvery is how often leaves are asked for when it was of no use, at
	// first.
	repairEvery = 30 * time.Second
)

// errLeaves is of a source whose leaves are not those of its head.
var errLeaves = errors.New("its leaves are not those of its head")

// repair deals with a log that ended and does not add up. The leaves of a head,
// whoever gives them, prove what belongs there: what else is held is dropped,
// and what is missing is asked for elsewhere.
func (s *Syncer) repair(ctx context.Context, p *pull) error {
	s.mu.Lock()
	early := clock.Now().Before(p.f.repairAt)
	s.mu.Unlock()
	if early {
		return errors.New("the log does not add up, and was mended just before")
	}
	// The source has to answer for itself; then anybody will do.
	list := []record.PortalID{p.source}
	list = append(list, s.candidates(p.portal, p.f, list)...)
	err := error(nil)
	var tree *record.Tree
	for _, from := range list {
		var head signedHead
		if tree, head, err = s.leaves(ctx, p, from); err == nil {
			p.head = head
			break
		}
		if errors.Is(err, errForked) || ctx.Err() != nil {
			return err
		}
	}
	if err != nil {
		s.postpone(p)
		return fmt.Errorf("no leaves: %w", err)
	}
	missing, err := s.compare(ctx, p, tree)
	if err != nil {
		return err
	}
	if len(missing) > maxMissing {
		// Prove it with some of them, then begin anew elsewhere.
		if err := s.fetchMissing(ctx, p, list, firstOf(missing, federation.MaxFetch)); err != nil {
			return err
		}
		s.postpone(p)
		if err := s.Replica.SetPosition(ctx, p.portal, record.Version{Epoch: p.head.Epoch}); err != nil {
			return err
		}
		return errors.New("too much is missing in its log")
	}
	if err := s.fetchMissing(ctx, p, list, missing); err != nil {
		return err
	}
	s.mu.Lock()
	if len(missing) == 0 {
		p.f.repairs, p.f.repairAt = 0, time.Time{}
	}
	s.mu.Unlock()
	if len(missing) > 0 {
		s.postpone(p)
	}
	if len(missing) > maxLacking {
		return fmt.Errorf("%d records are missing and nobody has them", len(missing))
	}
	whole, err := s.Trees.Use(ctx, p.head.Head, nil, missing, nil)
	if err != nil {
		return err
	}
	if !whole {
		return errors.New("the log has changed while it was mended")
	}
	p.overflow = true // not all that changed is in p.changed
	if len(missing) == 0 {
		missing = nil
	}
	return s.complete(ctx, p, missing)
}

// postpone says when mending is worth another try.
func (s *Syncer) postpone(p *pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.f.repairAt = clock.Now().Add(min(repairEvery<<min(p.f.repairs, 8), time.Hour))
	p.f.repairs++
}

func firstOf(m map[record.Hash]record.Hash, n int) map[record.Hash]record.Hash {
	out := make(map[record.Hash]record.Hash, n)
	for key, hash := range m {
		if len(out) == n {
			break
		}
		out[key] = hash
	}
	return out
}

// leaves asks a portal for the leaves of the head that it has. What it returns
// adds up to that head, so it does not matter who said it.
func (s *Syncer) leaves(ctx context.Context, p *pull, from record.PortalID) (*record.Tree, signedHead, error) {
	const tries = 3
	for range tries {
		tree, head, err := s.leavesOnce(ctx, p, from)
		if err != nil {
			return nil, signedHead{}, err
		}
		if head.Head == nil {
			continue // it got a newer one meanwhile
		}
		if !head.Describes(tree) {
			s.Registry.Fault(from, string(record.NotConsistent))
			s.distrust(from)
			return nil, signedHead{}, errLeaves
		}
		return tree, head, nil
	}
	return nil, signedHead{}, errors.New("its head changes all the time")
}

func (s *Syncer) leavesOnce(ctx context.Context, p *pull, from record.PortalID) (*record.Tree, signedHead, error) {
	tree, next := new(record.Tree), record.Hash{}
	var head signedHead
	for {
		var more bool
		err := s.work.do(ctx, func() error {
			path := fmt.Sprintf("/peering/v1/portals/%s/leaves?from=%s&limit=%d", p.portal, next, federation.MaxEntries)
			a, err := s.ask(ctx, from, http.MethodGet, path, nil, longTimeout, maxLong)
			if err != nil {
				return err
			}
			first, lines, err := readLines(a, federation.MaxEntries)
			if err != nil {
				s.Registry.Fault(from, "malformed")
				return err
			}
			h, err := s.takeFirst(ctx, p.portal, from, first)
			if err != nil {
				return err
			}
			if head.Head != nil && head.Version() != h.Version() {
				head = signedHead{}
				return nil
			}
			head, more = h, a.Header.Get("Agentsite-More") == "true"
			for _, line := range lines {
				key, hash, err := readLeaf(line)
				if err != nil || int64(tree.Len()) >= h.Count {
					s.Registry.Fault(from, "malformed")
					return errLeaves
				}
				tree.Set(key, hash)
				next = after(key)
			}
			if more && len(lines) == 0 {
				s.Registry.Fault(from, "malformed")
				return errLeaves
			}
			return nil
		})
		if err != nil || head.Head == nil || !more {
			return tree, head, err
		}
	}
}

// readLeaf reads ["key","hash"].
func readLeaf(line []byte) (key, hash record.Hash, err error) {
	const each = 43
	if len(line) != 2*each+7 || string(line[:2]) != `["` || string(line[2+each:5+each]) != `","` || string(line[5+2*each:]) != `"]` {
		return key, hash, errLeaves
	}
	if err := key.UnmarshalText(line[2 : 2+each]); err != nil {
		return key, hash, err
	}
	return key, hash, hash.UnmarshalText(line[5+each : 5+2*each])
}

// after returns the key after a key.
func after(key record.Hash) record.Hash {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}

// compare drops what is held and no leaf, and returns the leaves whose records
// are not held.
func (s *Syncer) compare(ctx context.Context, p *pull, tree *record.Tree) (missing map[record.Hash]record.Hash, err error) {
	held := make(map[record.Hash]record.Hash)
	var extra []record.Hash
	err = s.Replica.Leaves(ctx, p.portal, func(key, hash record.Hash) bool {
		if _, ok := tree.Get(key); ok {
			held[key] = hash
		} else {
			extra = append(extra, key)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	missing = make(map[record.Hash]record.Hash)
	for key, hash := range tree.Leaves(record.Hash{}) {
		if held[key] != hash {
			missing[key] = hash
		}
	}
	if len(extra) == 0 {
		return missing, nil
	}
	var ids []string
	for _, key := range extra {
		wire, err := s.Replica.Agent(ctx, p.portal, key)
		if err != nil {
			return nil, err
		}
		if id := agentIDOf(s.Self.Network(), wire); id != "" {
			ids = append(ids, id)
		}
	}
	if err := s.Replica.Omit(ctx, p.portal, extra); err != nil {
		return nil, err
	}
	s.Directory.Remove(p.portal, ids)
	return missing, nil
}

// fetchMissing asks others than the source first, and the source last, for
// records by their keys, and takes those that it gets out of missing. Whoever
// gave the piece of the log where such a record belongs left it out.
func (s *Syncer) fetchMissing(ctx context.Context, p *pull, list []record.PortalID, missing map[record.Hash]record.Hash) error {
	for i := range list {
		from := list[(i+1)%len(list)] // list begins with the source
		if len(missing) == 0 {
			return nil
		}
		if err := s.fetchFrom(ctx, p, from, missing); err != nil {
			if errors.Is(err, errForked) || ctx.Err() != nil {
				return err
			}
			s.Log.Debug("missing records not fetched", "portal", p.portal, "from", from, "error", err)
		}
	}
	return nil
}

func (s *Syncer) fetchFrom(ctx context.Context, p *pull, from record.PortalID, missing map[record.Hash]record.Hash) error {
	keys := make([]record.Hash, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	for chunk := range slices.Chunk(keys, federation.MaxFetch) {
		q := make(url.Values)
		for _, key := range chunk {
			q.Add("key", key.String())
		}
		err := s.work.do(ctx, func() error {
			a, err := s.ask(ctx, from, http.MethodGet, "/peering/v1/portals/"+string(p.portal)+"/agents?"+q.Encode(), nil, longTimeout, maxLong)
			if err != nil {
				return err
			}
			first, wires, err := readLines(a, federation.MaxFetch)
			if err != nil {
				s.Registry.Fault(from, "malformed")
				return err
			}
			if _, err := s.takeFirst(ctx, p.portal, from, first); err != nil {
				return err
			}
			return s.takeMissing(ctx, p, from, wires, missing)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Syncer) takeMissing(ctx context.Context, p *pull, from record.PortalID, wires [][]byte, missing map[record.Hash]record.Hash) error {
	kept, results, err := s.keep(ctx, p.portal, wires)
	if err != nil {
		return err
	}
	s.keptBeside(p, len(kept)) // shown once all adds up
	for _, res := range results {
		if res.Err != nil {
			if err := s.blame(ctx, &pull{portal: p.portal, source: from}, res.Err); err != nil {
				return err
			}
			continue
		}
		key := keyOf(res.Record)
		if missing[key] != res.Record.Hash {
			continue
		}
		delete(missing, key)
		if res.Fresh {
			s.convict(p, res.Record)
		}
	}
	return nil
}

// convict counts a fault against who gave the piece of the log in which a
// record is missing. The record is a leaf of a head that is newer than the
// piece's or the same, and is older than that: so it was a leaf of that too.
func (s *Syncer) convict(p *pull, r *record.Record) {
	s.mu.Lock()
	var liar record.PortalID
	for i, sp := range p.f.spans {
		if sp.epoch == r.Epoch && r.Seq > sp.after && r.Seq <= sp.last {
			liar = sp.source
			p.f.spans = slices.Delete(p.f.spans, i, i+1) // one fault each
			break
		}
	}
	s.mu.Unlock()
	if liar == "" {
		return
	}
	s.Registry.Fault(liar, Omitted)
	s.distrust(liar)
	s.Log.Warn("a portal passed a log on and left something out", "portal", liar, "log", p.portal)
}

// distrust has others asked first for a while.
func (s *Syncer) distrust(portal record.PortalID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer(portal).distrusted = clock.Now().Add(distrusted)
}
