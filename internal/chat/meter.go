package chat

import (
	"sync"
	"time"

	"agentsite/internal/clock"
)

// meter counts what each sender's files brought to the disk today, those among
// them that were refused afterwards, and how many are on their way.
type meter struct {
	mu      sync.Mutex // guards the rest
	day     time.Time
	used    map[string]int64
	sending map[string]int
}

const (
	// maxMetered bounds who is remembered.
	maxMetered = 50_000
	// maxSending is how many files of one sender come at once: what they bring
	// counts only when they are there.
	maxSending = 16
)

// verdict is what a meter says to another file.
type verdict int

const (
	mayCome verdict = iota
	tooMany         // at once
	tooMuch         // today
)

// allowance is how many bytes may come under a name on one day.
type allowance struct {
	name string
	most int64
}

// begin lets a file come unless one of the allowances is used up. Who may send
// it calls end.
func (m *meter) begin(of []allowance) verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if today := clock.Now().UTC().Truncate(24 * time.Hour); m.used == nil || !m.day.Equal(today) || len(m.used) >= maxMetered {
		m.day, m.used = today, make(map[string]int64)
	}
	for _, a := range of {
		switch {
		case m.used[a.name] >= a.most:
			return tooMuch
		case m.sending[a.name] >= maxSending:
			return tooMany
		}
	}
	if m.sending == nil {
		m.sending = make(map[string]int)
	}
	for _, a := range of {
		m.sending[a.name]++
	}
	return mayCome
}

// end counts the bytes of a file that came.
func (m *meter) end(of []allowance, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range of {
		m.used[a.name] += n
		if m.sending[a.name]--; m.sending[a.name] <= 0 {
			delete(m.sending, a.name)
		}
	}
}
