package chat

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

const (
	// newsLimit is how many entries of an inbox wait for a slow reader. Older ones are dropped; the
	// reader still finds those messages in the list of conversations.
	newsLimit = 64
	// tellLimit is the length of the queue of messages for all inboxes; messages beyond it are dropped.
	tellLimit = 4096
	// factsHold is how long an inbox caches settings, so that not every message causes a read of the store.
	factsHold   = 10 * time.Second
	factsLimit  = 256
	newsRunes   = 140
	newsTimeout = 10 * time.Second
)

// inboxes holds the open inboxes of this process. The zero value is ready to use.
type inboxes struct {
	open atomic.Int64

	mu      sync.Mutex // guards the fields below
	svc     *Service   // set when the first inbox opens
	of      map[holder]map[*Inbox]struct{}
	queue   []Message
	telling bool
}

type holder struct{ kind, id string }

// Inbox receives the new messages in all conversations of one person, as far as the person may see them.
// One goroutine at a time may call Next.
type Inbox struct {
	svc  *Service
	who  holder
	name string
	wake chan struct{} // capacity 1: a signal that queue is not empty

	mu    sync.Mutex // guards queue
	queue []News

	// Used only by the delivering goroutine, without a lock:
	rooms map[string]facts
	prefs Prefs
	asked time.Time // time at which prefs was read
}

// facts is the cached title and member settings of a conversation for one inbox.
type facts struct {
	title string
	mine  Mine
	asked time.Time
}

// Inbox subscribes the actor to messages of other members in all of the actor's conversations, from now
// on. The caller must Close the inbox.
func (s *Service) Inbox(ctx context.Context, actor ident.Actor) (*Inbox, error) {
	if err := checkRead(actor); err != nil {
		return nil, err
	}
	b := &Inbox{svc: s, who: holder{memberKind(actor), actor.ID}, name: senderOf(actor).Handle, wake: make(chan struct{}, 1), rooms: make(map[string]facts)}
	x := &s.live.inboxes
	x.mu.Lock()
	defer x.mu.Unlock()
	x.svc = s
	if x.of == nil {
		x.of = make(map[holder]map[*Inbox]struct{})
	}
	if x.of[b.who] == nil {
		x.of[b.who] = make(map[*Inbox]struct{})
	}
	x.of[b.who][b] = struct{}{}
	x.open.Add(1)
	return b, nil
}

// Close unregisters the inbox: nothing is queued from then on. A waiting Next ends with its ctx. Later
// calls do nothing.
func (b *Inbox) Close() {
	x := &b.svc.live.inboxes
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, ok := x.of[b.who][b]; !ok {
		return
	}
	x.open.Add(-1)
	delete(x.of[b.who], b)
	if len(x.of[b.who]) == 0 {
		delete(x.of, b.who)
	}
}

// Next returns the oldest queued entry; it waits until there is one or ctx ends.
func (b *Inbox) Next(ctx context.Context) (News, error) {
	for {
		b.mu.Lock()
		if len(b.queue) > 0 {
			n := b.queue[0]
			b.queue = slices.Delete(b.queue, 0, 1)
			b.mu.Unlock()
			return n, nil
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-ctx.Done():
			return News{}, ctx.Err()
		}
	}
}

func (b *Inbox) pushNews(n News) {
	b.mu.Lock()
	if len(b.queue) >= newsLimit {
		b.queue = slices.Delete(b.queue, 0, 1)
	}
	b.queue = append(b.queue, n)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// queueMessage queues a message for the inboxes of its conversation's members. It never blocks: a full
// queue drops the message.
func (x *inboxes) queueMessage(m Message) {
	if m.Kind != Text || x.open.Load() == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.of) == 0 || len(x.queue) >= tellLimit {
		return
	}
	x.queue = append(x.queue, m)
	if !x.telling {
		x.telling = true
		go x.deliverQueue(x.svc)
	}
}

// deliverQueue delivers the queued messages until the queue is empty. At most one goroutine runs it (telling).
func (x *inboxes) deliverQueue(svc *Service) {
	for {
		x.mu.Lock()
		if len(x.queue) == 0 {
			x.telling, x.queue = false, nil
			x.mu.Unlock()
			return
		}
		m := x.queue[0]
		x.queue[0] = Message{}
		x.queue = x.queue[1:]
		x.mu.Unlock()
		x.deliverSafely(svc, m)
	}
}

// deliverSafely delivers one message. A panic is logged, so that the messages behind it are still delivered.
func (x *inboxes) deliverSafely(svc *Service, m Message) {
	defer func() {
		if p := recover(); p != nil {
			svc.logWarning("tell inboxes", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	x.deliver(svc, m)
}

func (x *inboxes) deliver(svc *Service, m Message) {
	ctx, cancel := context.WithTimeout(context.Background(), newsTimeout)
	defer cancel()
	members, err := svc.store.Members(ctx, m.ConversationID)
	if err != nil {
		svc.logWarning("tell inboxes", err)
		return
	}
	var blockers []string
	if m.Sender.Kind == "person" {
		if blockers, err = svc.store.BlockersOf(ctx, m.Sender.ID); err != nil {
			svc.logWarning("tell inboxes", err)
			return
		}
	}
	var text string
	var named []string
	for _, member := range members {
		own := m.Sender.ID == member.ID && m.Sender.Kind != "agent"
		if member.Kind == "agent" || own || m.Seq <= member.FromSeq || slices.Contains(blockers, member.ID) {
			continue
		}
		x.mu.Lock()
		list := make([]*Inbox, 0, len(x.of[holder{member.Kind, member.ID}]))
		for b := range x.of[holder{member.Kind, member.ID}] {
			list = append(list, b)
		}
		x.mu.Unlock()
		for _, b := range list {
			if text == "" {
				text = task.PlainText(m.Parts)
				named = findMentions(text, svc.cfg.Portal)
				text = snippet(text, newsRunes)
			}
			n := News{ConversationID: m.ConversationID, Seq: m.Seq, From: m.Sender.Handle, Snippet: text, Mention: slices.Contains(named, member.Handle)}
			if err := b.fillNews(ctx, &n); err == nil {
				b.pushNews(n)
			} else if !fault.Is(err, fault.NotFound) {
				// A former member gets no notification; this is no error.
				svc.logWarning("tell an inbox", err)
			}
		}
	}
}

// fillNews sets the fields of n that depend on the inbox's person; a NotFound fault for a former member.
func (b *Inbox) fillNews(ctx context.Context, n *News) error {
	now := time.Now()
	f, ok := b.rooms[n.ConversationID]
	if !ok || now.Sub(f.asked) > factsHold {
		c, err := b.svc.store.Room(ctx, n.ConversationID, b.who.kind, b.who.id)
		if err != nil {
			return err
		}
		if len(b.rooms) >= factsLimit {
			clear(b.rooms)
		}
		f = facts{title: c.Title, mine: c.Mine, asked: now}
		b.rooms[n.ConversationID] = f
	}
	if b.who.kind == "person" && now.Sub(b.asked) > factsHold {
		p, err := b.svc.store.Prefs(ctx, b.who.id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		b.prefs, b.asked = p, now
	}
	n.Title = f.title
	n.Quiet = f.mine.isQuiet(n.Mention) || b.prefs.isQuiet(n.Mention, now)
	return nil
}

func (n Notify) isQuiet(mention bool) bool {
	return n == NotifyNothing || n == NotifyMentions && !mention
}

func (m Mine) isQuiet(mention bool) bool {
	return m.Notify.isQuiet(mention) || m.Archived && !mention
}

func (p Prefs) isQuiet(mention bool, now time.Time) bool {
	if p.Notify.isQuiet(mention) {
		return true
	}
	if p.QuietFrom == p.QuietTo {
		return false
	}
	zone, err := time.LoadLocation(p.Zone)
	if err != nil {
		zone = time.UTC
	}
	now = now.In(zone)
	minute := now.Hour()*60 + now.Minute()
	if p.QuietFrom < p.QuietTo {
		return p.QuietFrom <= minute && minute < p.QuietTo
	}
	return minute >= p.QuietFrom || minute < p.QuietTo
}

func (s *Service) logWarning(what string, err error) {
	if s.cfg.Log != nil {
		s.cfg.Log.Warn(what, "error", err)
	}
}
