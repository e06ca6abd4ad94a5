package chat

import (
	"sync"
	"time"

	"agentsite/internal/clock"
)

// meter counts the bytes of each sender's files that were written to the disk today, refused ones
// included, and the number of transfers that are running.
type meter struct {
	mu      sync.Mutex // guards the rest
	day     time.Time
	used    map[string]int64
	sending map[string]int
}

const (
	// maxMetered bounds the senders that are counted.
	maxMetered = 50_000
	// maxSending bounds the files of one sender that are transferred at the same time, because
	// their bytes count only at the end.
	maxSending = 16
)

// verdict is the decision of a meter on another file.
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

// beginUpload admits a file unless one of the allowances is used up. The sender of an admitted file
// calls end.
func (m *meter) beginUpload(of []allowance) verdict {
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

// endUpload counts the bytes of a file that came.
func (m *meter) endUpload(of []allowance, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range of {
		m.used[a.name] += n
		if m.sending[a.name]--; m.sending[a.name] <= 0 {
			delete(m.sending, a.name)
		}
	}
}
