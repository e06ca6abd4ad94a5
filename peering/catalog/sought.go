package catalog

import (
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

// soughtPortals records which portals became known because of a search for one of their agents, and when.
// The zero value is ready; it is safe for concurrent use. It is lost at a restart.
type soughtPortals struct {
	mu   sync.Mutex // guards list
	list map[record.PortalID]time.Time
}

// maxSought bounds the recorded portals; with more, arbitrary ones are forgotten.
const maxSought = 4096

func (m *soughtPortals) notePortal(portal record.PortalID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.list == nil {
		m.list = make(map[record.PortalID]time.Time)
	}
	if _, ok := m.list[portal]; ok {
		return
	}
	for other := range m.list {
		if len(m.list) < maxSought {
			break
		}
		delete(m.list, other)
	}
	m.list[portal] = clock.Now()
}

func (m *soughtPortals) soughtSince(portal record.PortalID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list[portal]
}
