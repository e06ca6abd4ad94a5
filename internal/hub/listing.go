package hub

import (
	"agentsite/internal/fault"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Load puts every listed agent into the index: this portal's own, then those of
// others that are held.
func (s *Service) Load(ctx context.Context) error {
	s.edits.begin()
	var err error
	next, stop := iter.Pull(func(yield func(Agent) bool) {
		err = s.store.AllAgents(ctx, func(a Agent) bool { return ctx.Err() == nil && yield(listForm(a)) })
	})
	s.index.Load(next)
	stop()
	// The rows that were read may be older than edits made during the read.
	for _, id := range s.edits.end() {
		s.Reindex(ctx, id)
	}
	if err == nil && s.network != nil {
		err = s.network.Load(ctx)
	}
	return err
}

// edits remembers, while the index is filled from the store, which agents were
// changed. The zero value remembers nothing.
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

// indexAgent puts an agent into the index as it was just stored; unlist takes it out.
func (s *Service) indexAgent(a Agent) {
	s.edits.note(a.ID)
	s.index.Put(listForm(a))
}

// listForm is an agent without the fields that no list shows.
func listForm(a Agent) Agent {
	a.Config = nil
	return a
}

// listAll is list for many agents that are new.
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

// OwnerChanged brings an account's agents in the index up to date after the
// account was disabled or enabled.
func (s *Service) OwnerChanged(ctx context.Context, ownerID string, disabled bool) error {
	agents, err := s.store.AgentsOf(ctx, ownerID)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.OwnerID != ownerID {
			continue // shared with it: its owner is still there
		}
		if disabled {
			s.unindexAgent(a.ID)
		} else {
			s.indexAgent(a)
		}
	}
	return nil
}

// Reindex puts the present form of the agent into the index. It reads the agent again after each
// Put, because an edit or removal in between has done its own Put or Remove earlier, and the newer
// form must win.
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
