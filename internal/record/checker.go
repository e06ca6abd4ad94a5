package record

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// maxVerified is how many valid signatures a Checker remembers in each of its two generations, about 50
// bytes each.
const maxVerified = 8192

// maxOpened limits the decoded records that a Checker keeps in each of its two generations, by the bytes
// of their wire form; a decoded record takes about three times as many.
const maxOpened = 4 << 20

// Checker checks records of agents that are shown once and not kept, such as search results: many
// at once, and repeated ones without decoding them or checking their signatures again. It is safe
// for concurrent use.
type Checker struct {
	gate *Gate

	mu       sync.Mutex // guards the fields below
	verified map[Hash]struct{}
	older    map[Hash]struct{}
	// Valid records by the hash of their wire form. opened is the current generation, before the
	// previous one.
	opened, before map[Hash]*Record
	bytes          int // total length of the wire forms in opened
}

// NewChecker returns an empty Checker that uses the memory and the network of g.
func NewChecker(g *Gate) *Checker {
	return &Checker{gate: g, verified: make(map[Hash]struct{}), opened: make(map[Hash]*Record)}
}

// Check is Gate.Check for each of some records, at most MaxBatch, which do not affect each other.
// Time, keys, versions and quarantine are checked each time; the validity of a signature never
// changes. The results are shared and must not be changed.
func (k *Checker) Check(ctx context.Context, wires [][]byte, now time.Time) ([]Result, error) {
	if len(wires) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(wires), MaxBatch)
	}
	claims, ids := make([]claim, len(wires)), make([]Hash, len(wires))
	for i, wire := range wires {
		c := &claims[i]
		ids[i] = sha256.Sum256(wire)
		if c.Record = k.getRecord(ids[i]); c.Record != nil {
			continue
		}
		if c.Record, c.err = Open(k.gate.network, wire); c.err == nil && c.Type != TypeAgent {
			c.err = refuse(NotConsistent, "it is a %s, not an agent", c.Type)
		}
	}
	at := now.UnixMilli()
	k.gate.lookAll(ctx, claims, at)
	results := make([]Result, len(wires))
	for i := range claims {
		c := &claims[i]
		if c.err == nil && !c.known {
			c.err = k.verifyClaim(c, at)
		}
		if c.err == nil && !c.known && c.isConflict() {
			c.err = refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
		}
		if results[i].Err = c.err; c.err == nil {
			results[i].Record = c.Record
			k.putRecord(ids[i], c.Record)
		}
	}
	return results, ctx.Err()
}

// getRecord returns the valid record with a wire hash from either generation, or nil.
func (k *Checker) getRecord(id Hash) *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.opened[id]; r != nil {
		return r
	}
	return k.before[id]
}

func (k *Checker) putRecord(id Hash, r *Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened[id] != nil {
		return
	}
	if k.bytes += len(r.Wire); k.bytes > maxOpened {
		k.opened, k.before, k.bytes = make(map[Hash]*Record), k.opened, len(r.Wire)
	}
	k.opened[id] = r
}

// verifyClaim is Gate.verifyClaim, except for signatures that are known to be valid.
func (k *Checker) verifyClaim(c *claim, now int64) error {
	h := sha256.New()
	h.Write(c.key[:])
	h.Write(c.Hash[:]) // Hash covers all signed bytes
	h.Write(c.sig[:])
	var id Hash
	h.Sum(id[:0])
	k.mu.Lock()
	_, known := k.verified[id]
	if !known {
		_, known = k.older[id]
	}
	k.mu.Unlock()
	if !known {
		if err := k.gate.verifyClaim(c, now); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.verified) >= maxVerified {
		k.verified, k.older = make(map[Hash]struct{}), k.verified
	}
	k.verified[id] = struct{}{}
	return nil
}
