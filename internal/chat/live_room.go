package chat

import (
	"context"
	"sync"
	"time"
)

// Limits of a room's log. Readers who fall behind it catch up from the store. While a push to attached
// sinks is running, the log may grow to the larger limits.
const (
	logEntries     = 256
	logBytes       = 512 << 10
	logMostEntries = 4096
	logMostBytes   = 8 << 20
)

const (
	// earlyLimit is how many messages are held that arrived before their predecessors.
	earlyLimit = 256
	// gapWait is the time before a missing message is read from the store. Messages that were committed
	// together often arrive in the wrong order, and the gap then closes without a read.
	gapWait = 5 * time.Millisecond
	// fillTimeout limits one read of the store. After fillTries reads the missing messages are treated
	// as nonexistent, so that a gap cannot block a room forever.
	fillTimeout = 10 * time.Second
	fillTries   = 12
	// catchUpPage is how many messages one read of the store returns, and catchUpBytes bounds their bytes
	// where a reader may hold them for long.
	catchUpPage  = 200
	catchUpBytes = 64 << 10
)

// room restores the order of a conversation's messages, once for all live readers. It exists while the
// conversation has readers or running tasks.
type room struct {
	id string

	mu      sync.Mutex // guards the fields below
	store   Store      // nil until the first reader subscribes
	subs    map[*Subscription]struct{}
	streams map[string]*stream

	// log holds the updates for readers; log[i] has the position base+i.
	log   []entry
	base  int64
	bytes int
	// head is the seq of the last message in order. known is false until the first reader has read it
	// from the store. The log holds all messages from low to head.
	head, low int64
	known     bool
	early     map[int64]*Message // messages that arrived before their predecessors, by seq
	want      int64              // greatest seq that is known to be committed
	filling   bool
	pages     []*page // pages recently read from the store

	waiting  map[*Subscription]struct{} // readers that wait in Next
	attached []*Subscription
	pumping  bool
	pumped   int64 // position up to which attached sinks were served
	amended  int64 // position of the last amendment, -1 for none

	people *people
}

type entry struct {
	Update
	size int
}

func newRoom(id string) *room {
	return &room{id: id, amended: -1, people: new(people), subs: make(map[*Subscription]struct{}), streams: make(map[string]*stream), waiting: make(map[*Subscription]struct{})}
}

func (r *room) isEmpty() bool { return len(r.subs) == 0 && len(r.streams) == 0 }

func (r *room) endPos() int64 { return r.base + int64(len(r.log)) }

// addUpdate appends an update to the log, wakes waiting readers and starts the pump. The caller holds r.mu.
func (r *room) addUpdate(u Update) {
	if len(r.subs) == 0 {
		return
	}
	u.memo = new(memo)
	if u.Message != nil && u.Message.Kind.Amends() {
		r.amended = r.endPos()
	}
	e := entry{u, u.size()}
	r.log = append(r.log, e)
	r.bytes += e.size
	for r.isFull() {
		r.dropOld()
	}
	for s := range r.waiting {
		s.wakeReader()
	}
	clear(r.waiting)
	if len(r.attached) > 0 && !r.pumping {
		r.pumping = true
		go r.pumpSinks()
	}
}

// isFull reports whether the oldest entry is to be dropped. Entries not yet pushed to attached sinks are
// held up to the larger limits.
func (r *room) isFull() bool {
	if len(r.log) <= 1 || len(r.log) <= logEntries && r.bytes <= logBytes {
		return false
	}
	held := len(r.attached) > 0 && r.base >= r.pumped
	return !held || len(r.log) > logMostEntries || r.bytes > logMostBytes
}

func (r *room) dropOld() {
	e := r.log[0]
	r.log[0] = entry{}
	r.log = r.log[1:]
	r.base++
	r.bytes -= e.size
	if e.Message != nil {
		r.low = max(r.low, e.Message.Seq+1)
	}
}

// putMessage takes a committed message: it appends the message or holds it until its predecessors
// arrive. The caller holds r.mu.
func (r *room) putMessage(m *Message) {
	switch {
	case len(r.subs) == 0:
		r.markAnswered(m)
	case r.known && m.Seq <= r.head: // a duplicate: the message is in the log already
	case r.known && m.Seq == r.head+1:
		r.appendNext(m)
		r.drainEarly()
	default:
		r.want = max(r.want, m.Seq)
		if len(r.early) < earlyLimit {
			if r.early == nil {
				r.early = make(map[int64]*Message)
			}
			r.early[m.Seq] = m
		}
		r.mendGap()
	}
}

// markAnswered removes the running answer of the task that m ends.
func (r *room) markAnswered(m *Message) {
	if m.TaskID != "" && m.Sender.Kind == "agent" {
		delete(r.streams, m.TaskID)
	}
}

// appendNext appends m, whose seq must be head+1. The caller holds r.mu.
func (r *room) appendNext(m *Message) {
	r.head = m.Seq
	r.want = max(r.want, m.Seq)
	r.markAnswered(m)
	r.people.said(m)
	// An edit or deletion makes cached content outdated: pages, and log entries up to the target, are
	// not used for readers that resume.
	switch m.Kind {
	case Edit:
		r.low, r.pages = max(r.low, m.Target+1), nil
	case Unsaid:
		r.low, r.pages = m.Seq, nil
	}
	r.addUpdate(Update{Message: m})
}

// drainEarly appends the held messages that follow head without a gap. The caller holds r.mu.
func (r *room) drainEarly() {
	for {
		m := r.early[r.head+1]
		if m == nil {
			break
		}
		delete(r.early, m.Seq)
		r.appendNext(m)
	}
	for seq := range r.early {
		if seq <= r.head {
			delete(r.early, seq)
		}
	}
}

// mendGap starts a read of the missing messages after gapWait, unless one is running. The caller holds r.mu.
func (r *room) mendGap() {
	if r.known && !r.filling && r.want > r.head {
		r.filling = true
		time.AfterFunc(gapWait, func() { r.fillGap(0) })
	}
}

// fillGap reads the missing messages from the store, once for all readers. try counts the reads without
// progress; the wait doubles with each.
func (r *room) fillGap(try int) {
	for {
		r.mu.Lock()
		after, store := r.head, r.store
		if len(r.subs) == 0 || !r.known || r.want <= r.head {
			r.filling = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), fillTimeout)
		list, _, err := store.Messages(ctx, r.id, Span{After: after, Limit: catchUpPage})
		cancel()
		r.mu.Lock()
		before := r.head
		if r.known && err == nil {
			for i := range list {
				if list[i].Seq == r.head+1 {
					r.appendNext(&list[i])
				}
			}
			r.drainEarly()
		}
		moved := r.head > before || r.want <= r.head
		if !moved && try >= fillTries {
			r.want, r.early, r.filling = r.head, nil, false
		}
		going := r.filling
		r.mu.Unlock()
		switch {
		case !going:
			return
		case !moved:
			time.AfterFunc(gapWait<<try, func() { r.fillGap(try + 1) })
			return
		}
		try = 0
	}
}

// page is a page of messages from the store that several readers share.
type page struct {
	after int64
	ready chan struct{} // closed when the other fields are set
	list  []Update
	err   error
}

// readPage returns the page of messages after seq. Readers who resume at the same seq within pageHolds
// share one read.
func (r *room) readPage(ctx context.Context, after int64) ([]Update, error) {
	r.mu.Lock()
	for _, p := range r.pages {
		if p.after == after {
			r.mu.Unlock()
			select {
			case <-p.ready:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if p.err == nil && len(p.list) > 0 {
				return p.list, nil
			}
			return r.loadPage(ctx, after)
		}
	}
	p := &page{after: after, ready: make(chan struct{})}
	if len(r.pages) >= 4 {
		r.pages = append(r.pages[:0:0], r.pages[1:]...)
	}
	r.pages = append(r.pages, p)
	r.mu.Unlock()
	p.list, p.err = r.loadPage(ctx, after)
	close(p.ready)
	size := 0
	for _, u := range p.list {
		size += u.size()
	}
	if p.err != nil || len(p.list) == 0 || size > logBytes {
		r.forgetPage(p)
	} else {
		time.AfterFunc(pageHolds, func() { r.forgetPage(p) })
	}
	return p.list, p.err
}

// pageHolds is how long a page is kept, so that readers who reconnect together (after a restart) share one read.
const pageHolds = 10 * time.Second

func (r *room) forgetPage(p *page) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range r.pages {
		if x == p {
			r.pages = append(r.pages[:i:i], r.pages[i+1:]...)
			return
		}
	}
}

func (r *room) loadPage(ctx context.Context, after int64) ([]Update, error) {
	list, _, err := r.store.Messages(ctx, r.id, Span{After: after, Limit: catchUpPage, Bytes: catchUpBytes})
	if err != nil {
		return nil, err
	}
	out := make([]Update, len(list))
	for i := range list {
		out[i] = Update{Message: &list[i], memo: new(memo)}
	}
	return out, nil
}
