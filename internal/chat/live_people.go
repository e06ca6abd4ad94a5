package chat

import (
	"context"
	"maps"
	"slices"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Presence and read positions are sent in batches after a delay: a page reload is then not seen as
// leaving and joining, and scrolling does not send an update per message.
const (
	presenceWait = 500 * time.Millisecond
	readWait     = 300 * time.Millisecond
)

// people holds presence, read positions and typing of the persons in a room; the room's mu guards it.
type people struct {
	here   map[string]int // number of live readers, by handle
	told   []string       // handles in the last Presence update
	marks  map[string]int64
	news   map[string]int64 // read positions that are not sent yet, by handle
	typing map[string]time.Time

	presenceDue, readDue bool
}

func (p *people) addReader(r *room, s *Subscription) {
	if p.here == nil {
		p.here = make(map[string]int)
	}
	p.here[s.handle]++
	s.here = true
	p.sendChange(r)
}

func (p *people) removeReader(r *room, s *Subscription) {
	if !s.here {
		return
	}
	s.here = false
	if p.here[s.handle]--; p.here[s.handle] <= 0 {
		delete(p.here, s.handle)
	}
	p.sendChange(r)
}

// sendChange sends the present handles after presenceWait if they still differ from those sent last.
func (p *people) sendChange(r *room) {
	if p.presenceDue {
		return
	}
	p.presenceDue = true
	time.AfterFunc(presenceWait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if p != r.people {
			return // The room was emptied and has a new people value.
		}
		p.presenceDue = false
		if list := p.handles(); !slices.Equal(list, p.told) {
			p.told = list
			r.addUpdate(Update{Presence: &Presence{Handles: list}})
		}
	})
}

func (p *people) handles() []string { return slices.Sorted(maps.Keys(p.here)) }

// setMarks takes over the members' read positions from the store; a lower position than the known one
// changes nothing.
func (p *people) setMarks(list []Member) {
	for _, m := range list {
		if m.Kind != "agent" && m.ReadSeq > p.marks[m.Handle] {
			if p.marks == nil {
				p.marks = make(map[string]int64)
			}
			p.marks[m.Handle] = m.ReadSeq
		}
	}
}

// said ends the typing state of the sender of m, because the message has arrived.
func (p *people) said(m *Message) {
	if m.Sender.Kind != "agent" {
		delete(p.typing, m.Sender.Handle)
	}
}

// presentState returns the updates that give a new reader the presence, read positions and typing of the room.
func (p *people) presentState() []Update {
	out := []Update{{Presence: &Presence{Handles: p.handles()}}}
	for _, h := range slices.Sorted(maps.Keys(p.marks)) {
		out = append(out, Update{Read: &ReadMark{Handle: h, Seq: p.marks[h]}})
	}
	for h, at := range p.typing {
		if time.Since(at) < TypingHolds {
			out = append(out, Update{Typing: &Typing{Handle: h}})
		}
	}
	return out
}

// passRead sends a person's read position to the live readers of the conversation, after readWait.
func (l *live) passRead(conversationID, handle string, seq int64) {
	l.withRoom(conversationID, false, func(r *room) {
		p := r.people
		if seq = min(seq, r.head); seq <= p.marks[handle] {
			return // The position is known already, or the room has no readers.
		}
		if p.news == nil {
			p.news = make(map[string]int64)
		}
		p.setMarks([]Member{{Handle: handle, ReadSeq: seq}})
		p.news[handle] = seq
		if p.readDue {
			return
		}
		p.readDue = true
		time.AfterFunc(readWait, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if p != r.people {
				return
			}
			p.readDue = false
			for _, h := range slices.Sorted(maps.Keys(p.news)) {
				r.addUpdate(Update{Read: &ReadMark{Handle: h, Seq: p.news[h]}})
			}
			clear(p.news)
		})
	})
}

// Seen is Read for a live reader: it also sends the position to the other live readers.
func (s *Service) Seen(ctx context.Context, actor ident.Actor, id string, seq int64) error {
	if err := s.Read(ctx, actor, id, seq); err != nil {
		return err
	}
	s.live.passRead(id, senderOf(actor).Handle, seq)
	return nil
}

// Typing shows the other members that the actor is typing, for TypingHolds. Of repeated calls only about
// two in that time send an update.
func (s *Service) Typing(ctx context.Context, actor ident.Actor, id string) error {
	if err := checkWrite(actor); err != nil {
		return err
	}
	if !ident.ValidID(id) {
		return errNoRoom()
	}
	list, err := s.store.Members(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Kind != memberKind(actor) || m.ID != actor.ID {
			continue
		}
		if m.Role == RoleReader {
			return fault.New(fault.Forbidden, "You may read this conversation, not write in it.")
		}
		s.live.passTyping(id, senderOf(actor).Handle)
		return nil
	}
	return errNoRoom()
}

func (l *live) passTyping(conversationID, handle string) {
	l.withRoom(conversationID, false, func(r *room) {
		p, now := r.people, time.Now()
		if len(r.subs) == 0 || now.Sub(p.typing[handle]) < TypingHolds/2 {
			return
		}
		if p.typing == nil {
			p.typing = make(map[string]time.Time)
		}
		p.typing[handle] = now
		r.addUpdate(Update{Typing: &Typing{Handle: handle}})
	})
}
