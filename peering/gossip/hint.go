package gossip

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/record"
)

const (
	// headEvent is the name of the only event.
	headEvent = "h"
	maxHint   = 8 + 2*binary.MaxVarintLen64
	// tellGap keeps what one portal tells of its heads apart. What a pool can
	// carry is little: at 1,000 portals some six events a second.
	tellGap = time.Minute
)

// Hint says that a portal, by the first eight bytes of its id, may have a head
// of that version. It is signed by nobody.
type Hint struct {
	Mark uint64
	record.Version
}

func (h Hint) bytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, h.Mark)
	b = binary.AppendUvarint(b, uint64(h.Epoch))
	return binary.AppendUvarint(b, uint64(h.Seq))
}

func readHint(b []byte) (h Hint, ok bool) {
	if len(b) < 10 || len(b) > maxHint {
		return h, false
	}
	h.Mark, b = binary.BigEndian.Uint64(b), b[8:]
	epoch, n := binary.Uvarint(b)
	if n <= 0 || epoch >= maxCount {
		return h, false
	}
	seq, m := binary.Uvarint(b[n:])
	if m <= 0 || n+m != len(b) || seq >= maxCount {
		return h, false
	}
	h.Epoch, h.Seq = int64(epoch), int64(seq)
	return h, true
}

// maxCount bounds numbers of records, as they are in JSON.
const maxCount = 1 << 53

// hints is the head that is to be told next: a later one takes its place.
type hints struct {
	mu   sync.Mutex // guards next
	next *Hint
	wake chan struct{} // capacity 1
}

func (h *hints) init() { h.wake = make(chan struct{}, 1) }

// Tell has the pool told of a new head of this portal: at once, or when tellGap
// after the last is over.
func (g *Gossip) Tell(head record.Version) {
	g.hints.mu.Lock()
	g.hints.next = &Hint{top(g.cfg.Self), head}
	g.hints.mu.Unlock()
	g.hints.nudge()
}

func (h *hints) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hints) take() *Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.next
	h.next = nil
	return next
}

func (g *Gossip) tell(ctx context.Context, p *pool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.hints.wake:
		}
		if up, _ := g.Members(); up == 0 { // there is nobody to tell yet
			if !clock.Sleep(ctx, time.Second) {
				return
			}
			g.hints.nudge()
			continue
		}
		next := g.hints.take()
		if next == nil {
			continue
		}
		g.count.told.Add(1)
		if err := p.serf.UserEvent(headEvent, next.bytes(), false); err != nil {
			g.cfg.Log.Debug("gossip: a head was not told", "error", err)
		}
		if !clock.Sleep(ctx, tellGap) {
			return
		}
	}
}
