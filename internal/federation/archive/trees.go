package archive

import (
	"context"
	"fmt"
	"sync"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// maxTreeLeaves is the size of the cache of trees: 200,000 leaves take about 22 MB. Building the tree of
// 1,000 agents takes a few milliseconds, so small portals need no cache.
const maxTreeLeaves = 200_000

// Trees caches the Merkle trees of recently used portals. A cached tree may be older than the Replica;
// Use compares it with a head and rebuilds it if they differ. It is safe for concurrent use.
type Trees struct {
	replica federation.Replica

	mu     sync.Mutex // guards the fields below
	trees  map[record.PortalID]*keptTree
	leaves int // leaves of all cached trees, see keptTree.size
	turn   int64
}

type keptTree struct {
	mu   sync.Mutex // guards tree
	tree *record.Tree
	size int   // leaves counted for this tree in Trees.leaves, guarded by Trees.mu
	used int64 // turn of the last use, guarded by Trees.mu
}

// NewTrees returns an empty cache for the trees of a replica's records.
func NewTrees(replica federation.Replica) *Trees {
	return &Trees{replica: replica, trees: make(map[record.PortalID]*keptTree)}
}

// Use calls f with the tree of a portal's stored records if head describes it, and reports whether it
// does. changed are the records stored since the last Use, in order; they save a rebuild and may be nil.
// lacking are leaves known to be missing here, which are added to the tree. f may be nil; it must
// neither keep nor change the tree.
func (t *Trees) Use(ctx context.Context, head *record.Head, changed []*record.Record,
	lacking map[record.Hash]record.Hash, f func(*record.Tree)) (bool, error) {
	k := t.takeTree(head.Portal)
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { t.putTree(head.Portal, k) }()
	if k.tree != nil {
		for _, r := range changed {
			k.tree.Apply(r)
		}
		for key, hash := range lacking {
			k.tree.Set(key, hash)
		}
	}
	if k.tree == nil || !head.Describes(k.tree) {
		tree, err := t.buildTree(ctx, head.Portal)
		if err != nil {
			k.tree = nil
			return false, err
		}
		for key, hash := range lacking {
			tree.Set(key, hash)
		}
		k.tree = tree
	}
	if !head.Describes(k.tree) {
		return false, nil
	}
	if f != nil {
		f(k.tree)
	}
	return true, nil
}

// Forget drops the cached tree of a portal. It must be called after records were stored without a call
// of Use, because the outdated tree could fit a head that does not cover them.
func (t *Trees) Forget(portal record.PortalID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.trees[portal]; k != nil {
		t.leaves -= k.size
		delete(t.trees, portal)
	}
}

func (t *Trees) buildTree(ctx context.Context, portal record.PortalID) (*record.Tree, error) {
	tree := new(record.Tree)
	err := t.replica.Leaves(ctx, portal, func(key, hash record.Hash) bool {
		tree.Set(key, hash)
		return tree.Len() <= record.MaxAgents
	})
	if err != nil {
		return nil, fmt.Errorf("leaves of %s: %w", portal, err)
	}
	return tree, nil
}

// takeTree returns the cache entry of a portal, creating it if needed. Callers for the same portal share
// the entry and lock its mu in turn.
func (t *Trees) takeTree(portal record.PortalID) *keptTree {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.trees[portal]
	if k == nil {
		k = new(keptTree)
		t.trees[portal] = k
	}
	t.turn++
	k.used = t.turn
	return k
}

// putTree counts the size of a tree after its use and drops the least recently used trees while the
// cache is too large. The caller holds k.mu.
func (t *Trees) putTree(portal record.PortalID, k *keptTree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trees[portal] != k {
		return // the entry was dropped from the cache during its use
	}
	size := 1
	if k.tree != nil {
		size += k.tree.Len()
	}
	t.leaves += size - k.size
	k.size = size
	for t.leaves > maxTreeLeaves && len(t.trees) > 1 {
		var oldest record.PortalID
		for id, o := range t.trees {
			if oldest == "" || o.used < t.trees[oldest].used {
				oldest = id
			}
		}
		t.leaves -= t.trees[oldest].size
		delete(t.trees, oldest)
	}
}
