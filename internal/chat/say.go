package chat

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Draft is a message to be posted.
type Draft struct {
	// ClientID makes a repeated post harmless: the same one by the same sender in the same
	// conversation is stored once, for ever.
	ClientID string
	Parts    []task.Part
	// Face is the door it came through.
	Face string
	// To, when set, is the id of the member agent that the message is for, whatever its text
	// mentions.
	To string
	// Resumes, when set, is the task waiting for input that this must be the
	// input of: a Conflict fault if it waits no more.
	Resumes string
	// Via lists the agents whose work led to the message.
	Via task.Chain
	// Budget bounds the work that the message may cause.
	Budget task.Budget
	// Quotes is the message this one answers to, 0 for none.
	Quotes int64
	// The first list has the handles of agents with a disclosure that the sender has seen: the
	// host that receives their text. Share is the sender's choice of the part that goes along.
	Told  []string
	Share Share
	// MustTell refuses a message to an agent elsewhere with a Conflict fault, field "told", unless
	// the sender has seen the disclosure now or earlier. Pages set it, programs do not.
	MustTell bool
}

func checkDraft(actor ident.Actor, d Draft) error {
	var c fault.Check
	c.Field(d.ClientID != "", "client_id", "give every message an id of your own, for example a UUID, so that sending it again is harmless")
	c.Field(len(d.ClientID) <= MaxClientID, "client_id", "use at most %d bytes", MaxClientID)
	c.Field(d.Quotes >= 0, "reply_to", "is no message")
	c.Field(d.Share == "" || d.Share.isValid(), "share", "use %s, %s or %s", ShareAll, ShareOwn, ShareNothing)
	c.Field(len(d.Told) <= MaxMembers, "told", "name at most %d agents", MaxMembers)
	if err := c.Err(); err != nil {
		return err
	}
	if err := checkParts(actor, d.Parts); err != nil {
		return err
	}
	return checkBudget(d.Budget, d.Parts)
}

// Post adds a message to a conversation. The agents it addresses get it as a task each. It returns
// once the message is on disk; a repeated ClientID returns the first message with Repeat set.
func (s *Service) Post(ctx context.Context, actor ident.Actor, id string, d Draft) (Posted, error) {
	if err := checkWrite(actor); err != nil {
		return Posted{}, err
	}
	if err := checkDraft(actor, d); err != nil {
		return Posted{}, err
	}
	members, me, err := s.readWriters(ctx, actor, id)
	if err != nil {
		return Posted{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Posted{}, err
	}
	p, told, err := s.composePost(ctx, actor, me, members, id, d)
	if err == nil {
		err = s.storeDisclosures(ctx, actor, told)
	}
	if err != nil {
		// Sent again, it is owed the first answer whatever has changed since.
		if said, serr := s.store.Said(ctx, id, actor.ID, d.ClientID); serr == nil {
			return Posted{Message: said, Repeat: true}, nil
		}
		return Posted{}, err
	}
	done, err := s.store.Append(ctx, p)
	if err != nil {
		if fault.Is(err, fault.NotFound) && len(p.Files) == 0 {
			return Posted{}, errNoRoom()
		}
		return Posted{}, err
	}
	if done.Repeat {
		return done, nil
	}
	s.live.passMessage(done.Message)
	s.startTasks(done.Tasks)
	return done, nil
}

// startTasks passes new tasks to readers and to the runtime.
func (s *Service) startTasks(list []task.Task) {
	for _, t := range list {
		s.showWaiting(t)
	}
	if len(list) > 0 {
		s.runner.Wake()
	}
}

// composePost checks a draft and returns the message to store, with the disclosures that the sender
// has seen with it.
func (s *Service) composePost(ctx context.Context, actor ident.Actor, me Member, members []Member, id string, d Draft) (Post, []Disclosure, error) {
	var quoted *Message
	if d.Quotes > 0 {
		m, err := s.readText(ctx, me, id, d.Quotes)
		if err != nil {
			return Post{}, nil, asField(err, "reply_to")
		}
		quoted = &m
	}
	text := task.PlainText(d.Parts)
	to, err := s.chooseAudience(ctx, id, me, members, d, text, quoted)
	if err != nil {
		return Post{}, nil, err
	}
	var refs []AgentRef
	for _, m := range to.agents {
		ref, err := s.memberAgent(ctx, actor, m)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Conflict, "%s is not here any more, so nobody would answer.", m.Handle)
		}
		if err != nil {
			return Post{}, nil, err
		}
		refs = append(refs, ref)
	}
	shares, told, err := s.discloseTo(ctx, actor, d, refs)
	if err != nil {
		return Post{}, nil, err
	}
	more, err := s.toldOf(ctx, d, members, told)
	if err != nil {
		return Post{}, nil, err
	}
	told = append(told, more...)
	parts, files, err := s.withFiles(ctx, actor, d.Parts)
	if err != nil {
		return Post{}, nil, err
	}
	for _, m := range to.agents {
		if err := s.directory.Admit(ctx, actor, m.Handle, len(text)); err != nil {
			return Post{}, nil, err
		}
	}
	now := clock.Now()
	p := Post{
		MustBeMember: true, Title: TitleOf(parts), Spoke: to.turn, Files: files, Resumes: d.Resumes,
		Message: Message{ConversationID: id, ID: ident.NewID(), ClientID: d.ClientID, Sender: senderOf(actor),
			Kind: Text, Parts: parts, Target: d.Quotes, CreatedAt: now},
	}
	for _, m := range to.agents {
		p.Ask = append(p.Ask, task.Task{
			ID: ident.NewID(), ConversationID: id, AgentID: m.ID, AgentHandle: m.Handle,
			CallerKind: string(actor.Kind), CallerID: actor.ID, CallerHandle: p.Message.Sender.Handle,
			State: task.Submitted, Face: d.Face, Share: string(shares[m.ID]), Via: d.Via, Budget: d.Budget, CreatedAt: now, UpdatedAt: now,
		})
	}
	return p, told, nil
}
