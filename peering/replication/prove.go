package replication

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// maxMissing bounds the records that may be missing from a log that is used anyway: records that no source
// has, or that are refused here.
const maxMissing = 1000

// errLeaves is returned for a source with leaves that do not have the root hash of its head.
var errLeaves = errors.New("its leaves are not those of its head")

// proveLog is used when the logs of all sources differ from the head's root hash: one record that no source
// has, or that is refused here, must not hide all others. It fetches the leaves of the head instead. Their
// root hash proves which records count, whichever portal sends them.
func (p *puller) proveLog(ctx context.Context, d federation.Decision) outcome {
	o := outcome{event: pullStopped} // the default if no source may be asked now
	for _, source := range p.s.listSources(p.portal, nil, false) {
		p.s.mu.Lock()
		may := p.part.askedLeaves.mayAsk(source, clock.Now())
		p.s.mu.Unlock()
		if !may {
			continue
		}
		one := &pull{puller: p, source: source, limits: d, overflow: true}
		proved, err := one.proveFrom(ctx)
		if err == nil {
			return proved
		}
		if o = failedBy(fmt.Errorf("no leaves from %s: %w", source, err)); errors.Is(err, errForked) || ctx.Err() != nil {
			break
		}
	}
	return o
}

// proveFrom fetches the leaves of the head from the source, deletes the held records that are not among
// them, and completes the log without the records that are missing.
func (p *pull) proveFrom(ctx context.Context) (o outcome, err error) {
	p.s.mu.Lock()
	p.dropsThen = p.drops
	doubted := p.part.doubted
	p.s.mu.Unlock()
	if p.at, err = p.s.Replica.Position(ctx, p.id); err != nil {
		return o, err
	}
	tree, err := p.fetchLeaves(ctx)
	if err != nil {
		return o, err
	}
	p.s.mu.Lock()
	p.part.askedLeaves.noteAsked(p.source, clock.Now())
	p.s.mu.Unlock()
	if p.cover.Version() != doubted {
		return o, errors.New("the portal has a newer head")
	}
	if !p.cover.Describes(tree) {
		p.s.Registry.Fault(p.source, string(record.NotConsistent))
		p.s.peers.distrustSource(p.source)
		return o, errLeaves
	}
	if p.missing, err = p.dropOthers(ctx, tree); err != nil {
		return o, err
	}
	if len(p.missing) > maxMissing {
		return o, fmt.Errorf("%d records are missing and no source has them", len(p.missing))
	}
	p.s.Trees.Forget(p.id)
	ok, err := p.s.Trees.Use(ctx, p.cover.Head, nil, p.missing, nil)
	if err != nil {
		return o, err
	}
	if !ok {
		return o, errors.New("the log has changed meanwhile")
	}
	return p.completeLog(ctx)
}

// fetchLeaves requests all leaves of the portal's head, page by page. It starts over when the head changes
// in between, at most three times.
func (p *pull) fetchLeaves(ctx context.Context) (*record.Tree, error) {
	const tries = 3
	for range tries {
		tree, from := new(record.Tree), record.Hash{}
		p.cover = signedHead{}
		for more := true; more; {
			var same bool
			var err error
			if from, same, more, err = p.takeLeaves(ctx, tree, from); err != nil {
				return nil, err
			}
			if !same {
				break
			}
			if !more {
				return tree, nil
			}
		}
	}
	return nil, errors.New("its head changes all the time")
}

// takeLeaves requests one page of leaves, from a key on, and adds them to the tree. If more is true, next
// is the key of the following page. same is false when the page belongs to another head than the pages
// before.
func (p *pull) takeLeaves(ctx context.Context, tree *record.Tree, from record.Hash) (next record.Hash, same, more bool,
	err error) {
	leave, err := p.s.work.enterSlot(ctx)
	if err != nil {
		return next, false, false, err
	}
	defer leave()
	path := fmt.Sprintf("/peering/v1/portals/%s/leaves?from=%s&limit=%d", p.id, from, federation.MaxEntries)
	a, err := p.s.askPortal(ctx, p.source, http.MethodGet, path, nil, longTimeout, maxLong)
	if err != nil {
		return next, false, false, err
	}
	first, lines, err := readLines(a, federation.MaxEntries)
	if err != nil {
		p.s.Registry.Fault(p.source, "malformed")
		return next, false, false, err
	}
	head, err := p.s.takeFirst(ctx, p.id, p.source, first)
	if err != nil {
		return next, false, false, err
	}
	if p.cover.Head != nil && p.cover.Version() != head.Version() {
		return next, false, false, nil
	}
	p.cover, more = head, a.Header.Get("Agentsite-More") == "true"
	for _, line := range lines {
		key, hash, err := readLeaf(line)
		if err != nil || int64(tree.Len()) >= head.Count {
			p.s.Registry.Fault(p.source, "malformed")
			return next, false, false, errLeaves
		}
		tree.Set(key, hash)
		next = keyAfter(key)
	}
	if more && len(lines) == 0 {
		p.s.Registry.Fault(p.source, "malformed")
		return next, false, false, errLeaves
	}
	return next, true, more, nil
}

// readLeaf decodes the line ["key","hash"] with both hashes in base64.
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

// keyAfter returns the key that follows a key in order; the last key wraps around to zero.
func keyAfter(key record.Hash) record.Hash {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i]++; key[i] != 0 {
			break
		}
	}
	return key
}

// dropOthers deletes the held records of agents that are not in the tree, and returns the leaves (key and
// hash) of the tree without a held record.
func (p *pull) dropOthers(ctx context.Context, tree *record.Tree) (missing map[record.Hash]record.Hash, err error) {
	held := make(map[record.Hash]record.Hash)
	var others []record.Hash
	err = p.s.Replica.Leaves(ctx, p.id, func(key, hash record.Hash) bool {
		if _, ok := tree.Get(key); ok {
			held[key] = hash
		} else {
			others = append(others, key)
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
	if len(others) == 0 {
		return missing, nil
	}
	var ids []string
	for _, key := range others {
		wire, err := p.s.Replica.Agent(ctx, p.id, key)
		if err != nil {
			return nil, err
		}
		if id := agentIDOf(p.s.Self.Network(), wire); id != "" {
			ids = append(ids, id)
		}
	}
	if err := p.s.Replica.Omit(ctx, p.id, others); err != nil {
		return nil, err
	}
	p.s.Directory.Remove(p.id, ids)
	return missing, nil
}
