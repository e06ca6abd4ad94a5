package record

// MaxAgents is the number of agents that a head can cover.
const MaxAgents = 10_000_000

// Head is a portal's lease over its records: as long as it is valid, exactly the agents that its
// root covers are the portal's. Its seq is above the seq of every log entry that it covers.
type Head struct {
	Header
	Count int64 `json:"count"`
	Root  Hash  `json:"root"` // root of the tree, see Tree
	// LogStart is the lowest seq from which the log is complete.
	LogStart int64 `json:"log_start"`
	// Summary is the hash of the portal's summary; zero without one.
	Summary Hash `json:"summary_hash,omitzero"`
	// Prev is the hash of the previous head; zero for the first.
	Prev Hash `json:"prev,omitzero"`
}

func (h *Head) recordType() Type { return TypeHead }
func (h *Head) slotKey() string  { return "" }

func (h *Head) checkFields(f *fields) {
	f.Field(h.Count >= 0 && h.Count <= MaxAgents, "count", "from 0 to %d", MaxAgents)
	f.Field((h.Count == 0) == (h.Root == emptyRoot), "root", "does not fit the count")
	f.Field(h.LogStart >= 1 && h.LogStart <= h.Seq, "log_start", "from 1 to seq")
}

// Describes reports whether the head covers exactly the leaves in t.
func (h *Head) Describes(t *Tree) bool { return int64(t.Len()) == h.Count && t.Root() == h.Root }

// Covers reports whether p proves that the head covers the record: only then the record counts.
// Tombstones are never covered.
func (h *Head) Covers(r *Record, p *Proof) bool {
	a, ok := r.Body.(*Agent)
	return ok && !a.Deleted && r.Portal == h.Portal && r.Epoch == h.Epoch && r.Seq < h.Seq &&
		p.Key == AgentKey(a.AgentID()) && p.Included(h.Root, r.Hash)
}

// Lacks reports whether p proves that the head covers no agent of that id, in the form of AgentID.
func (h *Head) Lacks(agentID string, p *Proof) bool {
	return p.Key == AgentKey(agentID) && p.Absent(h.Root)
}
