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
	// newsLimit is how many news wait for a slow reader; older ones are
	// dropped, because the list of conversations has them too.
	newsLimit = 64
	// tellLimit bounds the queue of messages for inboxes.
	tellLimit = 4096
	// factsHold is how long an inbox caches the settings of its person.
	factsHold   = 10 * time.Second
	factsLimit  = 256
	newsRunes   = 140
	newsTimeout = 10 * time.Second
)

// inboxes is the open inboxes of people in this process. The zero value is
// ready.
type inboxes struct {
	open atomic.Int64

	mu      sync.Mutex // guards the rest
	svc     *Service   // set with the first inbox
	of      map[holder]map[*Inbox]struct{}
	queue   []Message
	telling bool
}

type holder struct{ kind, id string }

// Inbox is news of all conversations of one person, as far as they may see
// them. One goroutine reads it.
type Inbox struct {
	svc  *Service
	who  holder
	name string
	wake chan struct{} // capacity 1

	mu    sync.Mutex // guards queue
	queue []News

	// Used only by the delivering goroutine:
	rooms map[string]facts
	prefs Prefs
	asked time.Time // when prefs were read
}

// facts is the cached state of a conversation for an inbox.
type facts struct {
	title string
	mine  Mine
	asked time.Time
}

// Inbox lets the actor hear of messages of others in all their conversations,
// from now on. The caller must Close it.
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

// Close ends the inbox.
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

// Next returns the next news, waiting for it until ctx ends.
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

// queueMessage queues a message for the inboxes of its room's members. It never waits.
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

// deliverQueue delivers the queue and ends.
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

// deliverSafely delivers one message; a panic in it affects no other message.
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
	var text string
	var named []string
	for _, member := range members {
		own := m.Sender.ID == member.ID && m.Sender.Kind != "agent"
		if member.Kind == "agent" || own || m.Seq <= member.FromSeq {
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
			} else if !fault.Is(err, fault.NotFound) { // former members are not notified
				svc.logWarning("tell an inbox", err)
			}
		}
	}
}

// fillNews fills the fields of news that depend on its reader.
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
