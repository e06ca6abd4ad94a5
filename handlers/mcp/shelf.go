package mcp

import (
	"container/list"
	"sync"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/hub"
)

// maxShelf is how much the servers of agents that are kept ready may take.
const maxShelf = 16 << 20 // bytes

// shelf keeps the servers of agents ready, the last used ones. Create it with
// newShelf.
type shelf struct {
	mu   sync.Mutex // guards the rest
	at   map[string]*list.Element
	used *list.List // of *shelved, the last used in front
	size int
}

type shelved struct {
	id      string
	version int
	changed time.Time
	server  *endpoint.Server
}

func newShelf() *shelf { return &shelf{at: make(map[string]*list.Element), used: list.New()} }

// get returns the server of an agent as it is now.
func (s *shelf) get(a hub.Agent, offer func(hub.Agent) endpoint.Offer) (*endpoint.Server, error) {
	s.mu.Lock()
	if e := s.at[a.ID]; e != nil {
		if k := e.Value.(*shelved); k.version == a.Version && k.changed.Equal(a.UpdatedAt) {
			s.used.MoveToFront(e)
			s.mu.Unlock()
			return k.server, nil
		}
	}
	s.mu.Unlock()
	server, err := endpoint.NewServer(offer(a))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at[a.ID]; e != nil {
		s.remove(e)
	}
	s.at[a.ID] = s.used.PushFront(&shelved{a.ID, a.Version, a.UpdatedAt, server})
	for s.size += server.Size(); s.size > maxShelf && s.used.Len() > 1; {
		s.remove(s.used.Back())
	}
	return server, nil
}

// remove takes one off; the caller holds mu.
func (s *shelf) remove(e *list.Element) {
	k := s.used.Remove(e).(*shelved)
	delete(s.at, k.id)
	s.size -= k.server.Size()
}
