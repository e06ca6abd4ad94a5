package record

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// maxVerified bounds the signatures that a Checker remembers, in each of two
// halves, at some 50 bytes.
const maxVerified = 8192

// maxOpened bounds the records that a Checker remembers, in each of two halves,
// by the bytes of their wires; each takes about three times as many.
const maxOpened = 4 << 20

// Checker checks agents' records that are shown once and not kept, as answers to
// searches are: many at once, and those that come again without reading them or
// looking at their signatures again. It is safe for concurrent use.
type Checker struct {
	gate *Gate

	mu       sync.Mutex // guards the rest
	verified map[Hash]struct{}
	older    map[Hash]struct{}
	// Records that held, by the hashes of their wires.
	opened, before map[Hash]*Record
	bytes          int // of the wires in opened
}

// NewChecker returns the Checker of a Gate.
func NewChecker(g *Gate) *Checker {
	return &Checker{gate: g, verified: make(map[Hash]struct{}), opened: make(map[Hash]*Record)}
}

// Check is Gate.Check for each of some records, at most MaxBatch, which spoil
// nothing for each other. Time, keys, versions and quarantine are looked at
// anew each time; whether a signature holds never changes. What it returns is
// shared: nobody may change it.
func (k *Checker) Check(ctx context.Context, wires [][]byte, now time.Time) ([]Result, error) {
	if len(wires) > MaxBatch {
		return nil, fmt.Errorf("%d records at once are more than %d", len(wires), MaxBatch)
	}
	claims, ids := make([]claim, len(wires)), make([]Hash, len(wires))
	for i, wire := range wires {
		c := &claims[i]
		ids[i] = sha256.Sum256(wire)
		if c.Record = k.get(ids[i]); c.Record != nil {
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
			c.err = k.verify(c, at)
		}
		if c.err == nil && !c.known && c.contradicts() {
			c.err = refuse(Equivocation, "%s signed two records of version %d.%d", c.Portal, c.Epoch, c.Seq)
		}
		if results[i].Err = c.err; c.err == nil {
			results[i].Record = c.Record
			k.put(ids[i], c.Record)
		}
	}
	return results, ctx.Err()
}

// get returns the record of a wire that came before, or nil.
func (k *Checker) get(id Hash) *Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.opened[id]; r != nil {
		return r
	}
	return k.before[id]
}

func (k *Checker) put(id Hash, r *Record) {
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

// verify is Gate.verify, but for signatures that are known to hold.
func (k *Checker) verify(c *claim, now int64) error {
	h := sha256.New()
	h.Write(c.key[:])
	h.Write(c.Hash[:]) // of all that was signed
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
		if err := k.gate.verify(c, now); err != nil {
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
