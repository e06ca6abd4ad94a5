package record

// MaxAgents bounds how many agents a head may count.
const MaxAgents = 10_000_000

// Head is a portal's lease over its records: while it holds, the agents that
// its root covers are the portal's, all of them and no others. Its seq is above
// that of every entry in the portal's log that it covers.
type Head struct {
	Header
	Count int64 `json:"count"` // leaves of the tree
	Root  Hash  `json:"root"`  // of the tree, see Tree
	// LogStart is the lowest seq from which the log is whole.
	LogStart int64 `json:"log_start"`
	// Summary is the hash of the portal's summary; zero without one.
	Summary Hash `json:"summary_hash,omitzero"`
	// Prev is the hash of the head before; zero for the first.
	Prev Hash `json:"prev,omitzero"`
}

func (h *Head) kind() Type    { return TypeHead }
func (h *Head) about() string { return "" }

func (h *Head) check(f *fields) {
	f.Field(h.Count >= 0 && h.Count <= MaxAgents, "count", "from 0 to %d", MaxAgents)
	f.Field((h.Count == 0) == (h.Root == emptyRoot), "root", "does not fit the count")
	f.Field(h.LogStart >= 1 && h.LogStart <= h.Seq, "log_start", "from 1 to seq")
}

// Describes reports whether the head is of just the leaves in t.
func (h *Head) Describes(t *Tree) bool { return int64(t.Len()) == h.Count && t.Root() == h.Root }

// Covers reports whether p shows that the head covers the record: only then
// does the record count. Tombstones are never covered.
func (h *Head) Covers(r *Record, p *Proof) bool {
	a, ok := r.Body.(*Agent)
	return ok && !a.Deleted && r.Portal == h.Portal && r.Epoch == h.Epoch && r.Seq < h.Seq &&
		p.Key == AgentKey(a.AgentID()) && p.Included(h.Root, r.Hash)
}

// Lacks reports whether p shows that the head covers no agent of that id, as
// AgentID returns it.
func (h *Head) Lacks(agentID string, p *Proof) bool {
	return p.Key == AgentKey(agentID) && p.Absent(h.Root)
}
