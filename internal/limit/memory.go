package limit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Reader is one client of a Memory.
type Reader struct {
	// Key identifies the client: an account, or the address of guests.
	Key string
	// Operator readers may use the reserve, and have no share.
	Operator bool
	// Many is true for a key that stands for any number of clients, such as the address of a proxy. It
	// has no share.
	Many bool
}

// MemoryConfig holds the bounds of a Memory in bytes.
type MemoryConfig struct {
	Total   int64 // of all readers
	Share   int64 // of one reader
	Reserve int64 // part of Total that only operators get
}

// Refusals of Memory.Reserve.
var (
	ErrShareUsed  = errors.New("the reader's share of the memory is in use")
	ErrMemoryUsed = errors.New("the memory for readers is in use")
)

const (
	// maxReaderWait is the time that a reservation waits for memory. Answers to clients that keep up end
	// within milliseconds, so that only a client with slow reads of its own waits so long.
	maxReaderWait = 2 * time.Second
	// maxReadersWaiting bounds the waiting reservations, because each holds a request.
	maxReadersWaiting    = 1000
	maxReadersWaitingKey = 64
)

// Memory counts the bytes that answers hold until their readers have received them. The bytes of
// one reader are bounded by its share, so that slow reads of one client leave the memory of others free.
// It is safe for concurrent use.
type Memory struct {
	cfg MemoryConfig

	mu      sync.Mutex // guards the fields below
	used    int64
	held    map[string]int64
	waiting []*memoryWaiter // in order of arrival
}

type memoryWaiter struct {
	hold    *Reservation
	bytes   int64
	granted chan struct{} // closed by the goroutine that grants
}

// Reservation is a reservation of a Memory. One goroutine uses it.
type Reservation struct {
	memory *Memory
	reader Reader
	bytes  int64 // guarded by memory.mu
}

// NewMemory returns a Memory in which nothing is reserved.
func NewMemory(cfg MemoryConfig) *Memory { return &Memory{cfg: cfg, held: make(map[string]int64)} }

// Reserve reserves bytes for a reader and waits for them at most maxReaderWait, in the order of arrival.
// Then it returns ErrShareUsed or ErrMemoryUsed, or the error of ctx. More than a share is reduced to the
// share. The caller must Release the hold.
func (m *Memory) Reserve(ctx context.Context, r Reader, bytes int64) (*Reservation, error) {
	bytes = min(bytes, m.cfg.Share)
	h := &Reservation{memory: m, reader: r}
	m.mu.Lock()
	refusal := m.refusal(r, bytes)
	if refusal == nil {
		m.add(h, bytes)
		m.mu.Unlock()
		return h, nil
	}
	if m.isCrowded(r.Key) {
		m.mu.Unlock()
		return nil, refusal
	}
	w := &memoryWaiter{h, bytes, make(chan struct{})}
	m.waiting = append(m.waiting, w)
	m.mu.Unlock()
	wctx, cancel := context.WithTimeout(ctx, maxReaderWait)
	defer cancel()
	select {
	case <-w.granted:
		return h, nil
	case <-wctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.waiting, w)
	if i < 0 { // granted meanwhile
		return h, nil
	}
	m.waiting = slices.Delete(m.waiting, i, i+1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, refusal
}

// Force reserves bytes for a reader even if they exceed its share or the total. Use it for bytes that are
// in memory already.
func (m *Memory) Force(r Reader, bytes int64) *Reservation {
	h := &Reservation{memory: m, reader: r}
	h.Resize(bytes)
	return h
}

// Used returns the reserved bytes of all readers, and those of the reader with the key.
func (m *Memory) Used(key string) (all, reader int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.held[key]
}

// Resize changes the reserved bytes to those that are in memory. It never waits, and may exceed the
// bounds; then further reservations wait.
func (h *Reservation) Resize(bytes int64) {
	m := h.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	less := bytes < h.bytes
	m.add(h, bytes-h.bytes)
	if less {
		m.grantWaiting()
	}
}

// Release gives the reserved bytes back. Later calls do nothing.
func (h *Reservation) Release() { h.Resize(0) }

// refusal returns the reason why bytes cannot be reserved now, nil if they can. The caller holds mu.
func (m *Memory) refusal(r Reader, bytes int64) error {
	switch {
	case r.Operator:
		if m.used+bytes > m.cfg.Total {
			return ErrMemoryUsed
		}
	case !r.Many && m.held[r.Key]+bytes > m.cfg.Share:
		return ErrShareUsed
	case m.used+bytes > m.cfg.Total-m.cfg.Reserve:
		return ErrMemoryUsed
	}
	return nil
}

// isCrowded reports whether too many reservations wait for another one to wait. The caller holds mu.
func (m *Memory) isCrowded(key string) bool {
	n := 0
	for _, w := range m.waiting {
		if w.hold.reader.Key == key {
			n++
		}
	}
	return n >= maxReadersWaitingKey || len(m.waiting) >= maxReadersWaiting
}

// add changes the bytes of a hold. The caller holds mu.
func (m *Memory) add(h *Reservation, bytes int64) {
	h.bytes += bytes
	m.used += bytes
	if m.held[h.reader.Key] += bytes; m.held[h.reader.Key] <= 0 {
		delete(m.held, h.reader.Key)
	}
}

// grantWaiting grants the waiting reservations that fit now. The caller holds mu.
func (m *Memory) grantWaiting() {
	m.waiting = slices.DeleteFunc(m.waiting, func(w *memoryWaiter) bool {
		if m.refusal(w.hold.reader, w.bytes) != nil {
			return false
		}
		m.add(w.hold, w.bytes)
		close(w.granted)
		return true
	})
}
