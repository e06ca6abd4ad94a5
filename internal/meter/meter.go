// Package meter counts events and writes the counts for scrapers, in the text form of Prometheus.
// There is no registry: the counting package holds the counters, and the scraped page reads them. The
// number of labels is bounded, because callers can choose them.
package meter

import "sync"

const (
	// maxKinds bounds the values of a label: values that a guest can choose must not grow without end.
	maxKinds = 64
	// maxKind bounds a value, in bytes.
	maxKind = 64
	// Other is the label of all values beyond them.
	Other = "other"
)

// Kinds counts by one label. Its zero value is ready; it is safe for concurrent
// use.
type Kinds struct {
	mu     sync.Mutex // guards counts
	counts map[string]int64
}

// Add counts n of a kind.
func (k *Kinds) Add(kind string, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts == nil {
		k.counts = make(map[string]int64)
	}
	if _, known := k.counts[kind]; !known && (len(k.counts) >= maxKinds || len(kind) > maxKind) {
		kind = Other
	}
	k.counts[kind] += n
}

// All returns the counts.
func (k *Kinds) All() map[string]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[string]int64, len(k.counts))
	for kind, n := range k.counts {
		out[kind] = n
	}
	return out
}
