package hub

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Talkable is Callable for conversations: visitors may talk to public agents only.
func (s *Service) Talkable(ctx context.Context, actor ident.Actor, name string) (Agent, error) {
	a, err := s.Callable(ctx, actor, name)
	if err == nil && actor.Kind == ident.Guest && a.Visibility != Public {
		return Agent{}, errNoAgent(name)
	}
	return a, err
}

// TalkableList returns at most limit agents of this portal that the actor may talk to. Alive agents come
// first; within each group the actor's own precede public ones, which are ordered by name.
func (s *Service) TalkableList(ctx context.Context, actor ident.Actor, limit int) ([]Agent, error) {
	if !actor.May(ident.AgentsRead) && !actor.May(ident.AgentsWrite) && !actor.May(ident.ChatWrite) {
		return nil, fault.New(fault.Forbidden, "%s", ident.AgentsRead.DescribeMissing())
	}
	var own []Agent
	if actor.IsPerson() {
		list, err := s.store.AgentsOf(ctx, actor.ID)
		if err != nil {
			return nil, err
		}
		own = slices.DeleteFunc(list, func(a Agent) bool { return a.Status.State == Withdrawn })
	}
	var out []Agent
	seen := make(map[string]bool)
	add := func(list []Agent, states []string) { // nil states: in any state
		for _, a := range list {
			if len(out) < limit && !seen[a.ID] && (states == nil || slices.Contains(states, string(a.Liveness.State))) {
				seen[a.ID] = true
				out = append(out, a)
			}
		}
	}
	for _, states := range [][]string{{string(Alive)}, nil} {
		add(own, states)
		for cursor := ""; len(out) < limit; {
			page, err := s.index.Search(Query{Portals: []string{localPortal}, Live: states, Sort: SortName,
				Limit: talkPage, Cursor: cursor})
			if err != nil {
				return nil, err
			}
			for _, r := range page.Results {
				if r.Agent.Status.State != Withdrawn {
					add([]Agent{r.Agent}, nil)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
	}
	return out, nil
}

// talkPage is how many public agents one search of TalkableList reads.
const talkPage = 100
