package chat

import (
	"context"
	"slices"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxBranch is the number of messages copied to a branch, the newest ones. branchPages is the number of
// pages read to find them, because events and edits fill pages too.
const (
	maxBranch   = 2000
	branchPages = 100
)

// Branch creates a conversation of the actor with a copy of the messages up to seq that the actor sees,
// and with those of its agents that the actor may use.
func (s *Service) Branch(ctx context.Context, actor ident.Actor, id string, seq int64) (Conversation, error) {
	if err := checkWrite(actor); err != nil {
		return Conversation{}, err
	}
	from, err := s.readRoom(ctx, actor, id)
	if err != nil {
		return Conversation{}, err
	}
	me, ok := findMember(from.Members, memberKind(actor), actor.ID)
	if !ok {
		return Conversation{}, errNoRoom()
	}
	if _, err := s.readMessage(ctx, me, id, seq); err != nil {
		return Conversation{}, err
	}
	if err := s.rooms.allow(ctx, actor); err != nil {
		return Conversation{}, err
	}
	said, err := s.copyMessages(ctx, id, me.FromSeq, seq)
	if err != nil {
		return Conversation{}, err
	}
	named, err := s.namedBefore(ctx, from, said)
	if err != nil {
		return Conversation{}, err
	}
	title := ""
	if from.Title != "" && !named {
		title = snippet(branchPrefix+from.Title, MaxTitleRunes)
	}
	room := emptyRoom(actor, title)
	room.BranchedFrom, room.BranchedSeq, room.Settings = id, seq, from.Settings
	for _, m := range from.Agents() {
		ref, err := s.findAgent(ctx, actor, m.Handle)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.Forbidden) {
			continue // The agent no longer exists, or the actor may not use it.
		}
		if err != nil {
			return Conversation{}, err
		}
		room.Members = append(room.Members, Member{Kind: "agent", ID: ref.ID, Handle: ref.Handle, Role: RoleMember,
			Remote: ref.Remote})
	}
	if _, ok := findMember(room.Members, "agent", room.Settings.SpeakerID); !ok && room.Settings.SpeakerID != "" {
		room.Settings.Speaks, room.Settings.SpeakerID = SpeaksAlone, ""
	}
	by := senderOf(actor)
	events := []Message{newEvent(by, "%s began this conversation with a copy of what was said in another", by.Handle)}
	if err := s.store.CreateConversation(ctx, room, said, events); err != nil {
		return Conversation{}, err
	}
	return s.readShownRoom(ctx, actor, room.ID)
}

// namedBefore reports whether the conversation's title comes from a message older than the copied ones.
// The branch must not take over such a title: deleting that message could not remove its text from the
// branch. Only the first 50 messages are searched.
func (s *Service) namedBefore(ctx context.Context, c Conversation, copied []Message) (bool, error) {
	end := c.LastSeq + 1
	if len(copied) > 0 {
		end = copied[0].Seq
	}
	list, _, err := s.store.Messages(ctx, c.ID, Span{Before: min(end, 50), Limit: 50, Bytes: namingBytes})
	if err != nil {
		return false, err
	}
	for _, m := range list {
		if m.Kind != Text || m.Now.EditSeq == 0 {
			if m.Kind == Text && NamedAfter(c.Title, TitleOf(m.Parts)) {
				return true, nil
			}
			continue
		}
		named := false
		err := eachForm(ctx, s.store, c.ID, m.Seq, func(f Message) bool {
			named = NamedAfter(c.Title, TitleOf(f.Parts))
			return !named
		})
		if err != nil || named {
			return named, err
		}
	}
	return false, nil
}

// namingBytes bounds the messages that are searched for the title of a conversation.
const namingBytes = 4 << 20

// copyMessages returns the messages with from < seq <= upTo in their present form, for a branch. They
// keep the seqs of the old conversation; the store assigns new ones.
func (s *Service) copyMessages(ctx context.Context, id string, from, upTo int64) ([]Message, error) {
	var list []Message // newest first
	before := upTo + 1
	for range branchPages {
		page, more, err := s.store.Messages(ctx, id, Span{After: from, Before: before, Limit: 200, Newest: true})
		if err != nil {
			return nil, err
		}
		for _, m := range slices.Backward(page) {
			if m.Kind == Text && m.Now.UnsaidAt.IsZero() && len(list) < maxBranch {
				list = append(list, m)
			}
		}
		if !more || len(list) >= maxBranch {
			break
		}
		before = page[0].Seq
	}
	slices.Reverse(list)
	out := make([]Message, len(list))
	for i, m := range list {
		out[i] = Message{Seq: m.Seq, ID: ident.NewID(), Sender: m.Sender, Kind: Text, Parts: m.Parts, Target: m.Target,
			CreatedAt: m.CreatedAt}
	}
	return out, nil
}
