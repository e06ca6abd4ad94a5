package chat

// Sink takes the updates of a Subscription as they come, without a goroutine that waits for them:
// a room hands all of its sinks the same batch, one after the other.
type Sink interface {
	// Push hands over a batch. It must not block.
	Push(b *Batch) Taken
	// Behind is called after Push took less than All. The subscription is
	// detached: the sink reads it by Take when it can, then attaches again.
	// It must not block.
	Behind()
	// End ends the subscription with an error. It must not block.
	End(err error)
}

// Taken is the result of a Sink for a batch.
type Taken int

// All was taken; the Last batch was, and no more before the sink attaches
// again; None of it was taken.
const (
	All Taken = iota
	Last
	None
)

// Batch is updates that many readers are handed at once. One goroutine at a
// time uses it.
type Batch struct {
	Updates []Update
	forms   [Forms][]byte
}

// Encoded returns the batch in a form of the door's, which encode makes once.
func (b *Batch) Encoded(form int, encode func([]Update) []byte) []byte {
	if b.forms[form] == nil {
		b.forms[form] = encode(b.Updates)
	}
	return b.forms[form]
}

// Attach hands all further updates to the sink, unless updates wait that must be taken first: then
// it returns false.
func (s *Subscription) Attach(sink Sink) bool {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.synced || s.pos < r.endPos() {
		return false
	}
	s.mu.Lock()
	s.sink = sink
	closed := s.closed != nil
	s.mu.Unlock()
	if closed {
		return false
	}
	if _, ok := r.subs[s]; ok && s.slot < 0 {
		s.slot = len(r.attached)
		r.attached = append(r.attached, s)
	}
	return true
}

// detachSink takes a reader out of those that are handed updates; the caller holds
// r.mu.
func (r *room) detachSink(s *Subscription) {
	if s.slot < 0 {
		return
	}
	n := len(r.attached) - 1
	r.attached[s.slot] = r.attached[n]
	r.attached[s.slot].slot = s.slot
	r.attached[n] = nil
	r.attached = r.attached[:n]
	s.slot = -1
}

// handing is a batch on its way to one reader.
type handing struct {
	sub  *Subscription
	sink Sink
	place
}

// place is where a reader was in the log, the seq before its next message, and
// the one after which it sees the conversation, as far as that makes a
// difference.
type place struct{ from, last, sees int64 }

// pumpSinks hands the log to all attached readers until they have it. There is at
// most one a room, and none while nothing happens.
func (r *room) pumpSinks() {
	var list []handing
	for {
		var behind []Sink
		r.mu.Lock()
		end, head := r.endPos(), r.head
		list = list[:0]
		for i := 0; i < len(r.attached); i++ {
			s := r.attached[i]
			if s.pos >= end {
				continue
			}
			if s.pos < r.base { // too much came at once
				behind = append(behind, s.sink)
				r.detachSink(s)
				i--
				continue
			}
			at := place{s.pos, s.last, s.from}
			if s.pos > r.amended {
				at.sees = 0 // new messages must reach all readers
			}
			list = append(list, handing{s, s.sink, at})
			s.pos, s.last = end, max(s.last, head)
		}
		r.pumped = end
		if len(list) == 0 {
			r.pumping = false
			r.mu.Unlock()
			for _, s := range behind {
				s.Behind()
			}
			return
		}
		batches := make(map[place]*Batch, 1)
		for _, h := range list {
			if batches[h.place] == nil {
				batches[h.place] = &Batch{Updates: redactUpdates(r.updatesSince(h.from, h.last), h.sees)}
			}
		}
		r.mu.Unlock()
		for _, s := range behind {
			s.Behind()
		}
		for _, h := range list {
			taken := None
			if h.sub.endError() == nil {
				if taken = h.sink.Push(batches[h.place]); taken == All {
					continue
				}
			}
			r.mu.Lock()
			r.detachSink(h.sub)
			if taken == None {
				h.sub.pos, h.sub.last = h.from, h.last
			}
			r.mu.Unlock()
			h.sink.Behind()
		}
	}
}
