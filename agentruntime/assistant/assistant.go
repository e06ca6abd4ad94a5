// Package assistant lets the built-in agents assistant and guide answer by the portal's model. Both get the notes of
// the guide's rules about each message, so that they know the directory and the manual without a call of a tool.
// Without an answer of the model, as when visitors have used up their share of the day, the rules answer.
package assistant

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"

	"agentsite/internal/grant"
	"agentsite/internal/hub"
	"agentsite/internal/task"
)

// Name is the name of the assistant. It is reserved, so that no other agent has it.
const Name = "assistant"

// guideName is the name of the agent that the assistant falls back to.
const guideName = "guide"

// maxNotes bounds the notes for the model, in bytes.
const maxNotes = 6 << 10

// Rules answer for the built-in agents without a model.
type Rules interface {
	task.Agent
	// CollectNotes returns the answer of the guide's rules to a call, "" for a message that is no question.
	CollectNotes(ctx context.Context, call task.Call) (string, error)
}

// Driver answers for the assistant and the guide, and passes other calls on. It is safe for concurrent use.
type Driver struct {
	rules    Rules
	next     task.Agent // answers for the other built-in agents, and for the guide by its rules
	model    task.Agent
	hasModel func() bool
}

// New returns a driver. model runs agents that are instructions. hasModel reports whether the portal has a model now.
func New(rules Rules, next, model task.Agent, hasModel func() bool) *Driver {
	return &Driver{rules: rules, next: next, model: model, hasModel: hasModel}
}

// NewDraft describes the assistant.
func NewDraft() hub.Draft {
	name, title, kind, visibility := Name, "Assistant", hub.Builtin, hub.Public
	description := "Answers questions with the portal's language model. It knows the agents and the manual of this " +
		"portal, finds agents for you and asks them for you once you allow it."
	skills := []hub.Skill{{ID: "chat", Name: "Answer and help",
		Description: "Ask anything. It answers itself or finds an agent that can.",
		Tags:        []string{"assistant", "chat", "questions"},
		Examples:    []string{"What can I do here?", "Find an agent that can calculate and ask it for 15% of 80"}}}
	return hub.Draft{Name: &name, Title: &title, Description: &description, Kind: &kind, Visibility: &visibility,
		Skills: &skills, Config: map[string]json.RawMessage{}}
}

// usesModel reports whether the call is answered by the model. The guide answers other agents by its rules, because
// they only look for agents.
func (d *Driver) usesModel(call task.Call) bool {
	switch call.Agent.Name {
	case Name:
		return d.hasModel()
	case guideName:
		return d.hasModel() && !call.ThroughAgents()
	}
	return false
}

// Run implements task.Agent.
func (d *Driver) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if !d.usesModel(call) {
		if call.Agent.Name != Name {
			return d.next.Run(ctx, call, out)
		}
		return d.answerByRules(ctx, call, out, "This portal has no language model at the moment.")
	}
	asked, err := d.addInstructions(ctx, call)
	if err != nil {
		return task.Result{}, err
	}
	watched := &watchedSink{Sink: out}
	r, err := d.model.Run(ctx, asked, watched)
	if err != nil || r.State != task.Failed || watched.wrote.Load() || call.Checkpoint != nil {
		return r, err
	}
	return d.answerByRules(ctx, call, out, r.Reason)
}

// answerByRules answers as the guide, after the reason why the model does not answer.
func (d *Driver) answerByRules(ctx context.Context, call task.Call, out task.Sink, reason string) (task.Result, error) {
	if !strings.HasSuffix(reason, ".") {
		reason += "." // the last words are those of another server
	}
	begin := reason + " The guide answers instead, by its rules:\n\n"
	out.Text(begin)
	call.Agent.Name = guideName
	r, err := d.next.Run(ctx, call, out)
	r.Parts = append([]task.Part{task.TextPart(begin)}, r.Parts...)
	if len(r.Parts) == 2 && r.Parts[1].Text != "" {
		r.Parts = []task.Part{task.TextPart(begin + r.Parts[1].Text)}
	}
	return r, err
}

const (
	about = `Answer in the language of the message, briefly and in Markdown. This portal is a home for AI agents of many people. The agent "directory" is the portal's own search: its notes, where there are any, stand before the last message and may not fit it. Name only agents that stand in the notes or in the results of a tool, as links, for example [Calculator](/agents/calc). Say so if you do not know something. `

	asAssistant = `You are the assistant of this portal. Answer yourself what you can. If another agent does it better, find it, and ask it for the person or link to it. `

	asGuide = `You are the guide of this portal. You help people to find agents and answer questions about the portal from the notes. For other work, name an agent that does it, or say that there is none. `
)

// addInstructions returns the call with the settings of an agent that is instructions, and with the notes of the rules
// as an earlier message. They hold texts of strangers and must not stand among the instructions.
func (d *Driver) addInstructions(ctx context.Context, call task.Call) (task.Call, error) {
	cfg := hub.PromptConfig{Instructions: asAssistant + about, Tools: []string{grant.Find, grant.Ask}}
	if call.Agent.Name == guideName {
		cfg = hub.PromptConfig{Instructions: asGuide + about, Tools: []string{grant.Find}}
	}
	var err error
	if call.Agent.Config, err = json.Marshal(cfg); err != nil || call.Checkpoint != nil {
		return call, err
	}
	notes, err := d.rules.CollectNotes(ctx, call)
	if err != nil || notes == "" {
		return call, err
	}
	notes = strings.ToValidUTF8(notes[:min(len(notes), maxNotes)], "")
	turn := task.Turn{Seq: call.MessageSeq, Speaker: "directory", Kind: "agent", Parts: []task.Part{task.TextPart(notes)}}
	call.History = append(call.History[:len(call.History):len(call.History)], turn)
	return call, nil
}

// watchedSink notes whether readers saw a part of the answer, after which no other answer may follow.
type watchedSink struct {
	task.Sink
	wrote atomic.Bool
}

// Text implements task.Sink.
func (s *watchedSink) Text(delta string) {
	s.wrote.Store(true)
	s.Sink.Text(delta)
}

// Replace implements task.Sink.
func (s *watchedSink) Replace(text string) {
	if text != "" {
		s.wrote.Store(true)
	}
	s.Sink.Replace(text)
}

// Artifact implements task.Sink.
func (s *watchedSink) Artifact(a task.Artifact) {
	s.wrote.Store(true)
	s.Sink.Artifact(a)
}

// Pause implements task.Pauser.
func (s *watchedSink) Pause() {
	if p, ok := s.Sink.(task.Pauser); ok {
		p.Pause()
	}
}

// Resume implements task.Pauser.
func (s *watchedSink) Resume() {
	if p, ok := s.Sink.(task.Pauser); ok {
		p.Resume()
	}
}

// AnswerAtOnce returns an agent for answers that are given at once. It refuses calls that the model answers: a
// checkpoint says that the answer needs a task.
func (d *Driver) AnswerAtOnce() task.Agent { return instant{d} }

type instant struct{ d *Driver }

// Run implements task.Agent.
func (i instant) Run(ctx context.Context, call task.Call, out task.Sink) (task.Result, error) {
	if i.d.usesModel(call) {
		return task.Result{}, out.Checkpoint(ctx, nil)
	}
	return i.d.Run(ctx, call, out)
}
