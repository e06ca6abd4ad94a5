package record

// A portal's log is the newest record of each of its agents, with tombstones as long as they live,
// in the order of their seq. It is transferred as the records themselves, one a line. Numbers are
// missing where a record was replaced.
//
// A head takes the next number of the same count, so its seq is above that of all entries that it
// covers, and a replica that holds a head needs the entries above it.

// LogReader checks that entries form a log that ends with a head. The caller has admitted each entry by
// a Gate.
type LogReader struct {
	head  *Head
	after int64
}

// ReadLog returns a reader for the entries above the seq after, up to head.
func ReadLog(head *Head, after int64) *LogReader { return &LogReader{head, after} }

// Next checks r as the next entry and returns an error if the log cannot continue with it; otherwise r
// is the last entry.
func (l *LogReader) Next(r *Record) error {
	switch {
	case r.Type != TypeAgent || r.Portal != l.head.Portal:
		return refuse(NotConsistent, "a log holds agents of one portal")
	case r.Epoch != l.head.Epoch:
		return refuse(NotConsistent, "the entry is of another epoch than the head")
	case r.Seq <= l.after:
		return refuse(NotConsistent, "entry %d follows %d", r.Seq, l.after)
	case r.Seq >= l.head.Seq:
		return refuse(NotConsistent, "entry %d is not below its head, %d", r.Seq, l.head.Seq)
	}
	l.after = r.Seq
	return nil
}

// After returns the seq of the last entry, from which a read continues after an interruption.
func (l *LogReader) After() int64 { return l.after }

// Apply adds the agent of a log entry to its portal's tree, or removes the deleted agent. After the
// last entry the head must describe the tree, otherwise the sender left out an entry
// (Head.Describes).
func (t *Tree) Apply(r *Record) {
	a, ok := r.Body.(*Agent)
	if !ok {
		return
	}
	key := AgentKey(a.AgentID())
	if a.Deleted {
		t.Delete(key)
		return
	}
	t.Set(key, r.Hash)
}
