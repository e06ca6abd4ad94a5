package limit

import (
	"sync"
	"time"
)

// Uploads counts the bytes of each sender's files that were written to the disk today, refused ones
// included, and the number of transfers that are running.
type Uploads struct {
	mu      sync.Mutex // guards the fields below
	day     time.Time
	used    map[string]int64
	sending map[string]int
}

const (
	// maxMetered bounds the senders in memory.
	maxMetered = 50_000
	// maxSending bounds the files of one sender that are transferred at the same time, because
	// their bytes count only at the end.
	maxSending = 16
)

// Verdict is the decision of Uploads on another file.
type Verdict int

const (
	MayCome Verdict = iota
	TooMany         // too many files of the sender are in transfer now
	TooMuch         // the sender's bytes of today are used up
)

// Allowance is how many bytes may come under a name on one day.
type Allowance struct {
	Name string
	Most int64
}

// Begin admits a file unless one of the allowances is used up. The sender of an admitted file
// calls End.
func (m *Uploads) Begin(now time.Time, of []Allowance) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if today := now.UTC().Truncate(24 * time.Hour); m.used == nil || !m.day.Equal(today) || len(m.used) >= maxMetered {
		m.day, m.used = today, make(map[string]int64)
	}
	for _, a := range of {
		switch {
		case m.used[a.Name] >= a.Most:
			return TooMuch
		case m.sending[a.Name] >= maxSending:
			return TooMany
		}
	}
	if m.sending == nil {
		m.sending = make(map[string]int)
	}
	for _, a := range of {
		m.sending[a.Name]++
	}
	return MayCome
}

// End counts the bytes of a file that came.
func (m *Uploads) End(of []Allowance, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range of {
		m.used[a.Name] += n
		if m.sending[a.Name]--; m.sending[a.Name] <= 0 {
			delete(m.sending, a.Name)
		}
	}
}
