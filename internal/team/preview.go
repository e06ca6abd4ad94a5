package team

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/team/flow"
	"agentsite/internal/team/rules"
)

// Preview returns the parts of a goal with the agents that a team by rules would pick, best first. It starts nothing.
func (s *Service) Preview(ctx context.Context, actor ident.Actor, d Draft) ([]flow.Part, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	now := clock.Now()
	open, err := d.newOpening(now)
	if err != nil {
		return nil, err
	}
	if open.People, err = s.findPeople(ctx, open.Members); err != nil {
		return nil, err
	}
	state, err := flow.Next(flow.State{}, flow.Event{Seq: 1, At: now, Kind: flow.Opened, Open: &open})
	if err != nil {
		return nil, asFault(err)
	}
	w := work{s: s, actor: actor, state: state}
	split := rules.Split(open.Goal)
	if len(split) == 0 {
		split = []rules.Part{{Text: open.Goal}}
	}
	parts := make([]flow.Part, 0, len(split))
	for i, p := range split {
		part := flow.Part{N: i + 1, Text: p.Text, Needs: p.Needs}
		if part.Candidates, err = w.findCandidates(ctx, p.Text); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
