package hub

import (
	"agentsite/internal/fault"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Load fills the index with the listed agents of this portal and the replicated agents of others. It is
// called once, at the start.
func (s *Service) Load(ctx context.Context) error {
	s.edits.begin()
	var err error
	next, stop := iter.Pull(func(yield func(Agent) bool) {
		err = s.store.AllAgents(ctx, func(a Agent) bool { return ctx.Err() == nil && yield(listForm(a)) })
	})
	s.index.Load(next)
	stop()
	// Agents that were edited during the read are indexed again, because the rows read may be older.
	for _, id := range s.edits.end() {
		s.Reindex(ctx, id)
	}
	if err == nil && s.network != nil {
		err = s.network.Load(ctx)
	}
	return err
}

// edits records the ids of agents that are changed while Load reads the store. The zero value records nothing.
type edits struct {
	mu  sync.Mutex // guards ids
	ids map[string]bool
}

func (e *edits) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids = make(map[string]bool)
}

func (e *edits) note(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ids != nil {
		e.ids[id] = true
	}
}

func (e *edits) end() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := slices.Sorted(maps.Keys(e.ids))
	e.ids = nil
	return ids
}

// indexAgent puts an agent into the index in its stored form; unindexAgent removes it.
func (s *Service) indexAgent(a Agent) {
	s.edits.note(a.ID)
	s.index.Put(listForm(a))
}

// listForm returns the agent without Config, which no list shows, to save memory.
func listForm(a Agent) Agent {
	a.Config = nil
	return a
}

// listAll is indexAgent for many new agents; it is faster than one call for each.
func (s *Service) listAll(all []Agent) {
	for _, a := range all {
		s.edits.note(a.ID)
	}
	next := 0
	s.index.Load(func() (Agent, bool) {
		if next == len(all) {
			return Agent{}, false
		}
		next++
		return listForm(all[next-1]), true
	})
}

func (s *Service) unindexAgent(id string) {
	s.edits.note(id)
	s.index.Remove(id)
}

// OwnerChanged adds or removes an account's agents in the index after the account was enabled or disabled.
func (s *Service) OwnerChanged(ctx context.Context, ownerID string, disabled bool) error {
	agents, err := s.store.AgentsOf(ctx, ownerID)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.OwnerID != ownerID {
			continue // a co-owned agent: its owner's account decides
		}
		if disabled {
			s.unindexAgent(a.ID)
		} else {
			s.indexAgent(a)
		}
	}
	return nil
}

// Reindex puts the stored form of an agent into the index. It reads the agent again after each Put: a
// concurrent edit may have updated the index before this Put, and the newer form must win.
func (s *Service) Reindex(ctx context.Context, agentID string) {
	for last := 0; ; {
		a, err := s.store.AgentByID(ctx, agentID)
		switch {
		case fault.Is(err, fault.NotFound):
			s.unindexAgent(agentID)
			return
		case err != nil || a.Version == last:
			return
		}
		s.indexAgent(a)
		last = a.Version
	}
}
