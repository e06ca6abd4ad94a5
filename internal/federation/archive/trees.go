package archive

import (
	"context"
	"fmt"
	"sync"

	"agentsite/internal/federation"
	"agentsite/internal/record"
)

// maxTreeLeaves bounds the cached trees together: 200,000 leaves take some 22 MB. Building the
// tree of 1,000 agents takes a few milliseconds, so small portals need no cache.
const maxTreeLeaves = 200_000

// Trees caches the Merkle trees of recently used portals. A cached tree may be behind the Replica;
// its users compare it with a head, and it is rebuilt when they differ. It is safe for concurrent
// use.
type Trees struct {
	replica federation.Replica

	mu     sync.Mutex // guards the rest
	trees  map[record.PortalID]*keptTree
	leaves int // of all that are kept
	turn   int64
}

type keptTree struct {
	mu   sync.Mutex // guards tree
	tree *record.Tree
	size int   // as counted in leaves, guarded by Trees.mu
	used int64 // guarded by Trees.mu
}

// NewTrees returns the trees of a replica's records.
func NewTrees(replica federation.Replica) *Trees {
	return &Trees{replica: replica, trees: make(map[record.PortalID]*keptTree)}
}

// Use calls f with the tree of a portal's held records if the head describes it, and reports
// whether it does. changed are the entries stored since the last use of the tree, in order; they
// save a rebuild and may be nil. f may be nil, must not keep the tree and not change it. lacking
// are leaves that are known to be missing here; they count as if they were held.
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

// Forget drops the tree of a portal. It must be called when records were stored without a call of
// Use: a tree without them could fit a head that does not cover them.
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

// takeTree returns the place of a portal's tree. While it is in use, other callers wait for the
// same one.
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

// putTree counts a tree after use, and lets those go that were not used for
// longest while there are too many. The caller holds k.mu.
func (t *Trees) putTree(portal record.PortalID, k *keptTree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trees[portal] != k {
		return // it was let go meanwhile
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
