package chat

import (
	"context"
	"slices"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxLinkUses is the greatest LinkDraft.MaxUses; a greater one is an Invalid fault.
const maxLinkUses = 1000

// The secrets of links begin with the purpose of the link, so that scanners recognize a leaked secret.
const (
	joinPrefix = "agsj_"
	readPrefix = "agsr_"
)

func errNoLink() error {
	return fault.New(fault.NotFound, "This link does not work: it has ended, or there never was one. Ask whoever gave it to you for another.")
}

// ErrManyLinks is the fault of a link beyond MaxLinks.
func ErrManyLinks() error {
	return fault.New(fault.Conflict, "A conversation has at most %d links. End one first.", MaxLinks)
}

// NewLink creates a link to a conversation and returns its secret, of which only a hash is stored.
// Owners may create join links, every member read links.
func (s *Service) NewLink(ctx context.Context, actor ident.Actor, id string, d LinkDraft) (l Link, secret string, err error) {
	if err := checkWrite(actor); err != nil {
		return Link{}, "", err
	}
	if err := hasAccount(actor, "share a conversation"); err != nil {
		return Link{}, "", err
	}
	room, err := s.readRoom(ctx, actor, id)
	if err != nil {
		return Link{}, "", err
	}
	me, ok := findMember(room.Members, memberKind(actor), actor.ID)
	if !ok {
		return Link{}, "", errNoRoom()
	}
	if d.Role == "" {
		d.Role = RoleMember
	}
	if d.Life == 0 {
		d.Life = DefaultLinkLife
	}
	var c fault.Check
	c.Field(d.Kind == JoinLink || d.Kind == ReadLink, "kind", "use %s or %s", JoinLink, ReadLink)
	c.Field(d.Role == RoleMember || d.Role == RoleReader, "role", "use %s or %s", RoleMember, RoleReader)
	c.Field(d.MaxUses >= 0 && d.MaxUses <= maxLinkUses, "max_uses", "use at most %d, or 0 for no bound", maxLinkUses)
	c.Field(d.Life > 0 && d.Life <= MaxLinkLife, "life", "use at most a year")
	if err := c.Err(); err != nil {
		return Link{}, "", err
	}
	if d.Kind == JoinLink {
		if err := checkOwner(me); err != nil {
			return Link{}, "", err
		}
		if err := s.Contacts.checkDelivery(ctx, actor, room.Members); err != nil {
			return Link{}, "", err
		}
	}
	if err := s.limits.limitRate(actor); err != nil {
		return Link{}, "", err
	}
	now := clock.Now()
	l = Link{ID: ident.NewID(), ConversationID: id, Kind: d.Kind, Creator: senderOf(actor), CreatedAt: now, ExpiresAt: now.Add(d.Life)}
	prefix, words := readPrefix, "%s made a link that shows what was said up to here"
	if d.Kind == JoinLink {
		l.Role, l.MaxUses = d.Role, d.MaxUses
		prefix, words = joinPrefix, "%s made a link that lets people join as "+d.Role
	} else {
		l.FromSeq, l.UpToSeq = me.FromSeq, room.LastSeq
	}
	secret = ident.NewSecret(prefix)
	if err := s.store.PutLink(ctx, l, ident.HashSecret(secret)); err != nil {
		return Link{}, "", err
	}
	e := newEvent(l.Creator, words, l.Creator.Handle)
	e.ConversationID = id
	done, err := s.store.Append(ctx, Post{Message: e})
	if err != nil { // A link without its event would be invisible to members, so the link is removed.
		// err is returned; a second error would hide it
		_ = s.store.DropLink(context.WithoutCancel(ctx), id, l.ID)
		return Link{}, "", err
	}
	s.live.passMessage(done.Message)
	return l, secret, nil
}

// Links lists the valid links of a conversation: all of them for an owner, their own for other members.
func (s *Service) Links(ctx context.Context, actor ident.Actor, id string) ([]Link, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	_, me, err := s.readMembers(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	list, err := s.store.LinksOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(l Link) bool { return me.Role != RoleOwner && l.Creator.ID != actor.ID }), nil
}

// DropLink revokes a link at once: its creator may do so, and every owner.
func (s *Service) DropLink(ctx context.Context, actor ident.Actor, id, linkID string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	list, err := s.Links(ctx, actor, id)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(l Link) bool { return l.ID == linkID }) {
		return fault.New(fault.NotFound, "There is no such link to this conversation, or it is not yours.")
	}
	return s.store.DropLink(ctx, id, linkID)
}

// dropLinks revokes the links of a conversation that which selects. The change that made them invalid is
// stored already, so errors are only logged.
func (s *Service) dropLinks(ctx context.Context, id string, which func(Link) bool) {
	ctx = context.WithoutCancel(ctx)
	list, err := s.store.LinksOf(ctx, id)
	for _, l := range list {
		if which(l) && err == nil {
			err = s.store.DropLink(ctx, id, l.ID)
		}
	}
	if err != nil {
		s.cfg.Log.Error("end links", "conversation", id, "error", err)
	}
}

// linkStore is the part of the store that findLink needs.
type linkStore interface {
	LinkByHash(ctx context.Context, secretHash string) (Link, error)
}

// findLink finds a valid link by kind and by the hash of its secret; else a NotFound fault.
func findLink(ctx context.Context, store linkStore, secret string, kind LinkKind) (Link, error) {
	if secret == "" || len(secret) > 200 {
		return Link{}, errNoLink()
	}
	l, err := store.LinkByHash(ctx, ident.HashSecret(secret))
	if fault.Is(err, fault.NotFound) || err == nil && (l.Kind != kind || !clock.Now().Before(l.ExpiresAt)) {
		return Link{}, errNoLink()
	}
	return l, err
}

// checkJoin returns a fault for actors that may not use join links: those without write access or an account.
func checkJoin(actor ident.Actor) error {
	if err := hasAccount(actor, "join the conversation"); err != nil {
		return err
	}
	return checkWrite(actor)
}

// Invitation returns a preview of a join link's conversation; the actor needs an account.
func (s *Service) Invitation(ctx context.Context, actor ident.Actor, secret string) (Invitation, error) {
	if err := checkJoin(actor); err != nil {
		return Invitation{}, err
	}
	l, err := findLink(ctx, s.store, secret, JoinLink)
	if err != nil {
		return Invitation{}, err
	}
	room, err := s.roomByLink(ctx, l)
	if err != nil {
		return Invitation{}, err
	}
	_, in := findMember(room.Members, memberKind(actor), actor.ID)
	return Invitation{ConversationID: room.ID, Title: room.Title, Role: l.Role, Inviter: l.Creator.Handle, Members: room.Members,
		Past: room.Settings.Past, Member: in}, nil
}

func (s *Service) roomByLink(ctx context.Context, l Link) (Conversation, error) {
	room, err := s.store.RoomByLink(ctx, l)
	if fault.Is(err, fault.NotFound) {
		return Conversation{}, errNoLink()
	}
	if err != nil {
		return Conversation{}, err
	}
	room.Members, err = s.withHosts(ctx, room.Members)
	return room, err
}

// JoinByLink makes the actor a member of the join link's conversation; an existing member stays as it is. A Conflict
// fault if the conversation is full, a NotFound fault if the link has expired or has no uses left.
func (s *Service) JoinByLink(ctx context.Context, actor ident.Actor, secret string) (Conversation, error) {
	if err := checkJoin(actor); err != nil {
		return Conversation{}, err
	}
	l, err := findLink(ctx, s.store, secret, JoinLink)
	if err != nil {
		return Conversation{}, err
	}
	room, err := s.roomByLink(ctx, l)
	if err != nil {
		return Conversation{}, err
	}
	if _, in := findMember(room.Members, memberKind(actor), actor.ID); in {
		return s.readShownRoom(ctx, actor, room.ID)
	}
	if len(room.Members) >= MaxMembers {
		return Conversation{}, errFull()
	}
	if err := s.rooms.allow(ctx, actor); err != nil {
		return Conversation{}, err
	}
	by := senderOf(actor)
	m := Member{Kind: "person", ID: actor.ID, Handle: by.Handle, Role: l.Role, FromSeq: seesFrom(room.Settings)}
	e, err := s.store.Join(ctx, room.ID, m, l.ID, newEvent(by, "%s joined by a link of %s", by.Handle, l.Creator.Handle))
	if fault.Is(err, fault.Conflict) {
		return Conversation{}, errNoLink()
	}
	if err != nil {
		return Conversation{}, err
	}
	s.live.passMessage(e)
	return s.readShownRoom(ctx, actor, room.ID)
}

// seesFrom returns the FromSeq for a member who joins now, as Rooms.Join takes it: -1 hides all earlier messages.
func seesFrom(set Settings) int64 {
	if set.Past == PastNothing {
		return -1
	}
	return 0
}

func errFull() error {
	return fault.New(fault.Conflict, "A conversation has at most %d members.", MaxMembers)
}

// Shared returns what a read link shows: at most limit messages with a seq below before (0: the newest).
// The secret alone gives the right.
func (s *Service) Shared(ctx context.Context, secret string, before int64, limit int) (Shared, error) {
	var c fault.Check
	c.Field(before >= 0, "before", "must not be negative")
	c.Field(limit >= 1 && limit <= 200, "limit", "use 1 to 200")
	if err := c.Err(); err != nil {
		return Shared{}, err
	}
	l, err := findLink(ctx, s.store, secret, ReadLink)
	if err != nil {
		return Shared{}, err
	}
	room, err := s.roomByLink(ctx, l)
	if err != nil {
		return Shared{}, err
	}
	if before == 0 || before > l.UpToSeq {
		before = l.UpToSeq + 1
	}
	list, _, err := s.store.Messages(ctx, l.ConversationID,
		Span{After: l.FromSeq, Before: before, Limit: limit, Newest: true})
	if err != nil {
		return Shared{}, err
	}
	out := Shared{ConversationID: room.ID, Title: room.Title, By: l.Creator.Handle, SharedAt: l.CreatedAt, Members: room.Members}
	if len(list) > 0 && list[0].Seq > l.FromSeq+1 {
		out.EarlierSeq = list[0].Seq
	}
	for _, m := range list {
		if m.Kind.Amends() {
			continue
		}
		if m.Now.NewerSeq > l.UpToSeq { // The regenerated answer is newer than the link.
			m.Now.NewerSeq = 0
		}
		if m.Now.EditSeq > l.UpToSeq { // The edit is newer than the link, so an older form is shown.
			if err := s.formAt(ctx, &m, l.UpToSeq); err != nil {
				return Shared{}, err
			}
		}
		out.Messages = append(out.Messages, m)
	}
	return out, nil
}

// formAt sets the parts of m to those of its newest form with seq <= upTo.
func (s *Service) formAt(ctx context.Context, m *Message, upTo int64) error {
	m.Parts, m.Now.EditSeq, m.Now.EditedAt = nil, 0, time.Time{}
	return eachForm(ctx, s.store, m.ConversationID, m.Seq, func(f Message) bool {
		if f.Seq > upTo {
			return false
		}
		if m.Parts = f.Parts; f.Seq != m.Seq {
			m.Now.EditSeq, m.Now.EditedAt = f.Seq, f.CreatedAt
		}
		return true
	})
}
