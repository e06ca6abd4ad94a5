package mcp

import (
	"container/list"
	"sync"
	"time"

	"agentsite/handlers/mcp/endpoint"
	"agentsite/internal/hub"
)

// maxServerBytes bounds the memory of the cached servers in bytes.
const maxServerBytes = 16 << 20

// serverCache keeps the prepared servers of the agents that were used last. Create it with
// newServerCache.
type serverCache struct {
	mu   sync.Mutex // guards the fields below
	at   map[string]*list.Element
	used *list.List // elements are *cachedServer, the most recently used in front
	size int
}

type cachedServer struct {
	id      string
	version int
	changed time.Time
	server  *endpoint.Server
}

func newServerCache() *serverCache {
	return &serverCache{at: make(map[string]*list.Element), used: list.New()}
}

// getServer returns the server of an agent in the agent's present version. It calls offer and prepares
// the server if none is cached.
func (s *serverCache) getServer(a hub.Agent, offer func(hub.Agent) endpoint.Offer) (*endpoint.Server, error) {
	s.mu.Lock()
	if e := s.at[a.ID]; e != nil {
		if k := e.Value.(*cachedServer); k.version == a.Version && k.changed.Equal(a.UpdatedAt) {
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
		s.removeServer(e)
	}
	s.at[a.ID] = s.used.PushFront(&cachedServer{a.ID, a.Version, a.UpdatedAt, server})
	for s.size += server.Size(); s.size > maxServerBytes && s.used.Len() > 1; {
		s.removeServer(s.used.Back())
	}
	return server, nil
}

// removeServer removes an entry and subtracts its size. The caller holds s.mu.
func (s *serverCache) removeServer(e *list.Element) {
	k := s.used.Remove(e).(*cachedServer)
	delete(s.at, k.id)
	s.size -= k.server.Size()
}
