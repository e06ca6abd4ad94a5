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
	// headEvent is the name of the only serf event that is used.
	headEvent = "h"
	maxHint   = 8 + 2*binary.MaxVarintLen64
	// hintGap is the minimum time between two hints by one portal, because a pool has little capacity:
	// about six events a second with 1,000 portals.
	hintGap = time.Minute
)

// Hint is an unsigned notice that a portal may have a head of that version. Mark is the first eight bytes
// of the portal's id digest, see federation.Mark.
type Hint struct {
	Mark uint64
	record.Version
}

func (h Hint) encodeHint() []byte {
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

// maxCount bounds epoch and seq to the integers that JSON numbers can represent exactly.
const maxCount = 1 << 53

// hints holds the head to announce next; a newer head replaces it.
type hints struct {
	mu   sync.Mutex // guards next
	next *Hint
	wake chan struct{} // signals that next is set; capacity 1
}

func (h *hints) init() { h.wake = make(chan struct{}, 1) }

// AdvertiseHead announces a new head of this portal to the pool: at once, or hintGap after the previous
// announcement. It does not block.
func (g *Gossip) AdvertiseHead(head record.Version) {
	g.hints.mu.Lock()
	g.hints.next = &Hint{leadingBits(g.cfg.Self), head}
	g.hints.mu.Unlock()
	g.hints.nudge()
}

func (h *hints) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hints) takeNext() *Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.next
	h.next = nil
	return next
}

func (g *Gossip) announceHeads(ctx context.Context, p *pool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.hints.wake:
		}
		if up, _ := g.Members(); up == 0 { // the hint would reach no member yet: wait
			if !clock.Sleep(ctx, time.Second) {
				return
			}
			g.hints.nudge()
			continue
		}
		next := g.hints.takeNext()
		if next == nil {
			continue
		}
		g.count.told.Add(1)
		if err := p.serf.UserEvent(headEvent, next.encodeHint(), false); err != nil {
			g.cfg.Log.Debug("gossip: announce a head", "error", err)
		}
		if !clock.Sleep(ctx, hintGap) {
			return
		}
	}
}
