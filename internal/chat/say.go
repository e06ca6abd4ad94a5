package chat

import (
	"context"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Draft is a message to post; Service.Post validates it.
type Draft struct {
	// ClientID makes a retry harmless: a second post with the same id by the same sender in the same
	// conversation stores nothing and returns the first message. Ids do not expire.
	ClientID string
	Parts    []task.Part
	// Face names the page or protocol endpoint that received the message.
	Face string
	// To is the id of the member agent that is asked, whatever the text mentions; "" leaves the choice
	// to chooseAudience.
	To string
	// Resumes is the id of the waiting task that this message is the input of; a Conflict fault if the
	// task does not wait for input. "" is none.
	Resumes string
	// Via lists the agents whose work led to the message, as the caller claims.
	Via task.Chain
	// Budget limits the work that the message may cause; the zero value is no limit by the caller.
	Budget task.Budget
	// Quotes is the seq of the message that this one replies to, 0 for none.
	Quotes int64
	// Told has the handles of agents whose disclosure (the host that receives the text) the sender has confirmed.
	// Share is the part of the conversation that the sender allows to be sent to those agents.
	Told  []string
	Share Share
	// MustTell refuses a message to an agent on another host with a Conflict fault, field "told", unless the sender
	// has confirmed the disclosure now or earlier. Pages set it; programs state their consent by the call.
	MustTell bool
	// refuseBusy makes an agent without room for a task a RateLimited fault, before anything is stored.
	refuseBusy bool
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

// Post appends a message to a conversation and submits a task to each agent that it addresses. It returns after the
// message is stored durably; a repeated ClientID returns the first message with Repeat set.
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
	if err := s.Contacts.checkDelivery(ctx, actor, members); err != nil {
		return Posted{}, err
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Posted{}, err
	}
	if err := s.limits.limitText(ctx, actor, d.Parts); err != nil {
		return Posted{}, err
	}
	p, err := s.composePost(ctx, actor, me, members, id, d)
	if err != nil {
		// A retry gets the first result, even if it would be refused now.
		if said, serr := s.store.Said(ctx, id, actor.ID, d.ClientID); serr == nil {
			return Posted{Message: said, Repeat: true}, nil
		}
		return Posted{}, err
	}
	var done Posted
	defer func() { s.admissions.withdraw(p.Ask, done.Tasks) }()
	done, err = s.store.Append(ctx, p)
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
	s.startTasks(done)
	return done, nil
}

// startTasks shows live readers the tasks of a stored message: those that were refused with their messages, and
// those that now wait. It notifies the runtime of the latter.
func (s *Service) startTasks(done Posted) {
	for _, e := range done.Refused {
		s.live.passMessage(e.Message)
		s.removeSettled(e.Task)
	}
	for _, t := range done.Tasks {
		s.showWaiting(t)
	}
	if len(done.Tasks) > 0 {
		s.runner.Wake()
	}
}

// composePost validates a draft, stores the disclosures that the sender confirms with it, and returns its Post with
// the tasks that the runtime admitted. The caller withdraws those that are not stored.
func (s *Service) composePost(ctx context.Context, actor ident.Actor, me Member, members []Member, id string, d Draft) (Post, error) {
	var quoted *Message
	if d.Quotes > 0 {
		m, err := s.readText(ctx, me, id, d.Quotes)
		if err != nil {
			return Post{}, asField(err, "reply_to")
		}
		quoted = &m
	}
	text := task.PlainText(d.Parts)
	to, err := s.chooseAudience(ctx, id, me, members, d, text, quoted)
	if err == nil { // The message itself is counted already, as the call of one agent.
		err = s.limits.limitCalls(actor, len(to.agents)-1)
	}
	if err != nil {
		return Post{}, err
	}
	var refs []AgentRef
	for _, m := range to.agents {
		ref, err := s.memberAgent(ctx, actor, m)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Conflict, "%s is not here any more, so nobody would answer.", m.Handle)
		}
		if err != nil {
			return Post{}, err
		}
		refs = append(refs, ref)
	}
	shares, told, err := s.discloseTo(ctx, actor, d, refs)
	if err != nil {
		return Post{}, err
	}
	more, err := s.toldOf(ctx, d, members, told)
	if err != nil {
		return Post{}, err
	}
	told = append(told, more...)
	parts, files, err := s.withFiles(ctx, actor, d.Parts)
	if err != nil {
		return Post{}, err
	}
	now := clock.Now()
	p := Post{
		MustBeMember: true, Title: TitleOf(parts), Spoke: to.turn, Files: files, Resumes: d.Resumes,
		Mentions: mentionedPeople(members, text, s.cfg.Portal, actor.ID),
		Message: Message{ConversationID: id, ID: ident.NewID(), ClientID: d.ClientID, Sender: senderOf(actor),
			Kind: Text, Parts: parts, Target: d.Quotes, CreatedAt: now},
	}
	for _, m := range to.agents {
		p.Ask = append(p.Ask, task.Task{
			ID: ident.NewID(), ConversationID: id, AgentID: m.ID, AgentHandle: m.Handle,
			CallerKind: string(actor.Kind), CallerID: actor.ID, CallerHandle: p.Message.Sender.Handle,
			CallerGroup: actor.AddrGroup(), State: task.Submitted, Face: d.Face, Share: string(shares[m.ID]), Via: d.Via, Budget: d.Budget, CreatedAt: now, UpdatedAt: now,
		})
	}
	if err := s.storeDisclosures(ctx, actor, told); err != nil {
		return Post{}, err
	}
	err = s.admissions.admitPost(ctx, actor, d, &p, len(text))
	return p, err
}
