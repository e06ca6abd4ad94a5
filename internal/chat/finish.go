package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// Finish stores the result of a task, or its request for input, as a message of its agent, asks the
// agents that the answer mentions, and notifies readers. The runtime calls it. The client id of the
// message derives from the task's id, so that a repeated call stores nothing.
func (s *Service) Finish(ctx context.Context, t task.Task, r task.Result) error {
	t.State, t.Reason, t.UpdatedAt = r.State, cutText(r.Reason, 900), clock.Now()
	t.Direct = r.Direct && r.State == task.Completed && len(r.Parts) > 0
	var notes []string
	e := Ended{}
	r.Parts, t.Artifacts, e.Files, notes = s.storeProduced(ctx, t, r.Parts, t.Artifacts)
	m := Message{ConversationID: t.ConversationID, ID: ident.NewID(),
		ClientID: fmt.Sprintf("%s/%d", t.ID, t.MessageSeq), Sender: Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle},
		Kind: Text, Parts: r.Parts, TaskID: t.ID, TaskState: t.State, Reason: t.Reason, CreatedAt: t.UpdatedAt}
	if t.State == task.Completed { // Only a completed task replaces the answer that it regenerates.
		m.Target = t.Replaces
	}
	if t.State.Terminal() {
		m.ClientID = t.ID
	}
	if len(m.Parts) == 0 {
		m.Kind, m.Target = Event, 0
		if t.Reason == "" {
			t.Reason = map[task.State]string{task.Completed: "Done, without an answer.", task.Canceled: "Stopped."}[t.State]
			m.Reason = t.Reason
		}
		m.Parts = []task.Part{task.TextPart(t.Reason)}
		if r.RetryAfter > 0 && t.State == task.Rejected {
			m.Parts[0] = busyPart(t.Reason, r.RetryAfter)
		}
	}
	calls, err := s.findCalled(ctx, t, m)
	if err != nil {
		return err
	}
	e.Task, e.Message, e.Ask, e.Turns, e.Budget = t, m, calls.ask, calls.turns, calls.budget
	var done Posted
	defer func() { s.admissions.withdraw(e.Ask, done.Tasks) }()
	done, err = s.store.Finish(ctx, e)
	if err != nil {
		if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			s.removeShown(t) // The task reached another final state first, or its conversation was deleted.
			s.Asides.stopAsked(ctx, t)
		}
		return err
	}
	s.live.passMessage(done.Message)
	s.removeSettled(t)
	s.startTasks(done)
	s.Asides.stopAsked(ctx, t)
	if done.Held > 0 {
		notes = append(notes, "Whom it calls was not asked: agents here have said as much for one message as they may.")
	}
	if r.Summary != "" {
		notes = append(notes, noteSummary(ctx, s.store, t, r.Summary))
	}
	s.addNotes(ctx, t, append(notes, calls.notes...))
	return nil
}

// noteSummary returns the note about a summary. Only a private conversation shows it, because others may not see the
// messages in it.
func noteSummary(ctx context.Context, store memberStore, t task.Task, summary string) string {
	members, err := store.Members(ctx, t.ConversationID)
	if err != nil || !(Conversation{Members: members}).Private() {
		return "The earlier messages were summarised for its model."
	}
	return "Summary of the earlier messages, for its model: " + summary
}

// EndTask implements task.Ender: it ends a task that the runtime does not run.
func (s *Service) EndTask(ctx context.Context, t task.Task, r task.Result) error {
	err := s.Finish(ctx, t, r)
	if err == nil {
		s.runner.Ended(t)
	}
	return err
}

// addNotes adds an event below an answer about files that were not kept and agents that were not asked.
// The answer is stored already, so errors are only logged.
func (s *Service) addNotes(ctx context.Context, t task.Task, notes []string) {
	if len(notes) == 0 {
		return
	}
	e := newEvent(Sender{Kind: "agent", ID: t.AgentID, Handle: t.AgentHandle}, "%s", cutText(strings.Join(notes, " "), 900))
	e.ConversationID = t.ConversationID
	done, err := s.store.Append(ctx, Post{Message: e})
	if err != nil {
		s.cfg.Log.Warn("note below an answer not stored", "task", t.ID, "error", err)
		return
	}
	s.live.passMessage(done.Message)
}

// maxProduced limits the files that one task may store, because they count towards the quota of the asking member.
const maxProduced = 20

// storeProduced stores the files that an agent returned in parts and artifacts, on the quota of the
// asking member, and returns notes about files that were not kept.
func (s *Service) storeProduced(ctx context.Context, t task.Task, parts []task.Part, artifacts []task.Artifact) ([]task.Part, []task.Artifact, []string, []string) {
	actor := callerOf(t)
	var files, lost []string
	why := ""
	count := 0
	kept := func(in []task.Part) []task.Part {
		if !slices.ContainsFunc(in, func(p task.Part) bool { return p.Raw != nil || strings.HasPrefix(p.URL, "/") }) {
			return in
		}
		var out []task.Part
		for _, p := range in {
			switch {
			case strings.HasPrefix(p.URL, "/"):
				// A relative URL names a file of this portal, which the agent did not send.
				continue
			case p.Raw == nil:
				out = append(out, p)
				continue
			}
			count++
			var f File
			err := error(fault.New(fault.Invalid, "One answer may hold %d files.", maxProduced))
			if count <= maxProduced {
				f, err = s.Files.storeFile(ctx, memberKind(actor), actor.ID, fileDraft(p), fileBounds(actor))
			}
			if err != nil {
				if e := fault.As(err); e.Kind == fault.Internal {
					s.cfg.Log.Error("file of an agent not stored", "task", t.ID, "error", err)
				}
				lost, why = append(lost, FileName(p.Filename)), fault.As(err).Safe
				continue
			}
			out = append(out, filePart(f, p))
			if !slices.Contains(files, f.Hash) {
				files = append(files, f.Hash)
			}
		}
		return out
	}
	parts = kept(parts)
	if len(artifacts) > 0 {
		artifacts = slices.Clone(artifacts)
		for i, a := range artifacts {
			artifacts[i].Parts = kept(a.Parts)
			parts = withFiles(parts, artifacts[i].Parts)
		}
	}
	if len(lost) == 0 {
		return parts, artifacts, files, nil
	}
	names := strings.Join(lost[:min(len(lost), 5)], ", ")
	if len(lost) > 5 {
		names += fmt.Sprintf(" and %d more", len(lost)-5)
	}
	return parts, artifacts, files, []string{fmt.Sprintf("Not kept: %s. %s", names, why)}
}

// withFiles appends to an answer the parts among made that are files of this portal and that the answer
// lacks, up to MaxParts, so that readers of the message see the files in the artifacts.
func withFiles(answer, made []task.Part) []task.Part {
	for _, p := range made {
		if _, ours := fileHash(p.URL); !ours || len(answer) >= MaxParts {
			continue
		}
		if !slices.ContainsFunc(answer, func(have task.Part) bool { return have.URL == p.URL }) {
			answer = append(slices.Clip(answer), p)
		}
	}
	return answer
}

// callerOf returns the person, guest or portal that a task works for as an actor. The actor has no login
// or token: only the rights of its kind and id.
func callerOf(t task.Task) ident.Actor {
	a := ident.Actor{Kind: ident.ActorKind(t.CallerKind), ID: t.CallerID, Name: t.CallerHandle, Addr: t.CallerID,
		Through: t.Face == faceAgent || t.Face == FaceRelay}
	switch a.Kind {
	case ident.Guest:
		a.Name = ""
	case ident.Portal:
		a.Addr = ident.PortalCredential(ident.PortalOf(a.ID))
	}
	return a
}

// called is the follow-up work of an answer that mentions agents.
type called struct {
	ask           []task.Task
	turns, budget int
	notes         []string
}

// findCalled makes a task for each agent that a completed answer mentions, and the message it answers does not, and
// that the person behind the task may call. Agents beyond the limits are named in notes instead.
func (s *Service) findCalled(ctx context.Context, t task.Task, m Message) (called, error) {
	if t.State != task.Completed || m.Kind != Text {
		return called{}, nil
	}
	text := task.PlainText(m.Parts)
	if len(findMentions(text, s.cfg.Portal)) == 0 {
		return called{}, nil
	}
	asker, members, err := findAsker(ctx, s.store, t)
	if fault.Is(err, fault.NotFound) || err == nil && checkWriter(asker) != nil {
		return called{}, nil
	}
	if err != nil {
		return called{}, err
	}
	agents := slices.DeleteFunc(Conversation{Members: members}.Agents(), func(a Member) bool { return a.ID == t.AgentID })
	whom := mentionedMembers(agents, text, s.cfg.Portal)
	// A name that the answer repeats from the message it answers was asked by that message already.
	if ask, aerr := s.store.Message(ctx, t.ConversationID, t.MessageSeq); aerr == nil {
		asked := mentionedMembers(agents, task.PlainText(ask.Parts), s.cfg.Portal)
		whom = slices.DeleteFunc(whom, func(a Member) bool { return a.ID != ask.Sender.ID && hasMember(asked, a) })
	} else if !fault.Is(aerr, fault.NotFound) {
		return called{}, aerr
	}
	if len(whom) == 0 {
		return called{}, nil
	}
	set, _, err := s.store.SettingsOf(ctx, t.ConversationID)
	if err != nil {
		return called{}, err
	}
	c := called{turns: set.Turns, budget: set.Budget}
	left := t.Budget
	if left.IsSet() {
		if left.Calls < 1 || !clock.Now().Before(left.Until) {
			c.notes = []string{fmt.Sprintf("Not asked: %s. Who asked for this allows no more calls of agents.", joinHandles(whom))}
			return c, nil
		}
		// The answer to the question itself and those between it and this one are turns as well.
		c.turns = min(c.turns, 1+t.Hop+left.Calls)
	}
	if t.Hop+1 > set.Hops {
		c.notes = []string{fmt.Sprintf("Not asked: %s. One message may lead from agent to agent at most %d times here.", joinHandles(whom), set.Hops)}
		return c, nil
	}
	// The hops before this portal (via a protocol endpoint) count towards task.MaxChain.
	if outside := len(t.Via) - t.Hop; outside > 0 && len(t.Via)+1 >= task.MaxChain {
		c.notes = []string{fmt.Sprintf("Not asked: %s. %d agents have asked each other for this already, which is the most there may be.", joinHandles(whom), len(t.Via)+1)}
		return c, nil
	}
	via := t.Via.AppendHop(s.cfg.Hops.Hop(t.AgentID))
	for i, a := range whom {
		// Only agents that are asked count towards Turns, not all that are mentioned.
		if len(c.ask) >= set.Turns {
			c.notes = append(c.notes, fmt.Sprintf("Not asked: %s. Agents here give at most %d answers for one message.", joinHandles(whom[i:]), set.Turns))
			break
		}
		root := t.RootSeq
		if root == 0 {
			root = t.MessageSeq
		}
		k := task.Task{
			ID: ident.NewID(), ConversationID: t.ConversationID, AgentID: a.ID, AgentHandle: a.Handle,
			CallerKind: t.CallerKind, CallerID: t.CallerID, CallerHandle: t.CallerHandle, CallerGroup: t.CallerGroup,
			State: task.Submitted, Face: t.Face, RootSeq: root, Hop: t.Hop + 1, Via: via, Budget: left.SpendCall(len(text)), CreatedAt: m.CreatedAt, UpdatedAt: m.CreatedAt,
		}
		if err := s.authorizeCall(ctx, &k, len(text)); err != nil {
			f := fault.As(err)
			if f.Kind == fault.Internal {
				s.cfg.Log.Error("agent not asked by another", "task", t.ID, "error", err)
			}
			c.notes = append(c.notes, fmt.Sprintf("Not asked: %s. %s", a.Handle, f.Safe))
			continue
		}
		c.ask = append(c.ask, k)
	}
	return c, nil
}

// authorizeCall checks whether the person behind a task that an agent asks for may call its agent with a text of size
// bytes, sets the share of the conversation that may be sent along, admits the task and counts the call for that
// person. If the person asked on a page, a disclosure for the agent's host must exist.
func (s *Service) authorizeCall(ctx context.Context, t *task.Task, size int) error {
	actor := callerOf(*t)
	ref, err := s.memberAgent(ctx, actor, Member{ID: t.AgentID, Handle: t.AgentHandle})
	if err != nil {
		return err
	}
	shares, _, err := s.discloseTo(ctx, actor, Draft{MustTell: t.Face == facePage}, []AgentRef{ref})
	if err != nil {
		if fault.Is(err, fault.Conflict) {
			err = fault.New(fault.Conflict, "%s sends text to %s; write to it yourself first.", ref.Handle, ref.Remote)
		}
		return err
	}
	t.Share = string(shares[t.AgentID])
	if err := s.admissions.admitTask(ctx, *t); err != nil {
		return err
	}
	if err := s.directory.Admit(ctx, actor, t.AgentHandle, size); err != nil {
		s.admissions.withdraw([]task.Task{*t}, nil)
		return err
	}
	return nil
}

// facePage is the Face of messages that people wrote on a page of this portal.
const facePage = "page"

func joinHandles(list []Member) string {
	var names []string
	for _, m := range list {
		names = append(names, m.Handle)
	}
	return strings.Join(names, ", ")
}
