package chat

// Sink receives the updates of a Subscription by calls instead of a goroutine that waits in Next: a room
// passes the same batch to all of its sinks, one after the other.
type Sink interface {
	// Push passes a batch, shared with other sinks and not to be changed. It must not block.
	Push(b *Batch) Taken
	// Behind is called after Push returned Last or None. The subscription is detached: the sink reads
	// the rest with Take and then attaches again. It must not block.
	Behind()
	// End reports that the subscription ended, with the reason. It must not block.
	End(err error)
}

// Taken is the answer of a Sink to a batch.
type Taken int

// All: the batch was taken. Last: it was taken, and the sink accepts no more until it attaches again.
// None: it was not taken.
const (
	All Taken = iota
	Last
	None
)

// Batch is a list of updates that a room passes to many sinks. It is not safe for concurrent use.
type Batch struct {
	Updates []Update
	forms   [Forms][]byte
}

// Encoded returns the batch in the encoding number form (below Forms). encode runs once for each form;
// the result is shared by all sinks and must not be changed.
func (b *Batch) Encoded(form int, encode func([]Update) []byte) []byte {
	if b.forms[form] == nil {
		b.forms[form] = encode(b.Updates)
	}
	return b.forms[form]
}

// Attach connects the sink to all further updates. It returns false if updates wait in the subscription:
// the caller must take those first.
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

// detachSink removes a reader from r.attached; nothing happens if it is not attached. The caller holds r.mu.
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

// handing is a pending Push to one reader.
type handing struct {
	sub  *Subscription
	sink Sink
	place
}

// place is the state of a reader before a Push: its position in the log, the seq before its next message, and sees,
// its FromSeq, or 0 if no entry since then needs redaction. Readers with equal places share one batch.
type place struct{ from, last, sees int64 }

// pumpSinks pushes the log to all attached readers until they have all of it. At most one goroutine a
// room runs it, and none while there are no updates.
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
			if s.pos < r.base { // The log dropped entries that this reader has not had.
				behind = append(behind, s.sink)
				r.detachSink(s)
				i--
				continue
			}
			at := place{s.pos, s.last, s.from}
			if s.pos > r.amended {
				at.sees = 0 // No amendment to redact: readers with different FromSeq can share a batch.
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
