package notify

import (
	"context"
	"fmt"
	"net/url"
	"unicode/utf8"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// message is the body of a webhook request, in the form that Standard Webhooks recommends.
type message struct {
	Type      Type   `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      any    `json:"data"`
}

// maxTextBytes bounds the text of a message in a webhook body. Receivers read longer texts through
// the API.
const maxTextBytes = 8 << 10

// loadOwner returns the current actor of a hook's owner. It returns a NotFound fault if the account no
// longer exists or is disabled, because then nothing may be sent.
func (s *Service) loadOwner(ctx context.Context, h Hook) (ident.Actor, error) {
	a := ident.Actor{Kind: ident.ActorKind(h.OwnerKind), ID: h.OwnerID, Addr: h.OwnerID}
	if a.Kind == ident.Guest {
		return a, nil
	}
	p, err := s.Accounts.AccountByID(ctx, h.OwnerID)
	if err != nil {
		return a, err
	}
	if p.Disabled() {
		return a, fault.New(fault.NotFound, "The account is disabled.")
	}
	return actorOf(p), nil
}

func actorOf(p account.Account) ident.Actor {
	a := ident.Actor{Kind: ident.Person, ID: p.ID, Name: p.Name, Addr: p.ID}
	if p.Operator {
		a.Kind = ident.Operator
	}
	return a
}

// buildBodies returns the bodies of the requests for an event, one per request, with the owner's
// present rights. A NotFound fault means that the owner may no longer read the event and that it is
// to be dropped.
func (s *Service) buildBodies(ctx context.Context, h Hook, e Event) ([]any, error) {
	actor, err := s.loadOwner(ctx, h)
	if err != nil {
		return nil, err
	}
	if h.Kind == Push {
		t, err := s.Chat.Task(ctx, actor, h.TaskID)
		if err != nil {
			return nil, err
		}
		t.State, t.Reason, t.AnswerSeq, t.UpdatedAt = e.Facts.State, e.Facts.Reason, e.Facts.Seq, e.At
		if !t.State.Terminal() {
			t.Artifacts = nil
		}
		return s.Push(ctx, actor, t, h.Version)
	}
	data, err := s.buildData(ctx, actor, e)
	if err != nil {
		return nil, err
	}
	return []any{message{e.Type, formatTime(e.At), data}}, nil
}

// buildData returns the data field of a webhook's body for an event; a NotFound fault if the owner
// may no longer read it.
func (s *Service) buildData(ctx context.Context, actor ident.Actor, e Event) (any, error) {
	f := e.Facts
	switch e.Type {
	case TaskEnded, TaskAsks:
		return s.taskData(ctx, actor, f)
	case MessageSaid:
		return s.saidData(ctx, actor, f)
	case AgentReported:
		if !actor.IsOperator() {
			return nil, fault.New(fault.NotFound, "Only operators get events of reports.")
		}
		return map[string]any{"agent": f.Agent, "report_id": f.ReportID, "reason": f.Reason,
			"url": s.cfg.URL + "/admin/reports"}, nil
	case AgentLiveness:
		return map[string]any{"agent": f.Agent, "state": f.Live, "was": f.Was, "reason": f.Reason,
			"url": s.agentURL(f.Agent)}, nil
	case AgentRemoved:
		return map[string]any{"agent": f.Agent}, nil
	case AgentRegistered, AgentChanged:
		return map[string]any{"agent": f.Agent, "version": f.Version, "url": s.agentURL(f.Agent)}, nil
	}
	return nil, fault.New(fault.NotFound, "%s is not an event of webhooks.", e.Type)
}

func (s *Service) agentURL(name string) string {
	return s.cfg.URL + "/agents/" + url.PathEscape(name)
}

func (s *Service) taskData(ctx context.Context, actor ident.Actor, f Facts) (any, error) {
	t, err := s.Chat.Task(ctx, actor, f.TaskID)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"task_id": t.ID, "conversation_id": t.ConversationID, "agent": t.AgentHandle,
		"state": f.State, "reason": f.Reason,
		"url": s.cfg.URL + "/api/v1/tasks/" + t.ID}
	m, err := s.Chat.Message(ctx, actor, t.ConversationID, f.Seq)
	switch {
	case fault.Is(err, fault.NotFound): // a former member is still notified of the task's end, without the text
	case err != nil:
		return nil, err
	case m.Kind == chat.Text:
		putText(out, m)
	}
	return out, nil
}

func (s *Service) saidData(ctx context.Context, actor ident.Actor, f Facts) (any, error) {
	m, err := s.Chat.Message(ctx, actor, f.ConversationID, f.Seq)
	if err != nil {
		return nil, err
	}
	if !m.Now.UnsaidAt.IsZero() {
		return nil, fault.New(fault.NotFound, "The message was deleted.")
	}
	out := map[string]any{"conversation_id": f.ConversationID, "seq": m.Seq, "message_id": m.ID,
		"sender": map[string]any{"kind": senderKind(m.Sender.Kind), "handle": m.Sender.Handle},
		"url":    fmt.Sprintf("%s/chat/%s#m%d", s.cfg.URL, f.ConversationID, m.Seq)}
	putText(out, m)
	return out, nil
}

// senderKind maps operator to person, because receivers need not know the operator of the portal.
func senderKind(kind string) string {
	if kind == string(ident.Operator) {
		return string(ident.Person)
	}
	return kind
}

// putText adds the text of a message to a body, cut to maxTextBytes. A cut text is marked with
// truncated.
func putText(out map[string]any, m chat.Message) {
	text := task.PlainText(m.Parts)
	if len(text) > maxTextBytes {
		text = text[:maxTextBytes]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		out["truncated"] = true
	}
	out["text"] = text
}
