package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
)

// promptConfig returns the settings of a prompt agent; zero for other kinds, and if they cannot be read.
func promptConfig(a Agent) (conf PromptConfig) {
	if a.Kind != Prompt || json.Unmarshal(a.Config, &conf) != nil {
		return PromptConfig{}
	}
	return conf
}

// wasmConfig returns the settings of a hosted program; zero if they cannot be read.
func wasmConfig(a Agent) (conf WasmConfig) {
	if json.Unmarshal(a.Config, &conf) != nil {
		return WasmConfig{}
	}
	return conf
}

// isAgentName reports whether s is the name of an agent of this portal, or a handle of another one's.
func isAgentName(s string) bool {
	name, portal, elsewhere := strings.Cut(s, "@")
	return ident.CheckForm(name) == nil &&
		(!elsewhere || portal != "" && len(s) <= maxToolHandle && !strings.ContainsAny(portal, "@/ "))
}

// maxToolHandle bounds a handle among the tools, in bytes.
const maxToolHandle = 300

// toolRights checks which agents a prompt agent may use as tools.
type toolRights struct{ agents callableAgents }

// callableAgents is the method of Service that toolRights needs.
type callableAgents interface {
	Callable(ctx context.Context, actor ident.Actor, name string) (Agent, error)
}

// mayUse returns a Forbidden fault if an edit would give its author access to tools that only the owner
// may use. A prompt agent calls its tools with the rights of its owner, whoever wrote its instructions.
func (t toolRights) mayUse(ctx context.Context, actor ident.Actor, before, next Agent) error {
	tools := promptConfig(next).Tools
	if len(tools) == 0 || actor.IsPerson() && actor.ID == next.OwnerID {
		return nil
	}
	if before.Kind == next.Kind && before.Endpoint == next.Endpoint && bytes.Equal(before.Config, next.Config) {
		return nil
	}
	had := promptConfig(before).Tools
	owner := ident.Actor{Kind: ident.Person, ID: next.OwnerID, Name: next.OwnerName}
	for _, name := range tools {
		ok, err := t.canCall(ctx, actor, name)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		// A name that does not resolve for the owner either may stay if it was there before.
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

// canCall reports whether Service.Callable allows the actor to call an agent; a NotFound, Forbidden or
// Conflict fault counts as false. The tools of the portal work with the rights of the caller, so all may use them.
func (t toolRights) canCall(ctx context.Context, actor ident.Actor, name string) (bool, error) {
	if slices.Contains(grant.PortalTools, name) {
		return true, nil
	}
	_, err := t.agents.Callable(ctx, actor, name)
	switch {
	case err == nil:
		return true, nil
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict), fault.Is(err, fault.Forbidden):
		return false, nil
	}
	return false, err
}

// givenTools removes from a transferred agent the tools that the former owner could not use. Otherwise instructions
// written by the former owner would run with the rights of the new one. changed is false if nothing was removed.
func (t toolRights) givenTools(ctx context.Context, former ident.Actor,
	a Agent) (config json.RawMessage, changed bool, err error) {
	conf := promptConfig(a)
	kept := make([]string, 0, len(conf.Tools))
	for _, name := range conf.Tools {
		ok, err := t.canCall(ctx, former, name)
		if err != nil {
			return nil, false, err
		}
		if ok {
			kept = append(kept, name)
		}
	}
	if len(kept) == len(conf.Tools) {
		return a.Config, false, nil
	}
	conf.Tools = kept
	config, err = json.Marshal(conf)
	return config, true, err
}
