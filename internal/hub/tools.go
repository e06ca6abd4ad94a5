package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// promptTools are the agents that a prompt agent may use tools of, by name.
func promptTools(a Agent) []string {
	var conf PromptConfig
	if a.Kind != Prompt || json.Unmarshal(a.Config, &conf) != nil {
		return nil
	}
	return conf.Tools
}

// toolRights decides which agents a prompt agent may use as tools.
type toolRights struct{ agents callableAgents }

// callableAgents finds the agents that an actor may give work to.
type callableAgents interface {
	Callable(ctx context.Context, actor ident.Actor, name string) (Agent, error)
}

// mayUse refuses an edit that would let its author use, through an agent,
// tools that are its owner's and not theirs: a prompt agent uses tools in the
// right of its owner, whoever wrote its instructions.
func (t toolRights) mayUse(ctx context.Context, actor ident.Actor, before, next Agent) error {
	tools := promptTools(next)
	if len(tools) == 0 || actor.IsPerson() && actor.ID == next.OwnerID {
		return nil
	}
	if before.Kind == next.Kind && before.Endpoint == next.Endpoint && bytes.Equal(before.Config, next.Config) {
		return nil
	}
	had := promptTools(before)
	owner := ident.Actor{Kind: ident.Person, ID: next.OwnerID, Name: next.OwnerName}
	for _, name := range tools {
		ok, err := t.canCall(ctx, actor, name)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		// An unresolved name that was there before may stay.
		if slices.Contains(had, name) {
			if ok, err = t.canCall(ctx, owner, name); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		text := "you may not use " + name + " yourself; its owner can share it with you"
		return fault.Field("config.tools", text)
	}
	return nil
}

// canCall reports whether the actor may give work to an agent.
func (t toolRights) canCall(ctx context.Context, actor ident.Actor, name string) (bool, error) {
	_, err := t.agents.Callable(ctx, actor, name)
	switch {
	case err == nil:
		return true, nil
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict), fault.Is(err, fault.Forbidden):
		return false, nil
	}
	return false, err
}

// givenTools removes the tools that the former owner could not use from an agent that is given
// away: the next owner's right must not open them for instructions of another author. changed is
// false when all may stay.
func (t toolRights) givenTools(ctx context.Context, former ident.Actor,
	a Agent) (config json.RawMessage, changed bool, err error) {
	tools := promptTools(a)
	kept := make([]string, 0, len(tools))
	for _, name := range tools {
		ok, err := t.canCall(ctx, former, name)
		if err != nil {
			return nil, false, err
		}
		if ok {
			kept = append(kept, name)
		}
	}
	if len(kept) == len(tools) {
		return a.Config, false, nil
	}
	var conf PromptConfig
	if err := json.Unmarshal(a.Config, &conf); err != nil {
		return nil, false, err
	}
	conf.Tools = kept
	config, err = json.Marshal(conf)
	return config, true, err
}
