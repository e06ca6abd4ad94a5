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
	// Omitted is the reason of a fault: a portal passed on a log without a record that its head proves.
	Omitted = "omitted"
	// maxMissing bounds the records that are requested one by one; when more are missing, the log is
	// pulled anew from another source.
	maxMissing = 4096
	// maxMissingLeaves bounds the leaves that may be missing while the rest counts: records that no source has,
	// or that are refused here.
	maxMissingLeaves = 1000
	// repairEvery is the first interval at which leaves are requested again after a repair without effect.
	repairEvery = 30 * time.Second
)

// errLeaves is returned for a source that sent leaves that do not add up to its head.
var errLeaves = errors.New("its leaves are not those of its head")

// repairLog handles a log that ended and does not add up. The leaves of a head prove by its root which
// records belong to it, whichever portal sends them: other records are dropped, and missing ones are
// requested from other portals.
func (s *Syncer) repairLog(ctx context.Context, p *pull) (o outcome, err error) {
	s.mu.Lock()
	early := clock.Now().Before(p.part.repairAt)
	s.mu.Unlock()
	if early {
		return o, errors.New("the log does not add up, and was mended just before")
	}
	// The source has to answer for itself first; after that any portal may.
	list := []record.PortalID{p.source}
	list = append(list, s.listCandidates(p.portal, list)...)
	var tree *record.Tree
	for _, from := range list {
		var head signedHead
		if tree, head, err = s.fetchLeaves(ctx, p, from); err == nil {
			p.cover = head
			break
		}
		if errors.Is(err, errForked) || ctx.Err() != nil {
			return o, err
		}
	}
	if err != nil {
		s.postponeRepair(p)
		return o, fmt.Errorf("no leaves: %w", err)
	}
	missing, err := s.compareTree(ctx, p, tree)
	if err != nil {
		return o, err
	}
	if len(missing) > maxMissing {
		// Some of them prove it; after that the log is pulled anew from another source.
		if err := s.fetchMissing(ctx, p, list, firstOf(missing, federation.MaxFetch)); err != nil {
			return o, err
		}
		s.postponeRepair(p)
		if err := s.Replica.SetPosition(ctx, p.id, record.Version{Epoch: p.cover.Epoch}); err != nil {
			return o, err
		}
		return o, errors.New("too much is missing in its log")
	}
	if err := s.fetchMissing(ctx, p, list, missing); err != nil {
		return o, err
	}
	s.mu.Lock()
	if len(missing) == 0 {
		p.part.repairs, p.part.repairAt = 0, time.Time{}
	}
	s.mu.Unlock()
	if len(missing) > 0 {
		s.postponeRepair(p)
	}
	if len(missing) > maxMissingLeaves {
		return o, fmt.Errorf("%d records are missing and nobody has them", len(missing))
	}
	whole, err := s.Trees.Use(ctx, p.cover.Head, nil, missing, nil)
	if err != nil {
		return o, err
	}
	if !whole {
		return o, errors.New("the log has changed while it was mended")
	}
	p.overflow = true // p.changed is incomplete
	if len(missing) == 0 {
		missing = nil
	}
	return s.completePull(ctx, p, missing)
}

// postponeRepair sets the time of the next repair.
func (s *Syncer) postponeRepair(p *pull) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.part.repairAt = clock.Now().Add(min(repairEvery<<min(p.part.repairs, 8), time.Hour))
	p.part.repairs++
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

// fetchLeaves requests the leaves of the portal's head. The result adds up to that head, so its sender does
// not matter.
func (s *Syncer) fetchLeaves(ctx context.Context, p *pull, from record.PortalID) (*record.Tree, signedHead, error) {
	const tries = 3
	for range tries {
		tree, head, err := s.leavesOnce(ctx, p, from)
		if err != nil {
			return nil, signedHead{}, err
		}
		if head.Head == nil {
			continue // it received a newer head meanwhile
		}
		if !head.Describes(tree) {
			s.Registry.Fault(from, string(record.NotConsistent))
			s.distrustSource(from)
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
		err := s.work.runTask(ctx, func() error {
			path := fmt.Sprintf("/peering/v1/portals/%s/leaves?from=%s&limit=%d", p.id, next, federation.MaxEntries)
			a, err := s.askPortal(ctx, from, http.MethodGet, path, nil, longTimeout, maxLong)
			if err != nil {
				return err
			}
			first, lines, err := readLines(a, federation.MaxEntries)
			if err != nil {
				s.Registry.Fault(from, "malformed")
				return err
			}
			h, err := s.takeFirst(ctx, p.id, from, first)
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
				next = keyAfter(key)
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

// readLeaf decodes a line ["key","hash"].
func readLeaf(line []byte) (key, hash record.Hash, err error) {
	const each = 43
	if len(line) != 2*each+7 || string(line[:2]) != `["` || string(line[2+each:5+each]) != `","` ||
		string(line[5+2*each:]) != `"]` {
		return key, hash, errLeaves
	}
	if err := key.UnmarshalText(line[2 : 2+each]); err != nil {
		return key, hash, err
	}
	return key, hash, hash.UnmarshalText(line[5+each : 5+2*each])
}

// keyAfter returns the key that follows a key.
func keyAfter(key record.Hash) record.Hash {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}

// compareTree deletes records that are not leaves, and returns the leaves without a record.
func (s *Syncer) compareTree(ctx context.Context, p *pull, tree *record.Tree) (missing map[record.Hash]record.Hash,
	err error) {
	held := make(map[record.Hash]record.Hash)
	var extra []record.Hash
	err = s.Replica.Leaves(ctx, p.id, func(key, hash record.Hash) bool {
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
		wire, err := s.Replica.Agent(ctx, p.id, key)
		if err != nil {
			return nil, err
		}
		if id := agentIDOf(s.Self.Network(), wire); id != "" {
			ids = append(ids, id)
		}
	}
	if err := s.Replica.Omit(ctx, p.id, extra); err != nil {
		return nil, err
	}
	s.Directory.Remove(p.id, ids)
	return missing, nil
}

// fetchMissing requests records by their keys from other portals first and from the source last, and
// removes those it receives from missing. The sender of the piece of the log with the place of such a
// record omitted it.
func (s *Syncer) fetchMissing(ctx context.Context, p *pull, list []record.PortalID,
	missing map[record.Hash]record.Hash) error {
	for i := range list {
		from := list[(i+1)%len(list)] // list begins with the source
		if len(missing) == 0 {
			return nil
		}
		if err := s.fetchFrom(ctx, p, from, missing); err != nil {
			if errors.Is(err, errForked) || ctx.Err() != nil {
				return err
			}
			s.Log.Debug("missing records not fetched", "portal", p.id, "from", from, "error", err)
		}
	}
	return nil
}

func (s *Syncer) fetchFrom(ctx context.Context, p *pull, from record.PortalID,
	missing map[record.Hash]record.Hash) error {
	keys := make([]record.Hash, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	for chunk := range slices.Chunk(keys, federation.MaxFetch) {
		q := make(url.Values)
		for _, key := range chunk {
			q.Add("key", key.String())
		}
		err := s.work.runTask(ctx, func() error {
			a, err := s.askPortal(ctx, from, http.MethodGet,
				"/peering/v1/portals/"+string(p.id)+"/agents?"+q.Encode(), nil, longTimeout, maxLong)
			if err != nil {
				return err
			}
			first, wires, err := readLines(a, federation.MaxFetch)
			if err != nil {
				s.Registry.Fault(from, "malformed")
				return err
			}
			if _, err := s.takeFirst(ctx, p.id, from, first); err != nil {
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

func (s *Syncer) takeMissing(ctx context.Context, p *pull, from record.PortalID, wires [][]byte,
	missing map[record.Hash]record.Hash) error {
	kept, results, err := s.keepEntries(ctx, p.id, wires)
	if err != nil {
		return err
	}
	s.keptBeside(p, len(kept)) // shown when the log adds up
	for _, res := range results {
		if res.Err != nil {
			if err := s.blameSource(ctx, &pull{portal: p.portal, source: from}, res.Err); err != nil {
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
			s.penalizeOmission(p, res.Record)
		}
	}
	return nil
}

// penalizeOmission counts a fault against the sender of the piece of the log in which a record is missing. The
// record is a leaf of a head that is as new as the piece's or newer, and is older than the piece's
// head: so it was a leaf of that head too.
func (s *Syncer) penalizeOmission(p *pull, r *record.Record) {
	s.mu.Lock()
	var liar record.PortalID
	for i, sp := range p.pull.ranges {
		if sp.epoch == r.Epoch && r.Seq > sp.after && r.Seq <= sp.last {
			liar = sp.source
			p.pull.ranges = slices.Delete(p.pull.ranges, i, i+1) // one fault each
			break
		}
	}
	s.mu.Unlock()
	if liar == "" {
		return
	}
	s.Registry.Fault(liar, Omitted)
	s.distrustSource(liar)
	s.Log.Warn("a portal passed a log on and left something out", "portal", liar, "log", p.id)
}

// distrustSource prefers other sources to a portal for a while.
func (s *Syncer) distrustSource(portal record.PortalID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peerOf(portal).distrusted = clock.Now().Add(distrusted)
}
