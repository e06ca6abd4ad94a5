package limit

import (
	"sync"
	"time"
)

// Uploads counts, for each sender, the bytes of files that were written to the disk today, refused
// files included, and the transfers that are running. The zero value is ready for use. It is safe
// for concurrent use.
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

// Verdict is the answer of Begin: MayCome, or the reason for refusing a file.
type Verdict int

const (
	MayCome Verdict = iota
	TooMany         // too many files of the sender are in transfer now
	TooMuch         // the sender's bytes of today are used up
)

// Allowance is the maximum number of bytes that a name may upload per day. The name is an account,
// an address or another sender.
type Allowance struct {
	Name string
	Most int64
}

// Begin admits another file unless one of the allowances is used up or too many files are in
// transfer. For an admitted file the caller must call End with the same allowances.
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

// End ends an admitted transfer and counts its n bytes against the allowances, also if the transfer
// failed.
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
